"""Dead letters: jobs that ended without their document being indexed, each with its reason, and an operator's retry of them."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, insert, select, update

from primer_core.failures import DocumentFault, Reason
from primer_core.outcomes import Outcome, Receipt
from primer_core.stages import WAITING, Operation, State
from primer_resources.catalog.database import Database
from primer_resources.catalog.deployments import LIVE_VERSION, is_live
from primer_resources.catalog.generations import bury_intents, lock_documents
from primer_resources.catalog.ledger import Ledger
from primer_resources.catalog.schema import documents, in_states, jobs

if TYPE_CHECKING:
    from primer_resources.catalog.jobs import NewJob

_COLUMNS = (jobs.c.job_id, jobs.c.doc_id, jobs.c.source_id, jobs.c.index_version, jobs.c.source_version, jobs.c.content_hash)


class DeadLetters:
    """Makes dead letters, tells the ledger of them, and takes them back."""

    def __init__(self, database: Database, ledger: Ledger) -> None:
        self._db = database
        self._ledger = ledger

    def add(self, connection: Connection, change: "NewJob", index_versions: Sequence[str], stage: str, fault: DocumentFault) -> None:
        """Inside a transaction: a dead letter for a document that never got as far as a job. It replaces the document's earlier ones."""
        now = self._db.now()
        for version in index_versions:
            mine = and_(jobs.c.doc_id == change.doc_id, jobs.c.index_version == version)
            connection.execute(update(jobs).where(mine, jobs.c.state == State.DEAD).values(state=State.SUPERSEDED, finished_at=now))
            statement = insert(jobs).values(
                doc_id=change.doc_id,
                source_id=change.source_id,
                source_version=change.source_version,
                content_hash=change.content_hash,
                index_version=version,
                bucket=change.bucket or None,
                lane=change.lane,
                operation=change.operation,
                stage=stage,
                state=State.DEAD,
                attempts=1,
                reason=fault.reason,
                error=fault.message,
                not_before=now,
                event_time=change.event_time,
                created_at=now,
                finished_at=now,
            )
            row = connection.execute(statement.returning(*_COLUMNS)).one()
            self._record(connection, [row], fault.reason, fault.message, now)

    def bury(self, connection: Connection, which: ColumnElement[bool], reason: Reason, error: str, now: datetime) -> None:
        """Inside a transaction: make dead letters of jobs; the document says why, if it died in the live version, and rows that were
        about to be written are purged."""
        dead = connection.execute(
            update(jobs)
            .where(which)
            .values(state=State.DEAD, reason=reason, error=error, finished_at=now, lease_owner=None, lease_until=None)
            .returning(*_COLUMNS)
        ).all()
        lock_documents(connection, [row.doc_id for row in dead])
        for row in sorted(dead, key=lambda row: row.doc_id):  # in the order that all lock documents in
            connection.execute(
                update(documents)
                .where(documents.c.doc_id == row.doc_id, documents.c.source_version == row.source_version)
                .where(documents.c.deleted_at.is_(None), is_live(row.index_version))
                .values(status="dead_letter", reason=reason)
            )
            bury_intents(connection, row.index_version, row.doc_id, now)
        self._record(connection, dead, reason, error, now)

    def retry(self, job_ids: Collection[int]) -> int:
        """An operator's retry of dead letters: back to the stage's entry with fresh attempts. Returns how many of them moved.

        One that never had its bytes has nothing to go on with: the next sync fetches it again. A copy that died with its content takes
        the letter of its canonical document along, without which it could only die again.
        """
        now = self._db.now()
        moved = 0
        asked = and_(jobs.c.job_id.in_(list(job_ids)), jobs.c.state == State.DEAD)
        with self._db.begin() as connection:
            letters = {row.job_id: row.doc_id for row in connection.execute(select(jobs.c.job_id, jobs.c.doc_id).where(asked))}
            along = {row.job_id: row.doc_id for row in connection.execute(_canonicals_letters(asked))}
            lock_documents(connection, {*letters.values(), *along.values()})
            live = connection.execute(LIVE_VERSION).scalar_one_or_none()
            chosen = and_(jobs.c.job_id.in_({*letters, *along}), jobs.c.state == State.DEAD)
            for name, entry in (("parse", WAITING[0]), ("chunk", WAITING[1]), ("embed", WAITING[2]), ("write", WAITING[3])):
                rows = connection.execute(
                    update(jobs)
                    .where(chosen, jobs.c.stage == name)
                    .values(state=entry, attempts=0, not_before=now, reason=None, error=None, finished_at=None, changed_at=None)
                    .returning(jobs.c.job_id, jobs.c.doc_id, jobs.c.index_version)
                ).all()
                moved += sum(row.job_id in letters for row in rows)
                ids = [row.doc_id for row in rows if row.index_version == live]
                connection.execute(update(documents).where(documents.c.doc_id.in_(ids)).values(status="pending", reason=None))
        return moved

    def _record(self, connection: Connection, dead: Sequence[Row[Any]], reason: Reason, error: str, now: datetime) -> None:
        """Dead letters into the ledger. Their ULIDs are taken now: a death is decided under the job's guard and the document's lock, so
        nothing newer is known of the document."""
        receipts = []
        for version in sorted({row.index_version for row in dead}):
            mine = [row for row in dead if row.index_version == version]
            marks = self._ledger.attempts(connection, version, [row.doc_id for row in mine], now)
            receipts += [
                Receipt(
                    doc_id=row.doc_id,
                    index_version=version,
                    source_id=row.source_id,
                    attempt_ulid=marks[row.doc_id],
                    outcome=Outcome.DEAD,
                    source_version=row.source_version,
                    content_hash=row.content_hash,
                    chunks=0,
                    reason=reason,
                    error=error,
                    job_id=row.job_id,
                    ended_at=now,
                )
                for row in mine
            ]
        self._ledger.record(connection, receipts)


def _canonicals_letters(asked: ColumnElement[bool]) -> Select[Any]:
    """Dead letters of the documents that the copies among the letters asked for are copies of."""
    letter, copy = jobs.alias("letter"), documents.alias("copy")
    return (
        select(letter.c.job_id, letter.c.doc_id)
        .select_from(jobs)
        .join(copy, copy.c.doc_id == jobs.c.doc_id)
        .join(letter, and_(letter.c.doc_id == copy.c.canonical_doc_id, letter.c.index_version == jobs.c.index_version))
        .where(asked, jobs.c.operation == Operation.COPY, in_states(letter.c.state, [State.DEAD]))
    )
