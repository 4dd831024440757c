"""Held deletes: sets of documents that a complete listing would have deleted, and what a person decided about them.

The set itself is in the documents' rows (`missing_scan`); here stands its digest, so that what is let through is exactly what was held.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Row, and_, case, func, select, update

from primer_resources.catalog.database import Database
from primer_resources.catalog.schema import documents, held_deletes
from primer_resources.catalog.upsert import insert_or_update


class HeldState(StrEnum):
    """What became of a held set. Only `held`, `rejected` and, until its deletes are done, `approved` still decide anything."""

    HELD = "held"
    APPROVED = "approved"
    REJECTED = "rejected"
    DELETED = "deleted"
    CHANGED = "changed"


CURRENT = (HeldState.HELD, HeldState.REJECTED, HeldState.APPROVED)


@dataclass(frozen=True, slots=True)
class Held:
    """A held set. `documents` counts it, `reasons` are the guard's, `scan` is the newest listing that held it; `held_at` and `listed_at`
    are when the first and the newest one did."""

    source_id: str
    digest: str
    state: HeldState
    scan: int
    documents: int
    reasons: tuple[str, ...]
    held_at: datetime
    listed_at: datetime
    decided_at: datetime | None
    decided_by: str | None


_COLUMNS = [held_deletes.c[field.name] for field in fields(Held)]


def _held(row: Row[Any]) -> Held:
    values = dict(row._mapping)
    return Held(**(values | {"state": HeldState(values["state"]), "reasons": tuple(values["reasons"])}))


class HeldDeletes:
    """Keeps held sets and the decisions on them."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def find(self, source_id: str, digest: str) -> Held | None:
        """The set of that digest; None where it was never held."""
        with self._db.read() as connection:
            mine = and_(held_deletes.c.source_id == source_id, held_deletes.c.digest == digest)
            row = connection.execute(select(*_COLUMNS).where(mine)).one_or_none()
        return None if row is None else _held(row)

    def current(self, source_id: str | None = None) -> list[Held]:
        """The sets that the newest complete listing of their source held, by source: at most one each."""
        statement = select(*_COLUMNS).where(held_deletes.c.state.in_(CURRENT)).order_by(held_deletes.c.source_id, held_deletes.c.scan)
        if source_id is not None:
            statement = statement.where(held_deletes.c.source_id == source_id)
        with self._db.read() as connection:
            newest = {row.source_id: _held(row) for row in connection.execute(statement)}
        return list(newest.values())

    def is_rejected_missing(self, source_id: str) -> bool:
        """Whether living documents are missing whose deletes a person rejected: they were missing when the rejected set was listed last."""
        rejected = and_(held_deletes.c.source_id == source_id, held_deletes.c.state == HeldState.REJECTED)
        newest = select(func.max(held_deletes.c.scan)).where(rejected).scalar_subquery()
        missing = and_(documents.c.source_id == source_id, documents.c.missing_scan.is_not(None), documents.c.deleted_at.is_(None))
        statement = select(documents.c.doc_id).where(missing, documents.c.missing_scan <= newest).limit(1)
        with self._db.read() as connection:
            return connection.execute(statement).first() is not None

    def hold(self, connection: Connection, source_id: str, digest: str, scan: int, documents: int, reasons: Sequence[str]) -> None:
        """Inside a transaction: a listing held this set. A person's rejection of the same set stands."""
        now = self._db.now()
        row = {"source_id": source_id, "digest": digest, "state": HeldState.HELD.value, "scan": scan, "documents": documents}
        row |= {"reasons": list(reasons), "held_at": now, "listed_at": now}
        connection.execute(insert_or_update(self._db, held_deletes, ("scan", "documents", "reasons", "listed_at")), row)
        ended = and_(
            held_deletes.c.source_id == source_id,
            held_deletes.c.digest == digest,
            held_deletes.c.state.in_((HeldState.DELETED, HeldState.CHANGED)),
        )
        begun = {"state": HeldState.HELD.value, "held_at": now, "decided_at": None, "decided_by": None}
        connection.execute(update(held_deletes).where(ended).values(**begun))

    def close(self, connection: Connection, source_id: str, digest: str, is_held: bool) -> None:
        """Inside a transaction: a complete listing found that `digest` is missing now. Every other set waits for nobody any more, and this
        one neither unless it is held; a rejection is remembered."""
        mine = and_(held_deletes.c.source_id == source_id, held_deletes.c.state.in_((HeldState.HELD, HeldState.APPROVED)))
        ended = case((held_deletes.c.digest == digest, HeldState.DELETED.value), else_=HeldState.CHANGED.value)
        if is_held:
            mine = and_(mine, held_deletes.c.digest != digest)
        connection.execute(update(held_deletes).where(mine).values(state=ended))

    def decide(self, held: Held, state: HeldState, person: str, if_in: Collection[HeldState]) -> bool:
        """Record a person's decision on a set that the listing `held.scan` held last. Returns False where it is no longer so."""
        still = and_(
            held_deletes.c.source_id == held.source_id,
            held_deletes.c.digest == held.digest,
            held_deletes.c.scan == held.scan,
            held_deletes.c.state.in_(sorted(if_in)),
        )
        values = {"state": state.value, "decided_at": self._db.now(), "decided_by": person}
        with self._db.begin() as connection:
            return connection.execute(update(held_deletes).where(still).values(**values)).rowcount == 1

    def finish(self, connection: Connection, held: Held) -> None:
        """Inside a transaction: the deletes of an approved set are done."""
        mine = and_(held_deletes.c.source_id == held.source_id, held_deletes.c.digest == held.digest)
        done = and_(mine, held_deletes.c.state == HeldState.APPROVED)
        connection.execute(update(held_deletes).where(done).values(state=HeldState.DELETED.value))
