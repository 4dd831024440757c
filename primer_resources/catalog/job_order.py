"""Which jobs can be claimed and which of them go first: conditions on rows of `jobs`, for statements that claim, count and end them."""

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, exists, func, or_, select

from primer_core.index_versions import VersionState
from primer_core.lanes import Lane
from primer_core.stages import HELD, PARSE, WAITING, WRITE, Operation
from primer_resources.catalog.schema import LIVE_STATES, accounts, documents, in_states, index_state, index_versions, jobs, sources

LIVE = in_states(jobs.c.state, LIVE_STATES)
SLOW_PARSE = and_(jobs.c.lane == Lane.SLOW, jobs.c.state.in_([PARSE.entry, PARSE.holding]))
"""What is left to the slow lane's runs: the fast and the slow one differ in the parse stage only."""
OPEN_VERSIONS = select(index_versions.c.name).where(index_versions.c.state != VersionState.RETIRED)
ACCESS = in_states(jobs.c.lane, [Lane.ACCESS])


def claimable(now: datetime, which: ColumnElement[bool]) -> Select[Any]:
    """Jobs that can be claimed now, counted by partition, with the oldest event among them."""
    free = or_(
        and_(jobs.c.state.in_(WAITING), jobs.c.not_before <= now),
        and_(jobs.c.state.in_(HELD), jobs.c.lease_until < now),
    )
    return (
        select(jobs.c.index_version, jobs.c.bucket, func.count().label("n"), func.min(jobs.c.event_time).label("oldest"))
        .where(LIVE, free, which, is_of_open_version(), ~blocked(now))
        .group_by(jobs.c.index_version, jobs.c.bucket)
    )


def is_of_open_version() -> ColumnElement[bool]:
    """Whether the job's index version is written to: what waits for a closed one is dropped with it."""
    return jobs.c.index_version.in_(OPEN_VERSIONS)


def overtaken() -> ColumnElement[bool]:
    """Whether a newer version of the job's document is behind it; a permission change is no newer version."""
    newer = jobs.alias("newer")
    return exists().where(
        newer.c.doc_id == jobs.c.doc_id,
        newer.c.index_version == jobs.c.index_version,
        newer.c.job_id > jobs.c.job_id,
        newer.c.operation != Operation.ACL,
    )


def blocked(now: datetime) -> ColumnElement[bool]:
    """Whether another job of the same document and index version goes first: an older one that is not finished, or a newer one that
    somebody works on now (an operator may bring an older one back meanwhile); or whether the job's tenant is inactive.

    The access lane waits for no parse and no embedding of a document that has rows already: what is older comes to its own write later,
    under the permissions that hold then, or is superseded by the delete. Only writes go in order.
    """
    other = jobs.alias("other")
    has_rows = (
        exists()
        .where(index_state.c.doc_id == jobs.c.doc_id, index_state.c.index_version == jobs.c.index_version)
        .where(index_state.c.content_hash.is_not(None))
        .correlate(jobs)
    )
    passes = and_(ACCESS, other.c.state.not_in([WRITE.entry, WRITE.holding]), has_rows)
    older = and_(other.c.job_id < jobs.c.job_id, other.c.state.in_(LIVE_STATES), ~passes)
    held = and_(other.c.job_id > jobs.c.job_id, other.c.state.in_(HELD), other.c.lease_until >= now)
    mine = exists().where(other.c.doc_id == jobs.c.doc_id, other.c.index_version == jobs.c.index_version, or_(older, held))
    return or_(mine, and_(jobs.c.operation == Operation.COPY, _awaits_canonical()), is_of_inactive_tenant())


def is_of_inactive_tenant() -> ColumnElement[bool]:
    """Whether the job waits until its tenant is active again."""
    source = sources.alias("source")
    return exists().where(source.c.source_id == jobs.c.source_id, accounts.c.tenant_id == source.c.tenant_id, ~accounts.c.active)


def _awaits_canonical() -> ColumnElement[bool]:
    """Whether the rows that are to stand for a copy are still being made: its canonical document's content, or their ACL ids, where that
    was asked for before the copy. What is asked for later is no reason to wait, lest a stream of copies holds up the first."""
    copy, leading = documents.alias("copy"), jobs.alias("leading")
    return exists().where(
        copy.c.doc_id == jobs.c.doc_id,
        copy.c.canonical_doc_id != copy.c.doc_id,
        leading.c.doc_id == copy.c.canonical_doc_id,
        leading.c.index_version == jobs.c.index_version,
        leading.c.state.in_(LIVE_STATES),
        or_(leading.c.operation == Operation.UPSERT, and_(leading.c.operation == Operation.ACL, leading.c.job_id < jobs.c.job_id)),
    )
