"""Generations: intents before the indexes are written, the flip that makes rows count, and the purges after it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Row, and_, case, delete, exists, literal, select, update

from primer_core.failures import LeaseLost
from primer_core.ids import row_id
from primer_core.outcomes import Receipt, outcome_of
from primer_core.stages import Operation, State
from primer_resources.catalog.database import Database
from primer_resources.catalog.deployments import is_live
from primer_resources.catalog.lanes import Lanes
from primer_resources.catalog.schema import chunks, documents, index_state, intents, jobs, ledger, purges_due
from primer_resources.catalog.schema_bodies import PENDING_PURGE, stored_states
from primer_resources.catalog.upsert import insert_if_absent, insert_or_update

if TYPE_CHECKING:
    from primer_resources.catalog.copies import Copies
    from primer_resources.catalog.jobs import Job
    from primer_resources.catalog.ledger import Ledger

T = TypeVar("T")

SLICE = 500
"""Values in one IN list: SQLite admits 32,766 parameters a statement, and plans stay small."""


@dataclass(frozen=True, slots=True)
class WriteState:
    """What a document's rows are now, and the generation under which its holder writes new ones.

    `manifest` maps chunk_id → added_gen; `acl_ids`, `content_hash` and `accepted_pages` are what those rows were written with.
    """

    doc_id: str
    claimed_generation: int
    manifest: Mapping[str, int]
    acl_ids: tuple[str, ...] | None
    content_hash: str | None
    accepted_pages: str


@dataclass(frozen=True, slots=True)
class ChunkRecord:
    """A chunk as the catalog lists it. `text_hash` is the SHA-256 of the string that was embedded."""

    chunk_id: str
    text_hash: str
    ordinal: int
    heading_path: tuple[str, ...]
    page: int | None
    token_count: int


@dataclass(frozen=True, slots=True)
class Flip:
    """One document's step to its new generation."""

    job: "Job"
    generation: int
    manifest: Mapping[str, int]
    removed: tuple[str, ...]
    chunks: tuple[ChunkRecord, ...]
    acl_ids: tuple[str, ...]
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Left:
    """A document that was indexed as a copy of a content until its flip, and is not any more."""

    doc_id: str
    content_hash: str


@dataclass(frozen=True, slots=True)
class _Moved:
    """What a flip made of its document: what it was a copy of and is not any more, and whether it is one now."""

    left: Sequence[Left]
    is_copy: bool


@dataclass(frozen=True, slots=True)
class Purge:
    """A row to delete from both indexes."""

    row_id: str
    bucket: str


def removed_rows(old: Mapping[str, int], new: Mapping[str, int]) -> tuple[str, ...]:
    """The rows of the old manifest that the new one does not hold, in a stable order."""
    return tuple(row_id(chunk, gen) for chunk, gen in sorted(old.items()) if new.get(chunk) != gen)


def bury_intents(connection: Connection, index_version: str, doc_id: str, now: datetime, before: int | None = None) -> None:
    """Turn a document's intents (those of generations under `before`, or all) into purges that are dead from their own generation on.

    Otherwise a later generation would uncover rows that a crash left in an index.
    """
    mine = and_(intents.c.index_version == index_version, intents.c.doc_id == doc_id)
    if before is not None:
        mine = and_(mine, intents.c.generation < before)
    columns = ["index_version", "row_id", "doc_id", "bucket", "dead_gen", "at"]
    copied = select(
        intents.c.index_version,
        intents.c.row_id,
        intents.c.doc_id,
        intents.c.bucket,
        intents.c.generation,
        literal(now, purges_due.c.at.type),
    ).where(mine)
    connection.execute(purges_due.insert().from_select(columns, copied))
    connection.execute(delete(intents).where(mine))


def lock_documents(connection: Connection, doc_ids: Iterable[str]) -> None:
    """Lock document rows by doc_id, the order in which every transaction that changes several must take them, lest two wait for each other.

    SQLite has one writer at a time and nothing to lock.
    """
    for part in slices(sorted(set(doc_ids))):
        connection.execute(
            select(documents.c.doc_id).where(documents.c.doc_id.in_(part)).order_by(documents.c.doc_id).with_for_update(key_share=True)
        )


