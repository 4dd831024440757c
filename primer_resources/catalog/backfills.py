"""Backfills: an index version filled with what lives already, bucket by bucket, behind the changes that are written to it anyway.

The version is open for writing before its backfill is begun, so every change since then has a job in it. The snapshot is a cursor by doc_id
in each bucket; a page of it is looked at under the documents' locks, gets its jobs and moves the cursor in one transaction. What has a job
in the version, or an outcome of the document's present version, is passed over: a backfill never writes over what is newer. Only so much
is taken up as runs are about to do, so the table of jobs stays small whatever the corpus.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row, and_, exists, func, insert, select, update

from primer_core.backfills import BackfillReason, BackfillState, Progress, allowance, is_remade, spent
from primer_core.failures import DocumentFault, PrimerError, Reason
from primer_core.index_versions import VersionState
from primer_core.replay import ReplayVerdict, judge_replay
from primer_core.stages import CHUNK, EMBED, HELD, PARSE, WAITING, WRITE, Stage, State
from primer_resources.catalog.contents import lock_contents
from primer_resources.catalog.database import Database
from primer_resources.catalog.dead_letters import DeadLetters
from primer_resources.catalog.deployments import Deployments, IndexVersion
from primer_resources.catalog.generations import lock_documents
from primer_resources.catalog.jobs import Jobs
from primer_resources.catalog.ledger import Ledger
from primer_resources.catalog.replays import Facts, Replays
from primer_resources.catalog.schema import LIVE_STATES, documents, in_states, jobs
from primer_resources.catalog.schema_versions import backfill_buckets, backfills
from primer_resources.catalog.sources import Sources

PAGE = 200
"""Documents taken up in one transaction: few enough that no sync waits long for their locks."""
UNREAD = ""
"""The bucket of documents that have none, since their bytes were never read."""
OPEN = (BackfillState.RUNNING, BackfillState.PAUSED)


@dataclass(frozen=True, slots=True)
class Backfill:
    """A backfill as it was begun, and how far its snapshot was taken: `taken_up` documents were looked at, of which `standing` needed no
    job and `asked` wait for their source."""

    backfill_id: int
    index_version: str
    reason: BackfillReason
    state: BackfillState
    max_docs_per_s: float | None
    total: int
    taken_up: int
    standing: int
    asked: int
    begun_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the snapshot: how many documents were looked at, how many jobs were made, and whether the bucket is at its end."""

    documents: int
    jobs: int
    is_last: bool


_NOTHING = Page(0, 0, is_last=False)
_COLUMNS = [backfills.c[name] for name in Backfill.__dataclass_fields__]


