"""Look-ups that change nothing: one document's status, dead letters, id sets, and a sync's figures."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Select, and_, func, or_, select

from primer_core.failures import Reason
from primer_core.ids import row_id
from primer_core.outcomes import SUCCESSES, Outcome
from primer_core.reviews import ReviewState, output_version
from primer_core.stages import TERMINAL, Operation, State
from primer_resources.catalog.database import Database
from primer_resources.catalog.jobs import COUNTS
from primer_resources.catalog.ledger import Entry, Ledger
from primer_resources.catalog.schema import (
    chunks,
    documents,
    in_states,
    index_state,
    index_versions,
    intents,
    jobs,
    purges_due,
)
from primer_resources.catalog.schema_bodies import parsed, reviews

PAGE = 10_000


@dataclass(frozen=True, slots=True)
class DocumentStatus:
    """One document in one index version.

    `stage` is where its newest job stands. `outcome`, `indexed_version`, `chunks` and `indexed_at` are the ledger's, and so are `reason`
    and `error` unless a job is under way, whose `error` is why it was put back; `outcome` is None where no attempt has ended yet.
    `container` is the path of the mail or archive that it is a member of. `copy_of` is the document (SOURCE/path) whose passages stand
    for this one, since it has the same content; `chunks` counts those. `pages_to_review` counts the pages that are not indexed until a
    person lets them through. `text_kept` is the share (0 to 1) of its words that parsing kept or that `text_losses` (name → words)
    accounts for; None where it is not parsed or where nobody could count."""

    doc_id: str
    uri: str
    source: str
    path: str
    stage: str
    source_version: str
    outcome: Outcome | None
    indexed_version: str | None
    chunks: int
    indexed_at: datetime | None
    error: str | None
    reason: str | None
    container: str | None
    copy_of: str | None
    pages_to_review: int
    text_kept: float | None
    text_losses: dict[str, int] | None


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A job that needs a person."""

    job_id: int
    doc_id: str
    uri: str
    source: str
    path: str
    stage: str
    reason: str
    error: str
    attempts: int


_DEAD = (
    select(jobs, documents.c.uri, documents.c.path)
    .join(documents, documents.c.doc_id == jobs.c.doc_id)
    .where(in_states(jobs.c.state, [State.DEAD]))
)


def _letter(row: Row[Any]) -> DeadLetter:
    return DeadLetter(row.job_id, row.doc_id, row.uri, row.source_id, row.path, row.stage, row.reason or "", row.error or "", row.attempts)