class Generations:
    """Opens, records and flips the generations of documents, and keeps what is to be purged."""

    def __init__(self, database: Database, lanes: Lanes, copies: "Copies", book: "Ledger") -> None:
        self._db = database
        self._lanes = lanes
        self._copies = copies
        self._ledger = book

    def open(self, held: Sequence["Job"], owner: str) -> list[tuple["Job", WriteState]]:
        """Give each job that is still the owner's a generation of its own; intents of earlier tries become purges.

        Returns each job as it stands now, with the state. The ACL ids that the rows are to carry are kept on the job, so that all
        steps write and flip the same.
        A fresh generation a try means that a holder that lost its lease can never write the rows of the next one. The try's ULID is
        taken here too, so that in the ledger it comes after every earlier one, and before those that begin while it writes.
        """
        now = self._db.now()
        opened: list[tuple[Job, WriteState]] = []
        with self._db.begin() as connection:
            marks = {
                version: self._ledger.attempts(connection, version, [job.doc_id for job in held if job.index_version == version], now)
                for version in {job.index_version for job in held}
            }
            for job in held:
                mark = marks[job.index_version][job.doc_id]
                key = {"doc_id": job.doc_id, "index_version": job.index_version}
                fresh = {**key, "generation": 0, "previous_generation": 0, "claimed_generation": 0, "manifest": {}}
                connection.execute(insert_if_absent(self._db, index_state), fresh)
                row = connection.execute(
                    update(index_state)
                    .where(index_state.c.doc_id == job.doc_id, index_state.c.index_version == job.index_version)
                    .values(claimed_generation=index_state.c.claimed_generation + 1)
                    .returning(*_STATE_COLUMNS)
                ).one()
                held_content = row.content_hash if job.operation is Operation.ACL else job.content_hash
                acl_ids = self._copies.acl_ids(connection, job.doc_id, job.index_version, held_content)
                mine = connection.execute(
                    update(jobs)
                    .where(jobs.c.job_id == job.job_id, jobs.c.lease_owner == owner, jobs.c.lease_epoch == job.lease_epoch)
                    .where(jobs.c.state == State.WRITING)
                    .values(generation=row.claimed_generation, attempt_ulid=mark, acl_ids=list(acl_ids))
                )
                if mine.rowcount == 1:
                    bury_intents(connection, job.index_version, job.doc_id, now, before=row.claimed_generation)
                    mine_now = replace(job, generation=row.claimed_generation, attempt_ulid=mark, acl_ids=acl_ids)
                    opened.append((mine_now, _state(row)))
        return opened

    def states(self, index_version: str, doc_ids: Collection[str]) -> dict[str, WriteState]:
        """doc_id → state of documents that have one in the index version."""
        found: dict[str, WriteState] = {}
        with self._db.read() as connection:
            for part in slices(sorted(doc_ids)):
                rows = connection.execute(
                    select(*_STATE_COLUMNS).where(index_state.c.index_version == index_version, index_state.c.doc_id.in_(part))
                )
                found.update({row.doc_id: _state(row) for row in rows})
        return found

    def intend(self, index_version: str, planned: Iterable[tuple["Job", int, Sequence[str]]]) -> None:
        """Record the rows about to be written, as (job, generation, row ids), before any index sees one.

        Raises LeaseLost where another holder has one of the jobs: rows without an intent would never be purged.
        """
        writes = list(planned)
        rows = [
            {"index_version": index_version, "row_id": row, "doc_id": job.doc_id, "bucket": job.bucket, "generation": generation}
            for job, generation, row_ids in writes
            for row in row_ids
        ]
        with self._db.begin() as connection:
            for job, generation, _ in writes:
                held = connection.execute(
                    update(jobs)
                    .where(jobs.c.job_id == job.job_id, jobs.c.lease_epoch == job.lease_epoch)
                    .where(jobs.c.state == State.WRITING, jobs.c.generation == generation)
                    .values(generation=generation)
                )
                if held.rowcount != 1:
                    raise LeaseLost(f"job {job.job_id} of document {job.doc_id} in {index_version}: another run has taken it over")
            if rows:
                connection.execute(insert_if_absent(self._db, intents), rows)

    def bury_lost(self, index_version: str, planned: Sequence[tuple["Job", int, Sequence[str]]], owner: str) -> set[int]:
        """Which jobs the owner has lost, of those whose rows it is about to write or just wrote, as (job, generation, row ids).

        The rows of these become purges, once more where they were that before: a process that was suspended may write them when
        its successor has purged what it left and forgotten it, and then nothing else would keep them from being seen. Returns job ids.
        """
        lost: list[tuple[Job, int, Sequence[str]]] = []
        for part in slices(planned):
            mine = and_(jobs.c.job_id.in_([job.job_id for job, _, _ in part]), jobs.c.lease_owner == owner, jobs.c.state == State.WRITING)
            with self._db.read() as connection:
                rows = connection.execute(select(jobs.c.job_id, jobs.c.lease_epoch, jobs.c.generation).where(mine))
            held = {(row.job_id, row.lease_epoch, row.generation) for row in rows}
            lost += [each for each in part if (each[0].job_id, each[0].lease_epoch, each[1]) not in held]
        if lost:
            now = self._db.now()
            with self._db.begin() as connection:
                for job, generation, row_ids in lost:
                    connection.execute(
                        delete(intents).where(
                            intents.c.index_version == index_version,
                            intents.c.doc_id == job.doc_id,
                            intents.c.generation == generation,
                        )
                    )
                    purge = {"index_version": index_version, "doc_id": job.doc_id, "bucket": job.bucket, "dead_gen": generation, "at": now}
                    if row_ids:
                        connection.execute(
                            insert_or_update(self._db, purges_due, ("at", "done_at")),
                            [{**purge, "row_id": row, "done_at": None} for row in row_ids],
                        )
        return {job.job_id for job, _, _ in lost}

    def flip(self, index_version: str, epochs: Mapping[str, int], owner: str, flips: Sequence[Flip]) -> list["Job"]:
        """Make the new generations count, in one transaction; returns the jobs that were still the owner's.

        Raises LeaseLost where a lane changed hands: then nothing of it happened.
        """
        now = self._db.now()
        done: list[Job] = []
        left: list[Left] = []
        receipts: list[Receipt] = []
        made = {f.job.doc_id: f.job.content_hash for f in flips if f.job.operation is Operation.UPSERT and f.job.content_hash is not None}
        with self._db.begin() as connection:
            self._lanes.check(connection, index_version, {flip.job.bucket: epochs[flip.job.bucket] for flip in flips}, owner, now)
            dead = self._copies.dead_with(connection, index_version, made)
            lock_documents(connection, {*dead, *(flip.job.doc_id for flip in flips)})
            for flip in sorted(flips, key=lambda flip: flip.job.doc_id):  # in the order that all lock documents in
                if self._finish_job(connection, flip, owner, now):
                    moved = self._flip_one(connection, flip, now)
                    left += moved.left
                    receipts += self._receipts(connection, flip, moved.is_copy, now)
                    done.append(flip.job)
            self._ledger.record(connection, receipts)
            finished = {job.doc_id for job in done}
            self._copies.revive(
                connection, index_version, {copy: letters for copy, letters in dead.items() if letters.canonical in finished}
            )
            self._copies.left(connection, index_version, left)
        return done

    def _finish_job(self, connection: Connection, flip: Flip, owner: str, now: datetime) -> bool:
        job = flip.job
        finished = connection.execute(
            update(jobs)
            .where(jobs.c.job_id == job.job_id, jobs.c.lease_owner == owner, jobs.c.lease_epoch == job.lease_epoch)
            .where(jobs.c.state == State.WRITING, jobs.c.generation == flip.generation)
            .values(state=State.INDEXED, finished_at=now, lease_owner=None, lease_until=None, error=None, **flip.counts)
        )
        return finished.rowcount == 1

    def _flip_one(self, connection: Connection, flip: Flip, now: datetime) -> _Moved:
        """One document's flip."""
        job = flip.job
        version, doc = job.index_version, job.doc_id
        # A permission change writes the passages that are there already: it brings no content and no version.
        brought = (
            {}
            if job.operation is Operation.ACL
            else {
                "content_hash": job.content_hash,
                "accepted_pages": job.accepted_pages,
                "is_copy": job.operation is Operation.COPY,
            }
        )
        moved = connection.execute(
            update(index_state)
            .where(index_state.c.doc_id == doc, index_state.c.index_version == version, index_state.c.generation < flip.generation)
            .values(
                previous_generation=index_state.c.generation,
                previous_flipped_at=index_state.c.flipped_at,
                previous_content_hash=index_state.c.content_hash,
                previous_accepted_pages=index_state.c.accepted_pages,
                previous_is_copy=index_state.c.is_copy,
                generation=flip.generation,
                flipped_at=now,
                manifest=dict(flip.manifest),
                acl_ids=list(flip.acl_ids),
                **brought,
            )
            .returning(
                index_state.c.previous_is_copy, index_state.c.previous_content_hash, index_state.c.is_copy, index_state.c.content_hash
            )
        ).one_or_none()
        if moved is None:
            raise LeaseLost(f"document {doc} in {version} is already past generation {flip.generation}")
        if flip.removed:
            connection.execute(
                insert_if_absent(self._db, purges_due),
                [
                    {"index_version": version, "row_id": r, "doc_id": doc, "bucket": job.bucket, "dead_gen": flip.generation, "at": now}
                    for r in flip.removed
                ],
            )
        connection.execute(
            delete(intents).where(intents.c.index_version == version, intents.c.doc_id == doc, intents.c.generation <= flip.generation)
        )
        self._list_chunks(connection, flip)
        is_still = moved.is_copy and moved.content_hash == moved.previous_content_hash
        left = [Left(doc, moved.previous_content_hash)] if moved.previous_is_copy and not is_still else []
        return _Moved(left, moved.is_copy)

    def _receipts(self, connection: Connection, flip: Flip, is_copy: bool, now: datetime) -> list[Receipt]:
        """What the flip says of its document, whose newest version is indexed where that is the one which stands in the indexes now.

        A permission change brings no version: it says something only where the one that stands is the newest, and then of that one.
        """
        job = flip.job
        if job.attempt_ulid is None:
            raise ValueError(f"job {job.job_id} of document {job.doc_id} was never opened for its write")
        stands = select(ledger.c.indexed_version).where(ledger.c.doc_id == job.doc_id, ledger.c.index_version == job.index_version)
        newest = connection.execute(
            update(documents)
            .where(documents.c.doc_id == job.doc_id, documents.c.deleted_at.is_(None))
            .where(documents.c.source_version == (stands.scalar_subquery() if job.operation is Operation.ACL else job.source_version))
            .values(
                status=case((is_live(job.index_version), "indexed"), else_=documents.c.status),
                reason=case((is_live(job.index_version), None), else_=documents.c.reason),
            )
            .returning(documents.c.source_version, documents.c.content_hash)
        ).one_or_none()
        of = newest if job.operation is Operation.ACL else job
        if of is None:
            return []
        receipt = Receipt(
            doc_id=job.doc_id,
            index_version=job.index_version,
            source_id=job.source_id,
            attempt_ulid=job.attempt_ulid,
            outcome=outcome_of(job.operation, is_copy, len(flip.manifest)),
            source_version=of.source_version,
            content_hash=of.content_hash,
            chunks=len(flip.manifest),
            reason=None,
            error=None,
            job_id=job.job_id,
            ended_at=now,
        )
        return [receipt]

    def _list_chunks(self, connection: Connection, flip: Flip) -> None:
        version, doc = flip.job.index_version, flip.job.doc_id
        listed = connection.execute(select(chunks.c.chunk_id).where(chunks.c.doc_id == doc, chunks.c.index_version == version)).scalars()
        for part in slices(sorted(set(listed) - set(flip.manifest))):
            connection.execute(delete(chunks).where(chunks.c.index_version == version, chunks.c.chunk_id.in_(part)))
        rows = [
            {
                "index_version": version,
                "chunk_id": record.chunk_id,
                "added_gen": flip.manifest[record.chunk_id],
                "doc_id": doc,
                "text_hash": record.text_hash,
                "ordinal": record.ordinal,
                "heading_path": list(record.heading_path),
                "page": record.page,
                "token_count": record.token_count,
            }
            for record in flip.chunks
        ]
        if rows:
            connection.execute(insert_or_update(self._db, chunks, ("added_gen", "ordinal", "heading_path", "page", "token_count")), rows)

    def due(self, index_version: str, buckets: Collection[str], grace: timedelta, limit: int) -> list[Purge]:
        """Rows that have been dead for the grace and are still in the indexes, oldest first."""
        statement = (
            select(purges_due.c.row_id, purges_due.c.bucket)
            .where(purges_due.c.index_version == index_version, purges_due.c.bucket.in_(list(buckets)))
            .where(purges_due.c.done_at.is_(None), purges_due.c.at <= self._db.now() - grace)
            .order_by(purges_due.c.at)
            .limit(limit)
        )
        with self._db.read() as connection:
            return [Purge(row.row_id, row.bucket) for row in connection.execute(statement)]

    def purged(self, index_version: str, purges: Sequence[Purge]) -> None:
        """Mark rows as deleted from both indexes."""
        now = self._db.now()
        with self._db.begin() as connection:
            for part in slices([purge.row_id for purge in purges]):
                connection.execute(
                    update(purges_due).where(purges_due.c.index_version == index_version, purges_due.c.row_id.in_(part)).values(done_at=now)
                )

    def forget_purges(self, grace: timedelta) -> int:
        """Drop marks older than a further grace, since no reader can still need them; those of a deleted document stay until its purge has
        looked for its rows once more. Returns how many."""
        over = self._db.now() - grace
        to_prove = exists().where(stored_states.c.doc_id == purges_due.c.doc_id, stored_states.c.state == PENDING_PURGE)
        with self._db.begin() as connection:
            return connection.execute(delete(purges_due).where(purges_due.c.done_at < over, ~to_prove)).rowcount


_STATE_COLUMNS: Sequence[ColumnElement[Any]] = (
    index_state.c.doc_id,
    index_state.c.claimed_generation,
    index_state.c.manifest,
    index_state.c.acl_ids,
    index_state.c.content_hash,
    index_state.c.accepted_pages,
)


def _state(row: Row[Any]) -> WriteState:
    values = dict(row._mapping)
    return WriteState(**{**values, "acl_ids": None if row.acl_ids is None else tuple(row.acl_ids)})


def slices(values: Sequence[T], size: int = SLICE) -> Iterable[Sequence[T]]:
    """Cut a sequence into pieces that fit one statement."""
    return (values[start : start + size] for start in range(0, len(values), size))
