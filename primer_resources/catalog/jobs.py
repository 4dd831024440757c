"""Jobs: one row a (document version, index version), moved through the stages by single conditional UPDATEs."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from random import Random
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, case, delete, insert, literal, or_, select, update

from primer_core.failures import Deferred, DocumentFault, PrimerError, Reason
from primer_core.lanes import Lane, lane_of
from primer_core.retry import RetryPolicy, compute_backoff
from primer_core.stages import HELD, PARSE, WAITING, Operation, Stage, State, entry_of, stage_of
from primer_resources.catalog.database import Database
from primer_resources.catalog.dead_letters import DeadLetters
from primer_resources.catalog.job_order import ACCESS, LIVE, blocked, overtaken
from primer_resources.catalog.ledger import Ledger
from primer_resources.catalog.schema import documents, in_states, jobs, sources

DEFER = timedelta(seconds=30)
"""How long work waits for an outside service that is down."""
ENDED = (State.INDEXED, State.SUPERSEDED)
COUNTS = ("parsed", "chunks_new", "chunks_kept", "chunks_gone", "embedded", "cache_hits")


@dataclass(frozen=True, slots=True)
class Job:
    """A job as its holder sees it. `accepted_pages` labels the pages of its parse that a person let through; set when that parse ends."""

    job_id: int
    doc_id: str
    source_id: str
    source_version: str
    content_hash: str | None
    index_version: str
    bucket: str
    lane: str
    operation: Operation
    attempts: int
    lease_epoch: int
    generation: int | None
    attempt_ulid: str | None
    acl_ids: tuple[str, ...] | None
    accepted_pages: str
    event_time: datetime
    embedded: int


@dataclass(frozen=True, slots=True)
class NewJob:
    """What a change asks for, one a document version; it becomes one job an open index version."""

    doc_id: str
    source_id: str
    source_version: str
    content_hash: str | None
    bucket: str
    lane: str
    operation: Operation
    event_time: datetime


_JOB_COLUMNS = [jobs.c[field.name] for field in fields(Job)]


def _job(row: Row[Any]) -> Job:
    values = dict(row._mapping)
    values["operation"] = Operation(values["operation"])
    values["acl_ids"] = None if values["acl_ids"] is None else tuple(values["acl_ids"])
    return Job(**values)


class Jobs:
    """Inserts, claims, completes and fails jobs."""

    def __init__(self, database: Database, policy: RetryPolicy, random: Random, ledger: Ledger, letters: DeadLetters) -> None:
        self._db = database
        self._ledger, self._letters = ledger, letters
        self._policy = policy
        self._random = random

    def add(self, connection: Connection, new: Iterable[NewJob], index_versions: Sequence[str]) -> None:
        """Inside the transaction that records the change: one job a (change, index version).

        Older jobs of the document that still wait are superseded, and so are its dead letters; one that is held goes on.
        A permission change supersedes permission changes only, since it brings no content.
        """
        now = self._db.now()
        for change in new:
            for version in index_versions:
                self._supersede_older(connection, change, version, now)
                self._insert(connection, change, version, now)
                if change.operation is Operation.COPY:
                    self._take_along(connection, change.doc_id, version)

    def add_replay(
        self,
        connection: Connection,
        change: NewJob,
        index_version: str,
        stage: Stage,
        accepted_pages: str,
        backfill_id: int | None = None,
    ) -> None:
        """Inside a transaction that has locked the document and found no job of it under way: one that begins at `stage`, on what the
        stage before made of the content with the pages that a person let through (their label). Its freshness is not counted; one of a
        backfill gives way to live work."""
        now = self._db.now()
        self._supersede_older(connection, change, index_version, now)
        self._insert(
            connection,
            change,
            index_version,
            now,
            stage=stage.name,
            state=stage.entry,
            accepted_pages=accepted_pages,
            changed_at=None,
            backfill_id=backfill_id,
            gives_way=backfill_id is not None,
        )

    def _take_along(self, connection: Connection, copy: str, index_version: str) -> None:
        """A copy's write waits for the rows that are to stand for it: a backfill's job that makes them gives way no longer."""
        leading = select(documents.c.canonical_doc_id).where(documents.c.doc_id == copy).scalar_subquery()
        mine = and_(jobs.c.doc_id == leading, jobs.c.index_version == index_version, LIVE, jobs.c.gives_way)
        connection.execute(update(jobs).where(mine).values(gives_way=False))

    def _supersede_older(self, connection: Connection, change: NewJob, index_version: str, now: datetime) -> None:
        mine = and_(jobs.c.doc_id == change.doc_id, jobs.c.index_version == index_version)
        replaced = [State.DEAD, *WAITING] if change.operation is not Operation.ACL else []
        waiting_acl = and_(jobs.c.operation == Operation.ACL, jobs.c.state.in_(WAITING))
        over = update(jobs).where(mine, or_(jobs.c.state.in_(replaced), waiting_acl))
        connection.execute(over.values(state=State.SUPERSEDED, finished_at=now))

    def add_rewrite(self, connection: Connection, change: NewJob, index_versions: Iterable[str]) -> None:
        """Inside a transaction: a permission change's job in each index version where none waits that can still see the change. A
        backfill's job that waits will: until it is done, the version has no rows of the document to write anew.

        A waiting job that somebody else has locked may just be claimed and see nothing, so it does not count. This waits for nobody.
        """
        for version in index_versions:
            rewrites = and_(jobs.c.operation == Operation.ACL, jobs.c.state == State.PENDING_WRITE)
            waiting = (
                select(jobs.c.job_id)
                .where(jobs.c.doc_id == change.doc_id, jobs.c.index_version == version)
                .where(or_(rewrites, and_(jobs.c.gives_way, jobs.c.state.in_(WAITING))))
                .limit(1)
                .with_for_update(skip_locked=True)
            )
            if connection.execute(waiting).one_or_none() is None:
                self._insert(connection, change, version, self._db.now())

    def _insert(self, connection: Connection, change: NewJob, index_version: str, now: datetime, **other: Any) -> None:
        # What waits behind a backfill's job that is held must not wait for the backfill, if that job's holder has died.
        mine = and_(jobs.c.doc_id == change.doc_id, jobs.c.index_version == index_version, jobs.c.state.in_(HELD), jobs.c.gives_way)
        connection.execute(update(jobs).where(mine).values(gives_way=False))
        state = entry_of(change.operation)
        values: dict[str, Any] = {"stage": stage_of(state).name, "state": state, "changed_at": _changed_at(change, now)}
        connection.execute(
            insert(jobs).values(
                doc_id=change.doc_id,
                source_id=change.source_id,
                source_version=change.source_version,
                content_hash=change.content_hash,
                index_version=index_version,
                bucket=change.bucket,
                lane=lane_of(change.operation, Lane(change.lane)),
                operation=change.operation,
                not_before=now,
                event_time=change.event_time,
                created_at=now,
                **(values | other),
            )
        )

    def supersede(self, connection: Connection, doc_id: str, now: datetime) -> None:
        """Inside the transaction that deletes a document of which nothing was indexed: whatever waits or died for it is of no use any
        more."""
        over = jobs.c.state.in_([State.DEAD, *WAITING])
        connection.execute(update(jobs).where(jobs.c.doc_id == doc_id, over).values(state=State.SUPERSEDED, finished_at=now))
        self._ledger.record_deleted(connection, doc_id, now)

    def claim(
        self,
        stage: Stage,
        index_version: str,
        buckets: Collection[str],
        owner: str,
        lease: timedelta,
        limit: int,
        lane: Lane | None = None,
        with_backfill: bool = True,
    ) -> list[Job]:
        """Take up to `limit` jobs that stand at the stage's entry, or whose holder's lease ran out (which spends an attempt).

        A document's jobs go in order and one at a time, see `blocked`. The access lane goes first, and what gives way
        last, or not at all unless `with_backfill`. With a lane, only that one's.
        """
        now = self._db.now()
        expired = and_(jobs.c.state == stage.holding, jobs.c.lease_until < now)
        here = and_(jobs.c.index_version == index_version, jobs.c.bucket.in_(list(buckets)))
        if lane is not None:
            here = and_(here, in_states(jobs.c.lane, [lane]))
        wanted = here if with_backfill else and_(here, ~jobs.c.gives_way)
        # A CTE, since Postgres may run a subquery that locks rows more than once, and would then take more than the limit.
        chosen = (
            select(jobs.c.job_id)
            .where(wanted, LIVE)
            .where(or_(and_(jobs.c.state == stage.entry, jobs.c.not_before <= now), expired), ~blocked(now))
            .order_by(case((ACCESS, 0), (jobs.c.gives_way, 2), else_=1), jobs.c.job_id)
            .limit(limit)
            .with_for_update(skip_locked=True)
            .cte("chosen")
        )
        take = (
            update(jobs)
            .where(jobs.c.job_id.in_(select(chosen.c.job_id)))
            .values(
                state=stage.holding,
                stage=stage.name,
                attempts=case((jobs.c.state == stage.holding, jobs.c.attempts + 1), else_=jobs.c.attempts),
                lease_owner=owner,
                lease_epoch=jobs.c.lease_epoch + 1,
                lease_until=now + lease,
            )
            .returning(*_JOB_COLUMNS)
        )
        last_chance_gone = and_(expired, jobs.c.attempts + 1 >= self._policy.max_attempts)
        with self._db.begin() as connection:
            self._letters.bury(
                connection,
                and_(here, LIVE, last_chance_gone),
                Reason.ATTEMPTS_EXHAUSTED,
                f"the worker died {self._policy.max_attempts} times in stage {stage.name}",
                now,
            )
            return sorted((_job(row) for row in connection.execute(take)), key=lambda job: job.job_id)

    def held(self, stage: Stage, index_version: str, buckets: Collection[str], owner: str) -> list[Job]:
        """The jobs that the owner holds in the stage, in order."""
        statement = (
            select(*_JOB_COLUMNS)
            .where(jobs.c.index_version == index_version, jobs.c.bucket.in_(list(buckets)), LIVE, jobs.c.state == stage.holding)
            .where(jobs.c.lease_owner == owner, jobs.c.lease_until >= self._db.now())
            .order_by(jobs.c.job_id)
        )
        with self._db.read() as connection:
            return [_job(row) for row in connection.execute(statement)]

    def renew(self, owner: str, lease: timedelta) -> int:
        """Hold the owner's jobs for another lease. Returns how many it still holds."""
        now = self._db.now()
        mine = and_(jobs.c.lease_owner == owner, LIVE, jobs.c.state.in_(HELD), jobs.c.lease_until >= now)
        with self._db.begin() as connection:
            return connection.execute(update(jobs).where(mine).values(lease_until=now + lease)).rowcount

    def complete(self, stage: Stage, done: Sequence[Job], owner: str, counts: Mapping[int, Mapping[str, int]]) -> list[Job]:
        """Advance jobs to where the stage's completion leads; one with a newer version behind it is superseded instead.

        `counts` maps job_id → figures of COUNTS to add. Returns the jobs that were still the owner's.
        """
        with self._db.begin() as connection:
            return self._complete(connection, stage, done, owner, counts, {})

    def complete_parse(
        self, connection: Connection, done: Sequence[Job], owner: str, counts: Mapping[int, Mapping[str, int]], accepted_pages: str
    ) -> list[Job]:
        """Inside the transaction that records a parse: complete its jobs like `complete`. They keep the label of the pages that were let
        through, so that every later stage reads what this parse gave."""
        return self._complete(connection, PARSE, done, owner, counts, {"accepted_pages": accepted_pages})

    def _complete(
        self,
        connection: Connection,
        stage: Stage,
        done: Sequence[Job],
        owner: str,
        counts: Mapping[int, Mapping[str, int]],
        facts: Mapping[str, str],
    ) -> list[Job]:
        now = self._db.now()
        is_overtaken = overtaken()
        kept = []
        for job in done:
            held = connection.execute(
                update(jobs)
                .where(_mine(job, owner, stage))
                .values(
                    state=case((is_overtaken, State.SUPERSEDED), else_=stage.done),
                    finished_at=case((is_overtaken, now), else_=None),
                    stage=stage_of(stage.done).name,
                    attempts=0,
                    lease_owner=None,
                    lease_until=None,
                    **_added(counts.get(job.job_id, {})),
                    **facts,
                )
            )
            if held.rowcount:
                kept.append(job)
        return kept

    def put_back(
        self,
        connection: Connection,
        stage: Stage,
        held: Sequence[Job],
        owner: str,
        lane: Lane | None = None,
        counts: Mapping[int, Mapping[str, int]] | None = None,
    ) -> None:
        """Inside a transaction: jobs back to the stage's entry, no attempt spent, in another lane if one is named. One with a newer version
        behind it is superseded. `counts` as in `complete`: what was done so far."""
        is_overtaken = overtaken()
        moved = {} if lane is None else {"lane": lane}
        for job in held:
            connection.execute(
                update(jobs)
                .where(_mine(job, owner, stage))
                .values(
                    state=case((is_overtaken, State.SUPERSEDED), else_=stage.entry),
                    finished_at=case((is_overtaken, self._db.now()), else_=None),
                    lease_owner=None,
                    lease_until=None,
                    **moved,
                    **_added((counts or {}).get(job.job_id, {})),
                )
            )

    def step_back(self, connection: Connection, stage: Stage, held: Sequence[Job], owner: str, to: Stage) -> None:
        """Inside a transaction: jobs back to the entry of an earlier stage, no attempt spent: what that stage made is not there any more.
        One with a newer version behind it is superseded."""
        is_overtaken = overtaken()
        for job in held:
            values = {
                "state": case((is_overtaken, State.SUPERSEDED), else_=to.entry),
                "finished_at": case((is_overtaken, self._db.now()), else_=None),
            }
            back = update(jobs).where(_mine(job, owner, stage))
            connection.execute(back.values(**values, stage=to.name, lease_owner=None, lease_until=None))

    def fail(self, stage: Stage, job: Job, owner: str, error: PrimerError) -> None:
        """Put a job where its error leads: dead letter, back with backoff, or deferred. A job that is no longer the owner's is left, and
        nobody needs a dead letter of a version that has a newer one behind it."""
        now = self._db.now()
        mine = _mine(job, owner, stage)
        with self._db.begin() as connection:
            if isinstance(error, DocumentFault):
                over = update(jobs).where(mine, overtaken())
                connection.execute(over.values(state=State.SUPERSEDED, finished_at=now, lease_owner=None, lease_until=None))
                connection.execute(update(jobs).where(mine).values(attempts=jobs.c.attempts + 1))
                self._letters.bury(connection, mine, error.reason, error.message, now)
                return
            spent = 0 if isinstance(error, Deferred) else 1
            wait = DEFER if isinstance(error, Deferred) else compute_backoff(self._policy, job.attempts + 1, self._random)
            connection.execute(update(jobs).where(mine).values(attempts=jobs.c.attempts + spent, error=str(error)))
            exhausted = and_(mine, jobs.c.attempts >= self._policy.max_attempts)
            self._letters.bury(connection, exhausted, Reason.ATTEMPTS_EXHAUSTED, str(error), now)
            connection.execute(
                update(jobs).where(mine).values(state=stage.entry, not_before=now + wait, lease_owner=None, lease_until=None)
            )

    def release(self, owner: str) -> int:
        """Put back all that the owner holds, no attempt spent: it stops in good order. Returns how many."""
        with self._db.begin() as connection:
            return sum(
                connection.execute(
                    update(jobs)
                    .where(jobs.c.lease_owner == owner, LIVE, jobs.c.state == state)
                    .values(state=stage_of(state).entry, lease_owner=None, lease_until=None)
                ).rowcount
                for state in HELD
            )

    def prune(self, older_than: datetime, limit: int) -> int:
        """Delete up to `limit` finished jobs older than a time; dead letters stay. Returns how many."""
        chosen = select(jobs.c.job_id).where(in_states(jobs.c.state, ENDED), jobs.c.finished_at < older_than).limit(limit)
        with self._db.begin() as connection:
            return connection.execute(delete(jobs).where(jobs.c.job_id.in_(chosen))).rowcount


def _added(counts: Mapping[str, int]) -> dict[str, ColumnElement[int]]:
    """Figures of COUNTS added to what the job has."""
    return {name: jobs.c[name] + value for name, value in counts.items()}


def _changed_at(change: NewJob, now: datetime) -> ColumnElement[datetime | None]:
    """From when a change's freshness counts, see the table; a source's clock that runs ahead counts as now."""
    kind = jobs.c.changed_at.type
    told, began = literal(min(change.event_time, now), kind), sources.c.last_began_at
    seen = select(case((began.is_(None), None), (began > told, began), else_=told)).where(sources.c.source_id == change.source_id)
    return seen.scalar_subquery()


def _mine(job: Job, owner: str, stage: Stage) -> ColumnElement[bool]:
    """The guard of every transition: the job is still in this stage's hands, under this lease."""
    return and_(
        jobs.c.job_id == job.job_id,
        jobs.c.state == stage.holding,
        jobs.c.lease_owner == owner,
        jobs.c.lease_epoch == job.lease_epoch,
    )