class Lookup:
    """Reads of the catalog for people and for reconciling."""

    def __init__(self, database: Database, ledger: Ledger) -> None:
        self._db = database
        self._ledger = ledger

    def find_document(self, doc: str) -> list[str]:
        """doc_ids that `doc` may mean: a doc_id, a uri, or SOURCE/relative/path. Living documents come first."""
        source, _, path = doc.partition("/")
        wanted = or_(
            documents.c.doc_id == doc,
            documents.c.uri == doc,
            and_(documents.c.source_id == source, documents.c.path == path),
        )
        statement = select(documents.c.doc_id).where(wanted).order_by(documents.c.deleted_at.is_not(None), documents.c.deleted_at.desc())
        with self._db.read() as connection:
            return list(connection.execute(statement).scalars())

    def status(self, doc_id: str, index_version: str) -> DocumentStatus:
        """Where a document stands: its newest job tells what is under way, the ledger what came of it before."""
        with self._db.read() as connection:
            document = connection.execute(select(documents).where(documents.c.doc_id == doc_id)).one()
            leading = connection.execute(select(documents).where(documents.c.doc_id == document.canonical_doc_id)).one()
            entries = self._ledger.entries(connection, [doc_id, leading.doc_id], index_version)
            written = _written(connection, [doc_id, leading.doc_id], index_version)
            job = connection.execute(
                select(jobs).where(jobs.c.doc_id == doc_id, jobs.c.index_version == index_version).order_by(jobs.c.job_id.desc()).limit(1)
            ).one_or_none()
            its = and_(reviews.c.tenant_id == document.tenant_id, reviews.c.content_hash == document.content_hash)
            to_review = and_(its, in_states(reviews.c.state, [ReviewState.OPEN]))
            waiting = connection.execute(select(func.count(reviews.c.page.distinct())).where(to_review)).scalar_one()
            recipe = connection.execute(select(index_versions.c.recipe).where(index_versions.c.name == index_version)).scalar_one()
            is_linked = leading.doc_id != doc_id
            if is_linked:
                accepted = written[leading.doc_id].accepted_pages if leading.doc_id in written else ""
            else:
                accepted = "" if job is None else job.accepted_pages
            output = output_version(recipe["parser"]["version"], accepted)
            its = and_(parsed.c.tenant_id == document.tenant_id, parsed.c.content_hash == document.content_hash)
            made_by = select(parsed.c.text_kept, parsed.c.losses).where(its, parsed.c.parser_version == output)
            read = connection.execute(made_by).one_or_none()
        entry = entries.get(doc_id)
        stands_for_it = doc_id in written and written[doc_id].is_copy
        rows = entries.get(leading.doc_id) if stands_for_it else entry
        under_way = job if job is not None and job.state not in TERMINAL else None
        ended = entry if under_way is None else None
        error = under_way.error if under_way is not None else None if ended is None else ended.error
        return DocumentStatus(
            doc_id=doc_id,
            uri=document.uri,
            source=document.source_id,
            path=document.path,
            stage=_stage_at_rest(document, entry) if under_way is None else under_way.state,
            source_version=document.source_version,
            outcome=None if entry is None else entry.outcome,
            indexed_version=None if entry is None else entry.indexed_version,
            chunks=0 if rows is None else rows.chunks,
            indexed_at=None if entry is None else entry.indexed_at,
            error=document.acl_error or error,
            reason=Reason.ACL_UNREADABLE if document.acl_error is not None else None if ended is None else ended.reason,
            container=document.container,
            copy_of=f"{leading.source_id}/{leading.path}" if is_linked else None,
            pages_to_review=waiting,
            text_kept=None if read is None else read.text_kept,
            text_losses=None if read is None else read.losses,
        )

    def dead_letters(self, source_id: str | None = None, doc_id: str | None = None) -> list[DeadLetter]:
        """Dead letters, by source and path."""
        statement = _DEAD.order_by(jobs.c.source_id, documents.c.path, jobs.c.job_id)
        if source_id is not None:
            statement = statement.where(jobs.c.source_id == source_id)
        if doc_id is not None:
            statement = statement.where(jobs.c.doc_id == doc_id)
        with self._db.read() as connection:
            return [_letter(row) for row in connection.execute(statement)]

    def dead_page(self, source_ids: Collection[str], after: int, limit: int) -> list[DeadLetter]:
        """Dead letters of the sources by job_id, from behind `after` on."""
        statement = _DEAD.where(jobs.c.source_id.in_(sorted(source_ids)), jobs.c.job_id > after).order_by(jobs.c.job_id).limit(limit)
        with self._db.read() as connection:
            return [_letter(row) for row in connection.execute(statement)]

    def counts_by_status(self) -> dict[str, dict[str, int]]:
        """source_id → status → documents, tombstones counted as deleted."""
        statement = select(documents.c.source_id, documents.c.status, func.count()).group_by(documents.c.source_id, documents.c.status)
        counts: dict[str, dict[str, int]] = {}
        with self._db.read() as connection:
            for source, status, number in connection.execute(statement):
                counts.setdefault(source, {})[status] = number
        return counts

    def figures(self, source_id: str, since: datetime) -> dict[str, int]:
        """What the source's jobs that ended since then did: indexed and failed documents, and the sums of COUNTS."""
        sums = [func.coalesce(func.sum(jobs.c[name]), 0).label(name) for name in COUNTS]
        ended = and_(jobs.c.source_id == source_id, jobs.c.finished_at >= since)
        by_state = (
            select(jobs.c.state, func.count(jobs.c.doc_id.distinct()))
            .where(ended, or_(jobs.c.operation.in_([Operation.UPSERT, Operation.COPY]), jobs.c.state == State.DEAD))
            .group_by(jobs.c.state)
        )
        with self._db.read() as connection:
            total: Row[Any] = connection.execute(select(*sums).where(ended)).one()
            states = {row[0]: row[1] for row in connection.execute(by_state)}
        return {
            "indexed": states.get(State.INDEXED, 0),
            "failed": states.get(State.DEAD, 0),
            **{name: int(total._mapping[name]) for name in COUNTS},
        }

    def chunk_ids(self, doc_id: str, index_version: str) -> dict[str, int]:
        """chunk_id → ordinal of a document's live chunks."""
        statement = select(chunks.c.chunk_id, chunks.c.ordinal).where(chunks.c.doc_id == doc_id, chunks.c.index_version == index_version)
        with self._db.read() as connection:
            return {row.chunk_id: row.ordinal for row in connection.execute(statement)}

    def live_rows(self, index_version: str) -> Iterator[str]:
        """Row ids that both indexes must hold, streamed."""
        for row in self._stream(select(chunks.c.chunk_id, chunks.c.added_gen).where(chunks.c.index_version == index_version)):
            yield row_id(row.chunk_id, row.added_gen)

    def passing_rows(self, index_version: str) -> Iterator[str]:
        """Row ids that the indexes may hold and no reader counts: purges that wait and intents under way, streamed."""
        for table in (purges_due, intents):
            for row in self._stream(select(table.c.row_id).where(table.c.index_version == index_version)):
                yield row.row_id

    def _stream(self, statement: Select[Any]) -> Iterator[Row[Any]]:
        with self._db.read() as connection:
            yield from connection.execution_options(yield_per=PAGE).execute(statement)


def _stage_at_rest(document: Row[Any], entry: Entry | None) -> str:
    """Where a document stands that no job is under way for."""
    if entry is not None and entry.outcome is Outcome.DEAD:
        return "dead_letter"
    is_indexed = entry is not None and entry.outcome in SUCCESSES and document.deleted_at is None
    return State.INDEXED if is_indexed else str(document.status)


def _written(connection: Connection, doc_ids: Collection[str], index_version: str) -> dict[str, Row[str, bool, str]]:
    """doc_id → whether a document is indexed as a copy, and which let-through pages its rows are of."""
    columns = (index_state.c.doc_id, index_state.c.is_copy, index_state.c.accepted_pages)
    mine = and_(index_state.c.index_version == index_version, index_state.c.doc_id.in_(list(doc_ids)))
    return {row.doc_id: row for row in connection.execute(select(*columns).where(mine)).all()}