class Backfills:
    """Begins, feeds, steers and ends backfills."""

    def __init__(
        self,
        database: Database,
        deployments: Deployments,
        replays: Replays,
        jobs_: Jobs,
        letters: DeadLetters,
        ledger: Ledger,
        sources: Sources,
    ) -> None:
        self._db = database
        self._deployments, self._replays, self._sources = deployments, replays, sources
        self._jobs, self._dead_letters, self._ledger = jobs_, letters, ledger

    def count_living(self) -> int:
        """How many documents live: a look at one index, once a backfill."""
        with self._db.read() as connection:
            statement = select(func.count()).select_from(documents).where(documents.c.deleted_at.is_(None))
            return connection.execute(statement).scalar_one()

    def begin(self, version: IndexVersion, reason: BackfillReason, max_docs_per_s: float | None, buckets: Sequence[str]) -> Backfill:
        """Begin the backfill of a version that is being built. Raises PrimerError where the version is none, where a backfill of it is not
        finished yet, and for a rate that is not above 0."""
        if version.state is not VersionState.BUILDING:
            raise PrimerError(f"index version {version.name} is {version.state}; only one that is being built is filled")
        if max_docs_per_s is not None and max_docs_per_s <= 0:
            raise PrimerError(f"max_docs_per_s = {max_docs_per_s} would never take up a document; give a number above 0, or none")
        total, now = self.count_living(), self._db.now()
        with self._db.begin() as connection:
            self._deployments.lock_versions(connection)
            open_ = connection.execute(select(*_COLUMNS).where(_is_open(), backfills.c.index_version == version.name)).first()
            if open_ is not None:
                raise PrimerError(
                    f"backfill {open_.backfill_id} of {version.name} is {open_.state} already; `primer backfill resume {open_.backfill_id}`"
                    " goes on with it, and `primer backfill cancel` ends it"
                )
            row = {
                "index_version": version.name,
                "reason": reason,
                "state": BackfillState.RUNNING,
                "max_docs_per_s": max_docs_per_s,
                "earned_since": now,
                "total": total,
                **dict.fromkeys(("taken_up", "standing", "asked"), 0),
                "begun_at": now,
            }
            made = connection.execute(insert(backfills).values(row).returning(*_COLUMNS)).one()
            cursors = [{"backfill_id": made.backfill_id, "bucket": bucket, "after": "", "is_ended": False} for bucket in (UNREAD, *buckets)]
            connection.execute(insert(backfill_buckets), cursors)
        return _backfill(made)

    def find(self, backfill_id: int) -> Backfill:
        """A backfill by id. Raises PrimerError where there is none."""
        with self._db.read() as connection:
            row = connection.execute(select(*_COLUMNS).where(backfills.c.backfill_id == backfill_id)).one_or_none()
        if row is None:
            raise PrimerError(f"there is no backfill {backfill_id}; `primer backfill status` lists them")
        return _backfill(row)

    def all(self) -> list[Backfill]:
        """All backfills, newest first."""
        with self._db.read() as connection:
            return [_backfill(row) for row in connection.execute(select(*_COLUMNS).order_by(backfills.c.backfill_id.desc()))]

    def running(self) -> list[Backfill]:
        """The backfills that are to go on, oldest first."""
        statement = select(*_COLUMNS).where(in_states(backfills.c.state, [BackfillState.RUNNING])).order_by(backfills.c.backfill_id)
        with self._db.read() as connection:
            return [_backfill(row) for row in connection.execute(statement)]

    def newest(self, connection: Connection, index_version: str) -> Backfill | None:
        """Inside a transaction: the newest backfill of a version that was not cancelled."""
        mine = and_(backfills.c.index_version == index_version, backfills.c.state != BackfillState.CANCELLED)
        row = connection.execute(select(*_COLUMNS).where(mine).order_by(backfills.c.backfill_id.desc()).limit(1)).one_or_none()
        return None if row is None else _backfill(row)

    def progress(self, backfill: Backfill) -> Progress:
        """How far a backfill is: its jobs that are not at their end are few, and its dead letters are counted. What is asked for at its
        source is done, as far as the backfill goes."""
        of = jobs.c.backfill_id == backfill.backfill_id
        with self._db.read() as connection:
            left = connection.execute(select(func.count()).select_from(jobs).where(of, in_states(jobs.c.state, LIVE_STATES))).scalar_one()
            dead = connection.execute(select(func.count()).select_from(jobs).where(of, in_states(jobs.c.state, [State.DEAD]))).scalar_one()
        return Progress(max(backfill.total, backfill.taken_up), max(0, backfill.taken_up - left - dead), dead)

    def steer(self, backfill_id: int, state: BackfillState) -> Backfill:
        """Pause, resume or cancel. Cancelling supersedes the jobs that wait; one that is held goes on, and what is written stays.

        Raises PrimerError where the backfill is at its end already."""
        now = self._db.now()
        with self._db.begin() as connection:
            mine = and_(backfills.c.backfill_id == backfill_id, _is_open())
            values: dict[str, Any] = {"state": state, "earned_since": now}
            if state is BackfillState.CANCELLED:
                values["ended_at"] = now
            row = connection.execute(update(backfills).where(mine).values(**values).returning(*_COLUMNS)).one_or_none()
            if row is not None and state is BackfillState.CANCELLED:
                waiting = and_(jobs.c.backfill_id == backfill_id, jobs.c.gives_way, in_states(jobs.c.state, WAITING))
                connection.execute(update(jobs).where(waiting).values(state=State.SUPERSEDED, finished_at=now))
                # If the holder has died, nobody but live work is there to take these up.
                held = and_(jobs.c.backfill_id == backfill_id, in_states(jobs.c.state, HELD))
                connection.execute(update(jobs).where(held).values(gives_way=False))
        if row is None:
            raise PrimerError(f"backfill {backfill_id} is {self.find(backfill_id).state}; it is at its end, begin another one")
        return _backfill(row)

    def finish(self, backfill_id: int) -> bool:
        """End a backfill whose snapshot is taken whole and whose jobs are all at their end. Returns whether it is finished now."""
        left = exists().where(jobs.c.backfill_id == backfill_id, in_states(jobs.c.state, LIVE_STATES))
        unread = exists().where(backfill_buckets.c.backfill_id == backfill_id, ~backfill_buckets.c.is_ended)
        mine = and_(backfills.c.backfill_id == backfill_id, in_states(backfills.c.state, [BackfillState.RUNNING]))
        with self._db.begin() as connection:
            done = connection.execute(
                update(backfills).where(mine, ~left, ~unread).values(state=BackfillState.FINISHED, ended_at=self._db.now())
            )
        return done.rowcount == 1

    def feed(self, backfill: Backfill, buckets: Collection[str], most_waiting: int) -> int:
        """Take up documents of some buckets until so many jobs wait there, the rate is used up, or the buckets are at their end. The
        documents without a bucket go with whichever comes first. Returns how many were looked at."""
        looked, ended = 0, False
        for bucket in (UNREAD, *sorted(buckets)):
            waiting = self._waiting(backfill, bucket)
            ended = False
            while not ended and waiting < most_waiting:
                page = self.take_page(backfill.backfill_id, bucket, min(PAGE, most_waiting - waiting))
                looked, waiting, ended = looked + page.documents, waiting + page.jobs, page.is_last
                if not page.documents:
                    break
        return looked

    def _waiting(self, backfill: Backfill, bucket: str) -> int:
        mine = and_(jobs.c.index_version == backfill.index_version, jobs.c.bucket == bucket, in_states(jobs.c.state, LIVE_STATES))
        with self._db.read() as connection:
            return connection.execute(select(func.count()).select_from(jobs).where(mine, jobs.c.gives_way)).scalar_one()

    def take_page(self, backfill_id: int, bucket: str, limit: int) -> Page:
        """Take up the next documents of a bucket, as many as the rate has earned and at most `limit`, in one transaction."""
        now = self._db.now()
        with self._db.begin() as connection:
            mine = and_(backfills.c.backfill_id == backfill_id, in_states(backfills.c.state, [BackfillState.RUNNING]))
            row = connection.execute(select(backfills).where(mine).with_for_update()).one_or_none()
            here = and_(backfill_buckets.c.backfill_id == backfill_id, backfill_buckets.c.bucket == bucket)
            cursor = connection.execute(select(backfill_buckets).where(here)).one_or_none()
            if row is None or cursor is None or cursor.is_ended:
                return Page(0, 0, is_last=True)
            allowed = allowance(row.max_docs_per_s, row.earned_since, now, limit)
            if not allowed.documents:
                return _NOTHING
            page = self._ids(connection, bucket, cursor.after, allowed.documents)
            is_last = len(page) < allowed.documents
            made, standing, asked = self._take_up(connection, row, page)
            moved = {"after": page[-1] if page else cursor.after, "is_ended": is_last}
            connection.execute(update(backfill_buckets).where(here).values(**moved))
            counts = {"taken_up": len(page), "standing": standing, "asked": asked}
            connection.execute(
                update(backfills)
                .where(backfills.c.backfill_id == backfill_id)
                .values(
                    earned_since=spent(row.max_docs_per_s, allowed.since, len(page)),
                    **{name: backfills.c[name] + count for name, count in counts.items()},
                )
            )
        return Page(len(page), made, is_last)

    def _ids(self, connection: Connection, bucket: str, after: str, limit: int) -> list[str]:
        there = documents.c.bucket.is_(None) if bucket == UNREAD else documents.c.bucket == bucket
        statement = select(documents.c.doc_id).where(there, documents.c.deleted_at.is_(None), documents.c.doc_id > after)
        return list(connection.execute(statement.order_by(documents.c.doc_id).limit(limit)).scalars())

    def _take_up(self, connection: Connection, backfill: Row[Any], page: Sequence[str]) -> tuple[int, int, int]:
        """Jobs for a page of documents, and for the documents that its copies are copies of, so that no copy comes before the rows that
        are to stand for it. Returns how many jobs were made, how many documents of the page needed none, and how many are asked for."""
        held = connection.execute(select(documents).where(documents.c.doc_id.in_(page))).all()
        every = sorted({*page, *(row.canonical_doc_id for row in held)})
        lock_contents(connection, {(row.tenant_id, row.content_hash) for row in held if row.content_hash is not None})
        lock_documents(connection, every)
        versions = {version.name: version for version in self._deployments.versions_in(connection)}
        target = versions[backfill.index_version]
        live = next((version for version in versions.values() if version.state is VersionState.LIVE), None)
        known = self._replays.facts(connection, every, target)
        here = self._ledger.entries(connection, every, target.name)
        letters = {} if live is None else self._letters(connection, every, live.name)
        made = standing = 0
        fetched: list[Facts] = []
        for doc_id in sorted(every, key=lambda each: (known[each].is_copy, each)):
            facts, entry = known[doc_id], here.get(doc_id)
            is_present = entry is not None and entry.source_version == facts.row.source_version
            if facts.row.deleted_at is not None or facts.is_under_way or is_present:
                standing += doc_id in page
                continue
            letter = letters.get(doc_id)
            if letter is not None and live is not None and not (is_remade(letter.stage, live.recipe, target.recipe) and facts.row.bucket):
                self._carry_over(connection, facts, letter, target)
                standing += doc_id in page
                continue
            stage = self._stage(facts, target)
            if stage is None:
                fetched.append(facts)
                continue
            self._jobs.add_replay(
                connection, facts.job(stage, self._db.now()), target.name, stage, facts.accepted_pages, backfill.backfill_id
            )
            made += 1
        self._ask(connection, fetched, target)
        return made, standing, len(fetched)

    def _stage(self, facts: Facts, target: IndexVersion) -> Stage | None:
        """The last stage that has all it needs; None where not even the parse has, so that the source is asked for the bytes."""
        if facts.is_copy:
            return WRITE
        for stage in (EMBED, CHUNK, PARSE):
            if judge_replay(stage, facts.kept(target, source_stands=True)).verdict is ReplayVerdict.REPLAYABLE:
                return stage
        return None

    def _letters(self, connection: Connection, doc_ids: Sequence[str], live: str) -> dict[str, Row[Any]]:
        """doc_id → the dead letter of its present version in the live index version."""
        mine = and_(jobs.c.doc_id.in_(doc_ids), jobs.c.index_version == live, in_states(jobs.c.state, [State.DEAD]))
        present = and_(documents.c.doc_id == jobs.c.doc_id, documents.c.source_version == jobs.c.source_version)
        rows = connection.execute(select(jobs).join(documents, present).where(mine).order_by(jobs.c.job_id))
        return {row.doc_id: row for row in rows}

    def _carry_over(self, connection: Connection, facts: Facts, letter: Row[Any], target: IndexVersion) -> None:
        """What failed would fail in the same way again: the letter is as good as one that the version has earned itself."""
        job = facts.job(PARSE, letter.event_time)
        fault = DocumentFault(Reason(letter.reason), letter.error)
        self._dead_letters.add(connection, job, [target.name], letter.stage, fault)

    def _ask(self, connection: Connection, fetched: Sequence[Facts], target: IndexVersion) -> None:
        """Documents whose bytes are not kept come back with the next sync of their source, which writes them to every open version."""
        for facts in fetched:
            self._replays.parse_anew(connection, facts, target)
        self._replays.fetch_again(connection, [facts.row.doc_id for facts in fetched])
        for source_id in sorted({facts.row.source_id for facts in fetched}):
            self._sources.make_due(connection, source_id, in_full=True)

    def yields(self, late_after: timedelta, oldest_live: datetime | None) -> bool:
        """Whether live work is so late that a backfill is to wait: its oldest job counts from `oldest_live` on."""
        return oldest_live is not None and self._db.now() - oldest_live > late_after


def _is_open() -> Any:
    return in_states(backfills.c.state, OPEN)


def _backfill(row: Row[Any]) -> Backfill:
    values = {name: getattr(row, name) for name in Backfill.__dataclass_fields__}
    return Backfill(**{**values, "reason": BackfillReason(row.reason), "state": BackfillState(row.state)})
