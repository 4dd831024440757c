"""The ledger: what became of each document in each index version. "Is this document indexed?" is answered here, never by an index.

An index version is one sealed recipe, so (doc_id, index_version) names the recipe as well. A receipt is written in the transaction that
makes it true: the flip, or the one that makes a dead letter. That transaction holds the document's lock before it writes here, so that
two of them cannot wait for each other crosswise.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, fields
from datetime import datetime
from random import Random
from threading import Lock
from typing import Any

from sqlalchemy import ColumnElement, Connection, Insert, Row, and_, case, func, or_, select, update

from primer_core.outcomes import SUCCESSES, Outcome, Receipt
from primer_core.ulids import LEAST_ULID, next_ulid
from primer_resources.catalog.database import Database
from primer_resources.catalog.generations import slices
from primer_resources.catalog.schema import ledger
from primer_resources.catalog.upsert import insert_or_set

_NEWEST = ("attempt_ulid", "outcome", "source_version", "content_hash", "reason", "error", "job_id", "ended_at")
"""What the newest attempt says."""
_STANDING = ("indexed_ulid", "indexed_version", "chunks", "indexed_at")
"""What the newest attempt says that changed the indexes: what stands in them now. A dead letter says nothing about that."""
_NOTHING = {"indexed_version": None, "chunks": 0, "indexed_at": None}


@dataclass(frozen=True, slots=True)
class Entry:
    """A document in an index version.

    The newest attempt: its `outcome`, the `source_version` and `content_hash` that it was on, the `reason` and `error` of a dead letter,
    the job and the time of its end. What stands in the indexes: `indexed_version` (None where nothing of the document does), its
    passages, and since when. The two differ where a newer version is a dead letter.
    """

    doc_id: str
    index_version: str
    source_id: str
    attempt_ulid: str
    outcome: Outcome
    source_version: str
    content_hash: str | None
    reason: str | None
    error: str | None
    job_id: int | None
    ended_at: datetime
    indexed_version: str | None
    chunks: int
    indexed_at: datetime | None


_COLUMNS = [ledger.c[field.name] for field in fields(Entry)]


def _entry(row: Row[Any]) -> Entry:
    return Entry(**{**row._mapping, "outcome": Outcome(row.outcome)})


class Ledger:
    """Gives attempts their ULIDs, records receipts, and answers what became of documents."""

    def __init__(self, database: Database, random: Random) -> None:
        self._db = database
        self._random = random
        self._lock = Lock()
        self._last = LEAST_ULID

    def attempts(self, connection: Connection, index_version: str, doc_ids: Collection[str], now: datetime) -> dict[str, str]:
        """Inside a transaction: doc_id → ULID of an attempt that begins, greater than that of every attempt which the ledger has of the
        document, whatever the clock does."""
        made: dict[str, str] = {}
        for part in slices(sorted(set(doc_ids))):
            mine = and_(ledger.c.index_version == index_version, ledger.c.doc_id.in_(part))
            rows = connection.execute(select(ledger.c.doc_id, ledger.c.attempt_ulid).where(mine))
            known = {row.doc_id: row.attempt_ulid for row in rows}
            for doc_id in part:
                mark = self._next(now)
                newest = known.get(doc_id, LEAST_ULID)
                made[doc_id] = mark if mark > newest else next_ulid(now, self._random, newest)
        return made

    def _next(self, now: datetime) -> str:
        with self._lock:
            self._last = next_ulid(now, self._random, self._last)
            return self._last

    def record(self, connection: Connection, receipts: Iterable[Receipt]) -> None:
        """Inside the transaction that makes them true and has locked their documents: receipts, each a no-op unless its ULID is greater
        than the one that stands, so that a stale or repeated one changes nothing, in whatever order they come.

        What the newest attempt says and what stands in the indexes have such a guard each: where a newer version has died while an older
        one was still being written, the older one's flip tells what stands, and the newer one's end stays the outcome.
        """
        rows = [_row(receipt) for receipt in sorted(receipts, key=lambda each: (each.doc_id, each.index_version, each.attempt_ulid))]
        if rows:
            connection.execute(self._forward(), rows)

    def _forward(self) -> Insert:
        def guarded(excluded: Any) -> tuple[dict[str, ColumnElement[Any]], ColumnElement[bool]]:
            newer = excluded.attempt_ulid > ledger.c.attempt_ulid
            changed = excluded.indexed_ulid > func.coalesce(ledger.c.indexed_ulid, "")
            halves = ((newer, _NEWEST), (changed, _STANDING))
            values: dict[str, ColumnElement[Any]] = {
                name: case((guard, excluded[name]), else_=ledger.c[name]) for guard, names in halves for name in names
            }
            return values, or_(newer, changed)

        return insert_or_set(self._db, ledger, guarded)

    def record_deleted(self, connection: Connection, doc_id: str, now: datetime) -> None:
        """Inside the transaction that deletes a document of which nothing was ever indexed: there is no write that would say so."""
        entries = [_entry(row) for row in connection.execute(select(*_COLUMNS).where(ledger.c.doc_id == doc_id))]
        for entry in entries:
            mark = self.attempts(connection, entry.index_version, [doc_id], now)[doc_id]
            gone = Receipt(
                doc_id, entry.index_version, entry.source_id, mark, Outcome.DELETED, entry.source_version, None, 0, None, None, None, now
            )
            self.record(connection, [gone])

    def of(self, doc_ids: Collection[str], index_version: str) -> dict[str, Entry]:
        """doc_id → entry, of documents that came to an end in the index version at least once."""
        with self._db.read() as connection:
            return self.entries(connection, doc_ids, index_version)

    def entries(self, connection: Connection, doc_ids: Collection[str], index_version: str) -> dict[str, Entry]:
        """The same inside a transaction."""
        found: dict[str, Entry] = {}
        for part in slices(sorted(set(doc_ids))):
            mine = and_(ledger.c.index_version == index_version, ledger.c.doc_id.in_(part))
            found.update({row.doc_id: _entry(row) for row in connection.execute(select(*_COLUMNS).where(mine))})
        return found

    def with_outcome(
        self,
        outcome: Outcome,
        index_version: str,
        source_id: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        after: str = "",
        limit: int = 500,
    ) -> list[Entry]:
        """A page of documents whose newest attempt ended so, from `since` on and before `until`, by doc_id from behind `after` on.

        All pages together read the outcome's part of one index once: times are looked at in the index, so that documents which end anew
        while somebody turns the pages are neither shown twice nor passed over.
        """
        mine = and_(ledger.c.index_version == index_version, ledger.c.outcome == outcome, ledger.c.doc_id > after)
        if source_id is not None:
            mine = and_(mine, ledger.c.source_id == source_id)
        if since is not None:
            mine = and_(mine, ledger.c.ended_at >= since)
        if until is not None:
            mine = and_(mine, ledger.c.ended_at < until)
        with self._db.read() as connection:
            return [_entry(row) for row in connection.execute(select(*_COLUMNS).where(mine).order_by(ledger.c.doc_id).limit(limit))]


def nothing_stands(connection: Connection, doc_id: str) -> None:
    """Inside the transaction that hides all rows of a document for good: what is in the indexes of it does not count any more."""
    connection.execute(update(ledger).where(ledger.c.doc_id == doc_id).values(**_NOTHING))


def _row(receipt: Receipt) -> dict[str, Any]:
    row = {field.name: getattr(receipt, field.name) for field in fields(Receipt)}
    if receipt.outcome is Outcome.DEAD:
        return row | {"indexed_ulid": None} | _NOTHING
    stands = {"indexed_version": receipt.source_version, "chunks": receipt.chunks, "indexed_at": receipt.ended_at}
    return row | {"indexed_ulid": receipt.attempt_ulid} | (stands if receipt.outcome in SUCCESSES else _NOTHING)
