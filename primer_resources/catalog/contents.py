"""Contents: the bytes of a tenant, once each, whose they are, and when they may go.

A content is freed by trying: its row is deleted, and the RESTRICT foreign key refuses while a document's intake state has it. Objects are
never written twice under one key, so bytes that are removed late can never be those of a content that came back.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Connection, and_, select, tuple_, update

from primer_core.lanes import Lane, SlowWork
from primer_resources.catalog.database import Database
from primer_resources.catalog.generations import slices
from primer_resources.catalog.schema_bodies import contents
from primer_resources.catalog.upsert import insert_if_absent

HANDLING = timedelta(hours=1)
"""How long a sync may take from storing bytes to committing the document that has them; nobody frees them meanwhile."""


@dataclass(frozen=True, slots=True)
class NewContent:
    """A content whose bytes are stored under `object`, a key of the tenant's intake drive; None where there are none, since it is empty.
    `size` in bytes."""

    tenant_id: str
    content_hash: str
    size: int
    mime: str
    lane: Lane
    object: str | None


class Contents:
    """Finds, adds and touches contents."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def object_of(self, tenant_id: str, content_hash: str) -> str | None:
        """The key of a content's bytes; None where the tenant has no such content, or its bytes were deleted."""
        with self._db.read() as connection:
            return connection.execute(select(contents.c.object).where(is_content(tenant_id, content_hash))).scalar_one_or_none()

    def touch(self, tenant_id: str, content_hash: str, key: str | None) -> bool:
        """A sync is about to give the content to a document: nobody frees it for HANDLING. Returns False where the content is gone or has
        other bytes by now."""
        here = and_(is_content(tenant_id, content_hash), contents.c.object == key)
        with self._db.begin() as connection:
            return connection.execute(update(contents).where(here).values(unowned_at=self._db.moment())).rowcount == 1

    def owned(self, connection: Connection, tenant_id: str, content_hash: str) -> None:
        """Inside a transaction that has locked it: a document had the content before it was touched, and has it still."""
        marked = and_(is_content(tenant_id, content_hash), contents.c.unowned_at.is_not(None))
        connection.execute(update(contents).where(marked).values(unowned_at=None))

    def add(self, new: NewContent) -> bool:
        """Make a content known. Returns False where it is known already: another sync was first, and its bytes count."""
        row = {
            "tenant_id": new.tenant_id,
            "content_hash": new.content_hash,
            "size": new.size,
            "mime": new.mime,
            "lane": new.lane,
            "object": new.object,
            "unowned_at": self._db.now(),
        }
        with self._db.begin() as connection:
            added = insert_if_absent(self._db, contents).values(**row).returning(contents.c.content_hash)
            return connection.execute(added).one_or_none() is not None

    def is_known(self, tenant_id: str, content_hash: str) -> bool:
        """Whether the tenant has the content, with its bytes or without."""
        with self._db.read() as connection:
            return connection.execute(select(contents.c.content_hash).where(is_content(tenant_id, content_hash))).first() is not None

    def lanes(self, tenant_id: str, hashes: Collection[str]) -> dict[str, Lane]:
        """content_hash → lane of the tenant's contents."""
        found: dict[str, Lane] = {}
        with self._db.read() as connection:
            for part in slices(sorted(hashes)):
                mine = and_(contents.c.tenant_id == tenant_id, contents.c.content_hash.in_(part))
                found.update({row.content_hash: Lane(row.lane) for row in connection.execute(select(contents).where(mine))})
        return found

    def pages(self, tenant_id: str, content_hash: str) -> int | None:
        """How many pages a content was counted to have; None where nobody has counted, or the content is gone."""
        with self._db.read() as connection:
            return connection.execute(select(contents.c.pages).where(is_content(tenant_id, content_hash))).scalar_one_or_none()

    def leave_to_slow_lane(self, connection: Connection, tenant_id: str, content_hash: str, work: SlowWork) -> None:
        """Inside a transaction: the content is parsed in the slow lane from now on."""
        values = {"lane": Lane.SLOW, "pages": work.pages}
        connection.execute(update(contents).where(is_content(tenant_id, content_hash)).values(**values))

    def unowned(self, until: datetime, limit: int) -> list[tuple[str, str]]:
        """(tenant, content hash) of contents that perhaps no document has since `until` or before, oldest first."""
        statement = select(contents.c.tenant_id, contents.c.content_hash).where(contents.c.unowned_at <= until)
        with self._db.read() as connection:
            rows = connection.execute(statement.order_by(contents.c.unowned_at).limit(limit))
            return [(row.tenant_id, row.content_hash) for row in rows]


def lock_contents(connection: Connection, wanted: Iterable[tuple[str, str]]) -> None:
    """Inside a transaction: lock contents, given as (tenant, content hash), in one order; before canonicals, documents and states are.
    Rows that refer to them may be written by others meanwhile."""
    for part in slices(sorted(set(wanted))):
        locked = select(contents.c.content_hash).where(tuple_(contents.c.tenant_id, contents.c.content_hash).in_(part))
        connection.execute(locked.order_by(contents.c.tenant_id, contents.c.content_hash).with_for_update(key_share=True)).all()


def is_content(tenant_id: str, content_hash: str) -> ColumnElement[bool]:
    """The condition on a content's row."""
    return and_(contents.c.tenant_id == tenant_id, contents.c.content_hash == content_hash)
