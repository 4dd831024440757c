"""Document rows as a sync sees them: what is known, what is missing, what changed. All writes are guarded by version."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from types import MappingProxyType
from typing import Any

from sqlalchemy import Connection, Row, and_, case, func, select, update

from primer_core.failures import Reason
from primer_resources.catalog.database import Database
from primer_resources.catalog.generations import lock_documents, slices
from primer_resources.catalog.ledger import nothing_stands
from primer_resources.catalog.schema import documents, in_states, index_state
from primer_resources.catalog.sources import Source
from primer_resources.catalog.upsert import insert_if_absent

STREAMED = 10_000
"""Rows of a streamed look-up in memory at once."""


@dataclass(frozen=True, slots=True)
class KnownDocument:
    """A document of a source as the catalog has it. `container` is the path of the mail or archive that it is a member of; `told_acl_id` is
    the ACL that an event gave it, which stands before what the source's own rules say; `canonical_doc_id` the document whose rows stand
    for its content: itself, unless it is a copy; `missing_scan` the scan since which complete listings do not show it, while its delete
    is held (None for all others); `fetch_again` whether a replay waits for its bytes."""

    doc_id: str
    tenant_id: str
    path: str
    container: str | None
    fingerprint: str
    source_version: str
    version_order: int
    content_hash: str | None
    bucket: str | None
    acl_id: str
    acl_error: str | None
    told_acl_id: str | None
    status: str
    reason: str | None
    event_time: datetime
    deleted_at: datetime | None
    canonical_doc_id: str
    missing_scan: int | None
    fetch_again: bool


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a source shows a document now, who may see it there, and when the source says that it changed."""

    path: str
    uri: str
    title: str
    container: str | None
    fingerprint: str
    acl_id: str
    acl_error: str | None
    event_time: datetime


@dataclass(frozen=True, slots=True)
class VersionFacts:
    """A document version: its label, its order among the document's versions, and the content (None where it could not be read)."""

    source_version: str
    version_order: int
    content_hash: str | None
    mime: str | None
    bucket: str | None
    status: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class Deletion:
    """A delete as the source tells of it: its place among the document's versions, and when it happened."""

    version_order: int
    event_time: datetime


_COLUMNS = [documents.c[field.name] for field in fields(KnownDocument)]


def _known(row: Row[Any]) -> KnownDocument:
    return KnownDocument(**row._mapping)


class Documents:
    """Finds and changes document rows; writes happen inside the caller's transaction, next to the jobs they cause."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def by_path(self, source_id: str, paths: Collection[str]) -> dict[str, KnownDocument]:
        """path → living document."""
        found: dict[str, KnownDocument] = {}
        with self._db.read() as connection:
            for part in slices(sorted(paths)):
                rows = connection.execute(
                    select(*_COLUMNS).where(
                        documents.c.source_id == source_id, documents.c.path.in_(part), documents.c.deleted_at.is_(None)
                    )
                )
                found.update({row.path: _known(row) for row in rows})
        return found

    def by_id(self, doc_ids: Collection[str]) -> dict[str, KnownDocument]:
        """doc_id → document, living or not."""
        found: dict[str, KnownDocument] = {}
        with self._db.read() as connection:
            for part in slices(sorted(doc_ids)):
                rows = connection.execute(select(*_COLUMNS).where(documents.c.doc_id.in_(part)))
                found.update({row.doc_id: _known(row) for row in rows})
        return found

    def of_source(self, source_id: str, doc_ids: Collection[str]) -> dict[str, KnownDocument]:
        """doc_id → document of the source, living or not; ids of other sources are unknown."""
        found: dict[str, KnownDocument] = {}
        with self._db.read() as connection:
            for part in slices(sorted(doc_ids)):
                rows = connection.execute(select(*_COLUMNS).where(documents.c.source_id == source_id, documents.c.doc_id.in_(part)))
                found.update({row.doc_id: _known(row) for row in rows})
        return found

    def find(self, connection: Connection, source_id: str, doc_id: str | None, path: str) -> KnownDocument | None:
        """Inside a transaction: the document of that id, or the living one at the path. An id of another source is unknown."""
        which = documents.c.doc_id == doc_id if doc_id else and_(documents.c.path == path, documents.c.deleted_at.is_(None))
        row = connection.execute(select(*_COLUMNS).where(documents.c.source_id == source_id, which)).one_or_none()
        return None if row is None else _known(row)

    def members(self, source_id: str, containers: Collection[str]) -> dict[str, list[KnownDocument]]:
        """container's path → its living members."""
        with self._db.read() as connection:
            return self.members_in(connection, source_id, containers)

    def members_in(self, connection: Connection, source_id: str, containers: Collection[str]) -> dict[str, list[KnownDocument]]:
        """The same inside a transaction."""
        found: dict[str, list[KnownDocument]] = {}
        for part in slices(sorted(containers)):
            mine = and_(documents.c.source_id == source_id, documents.c.container.in_(part), documents.c.deleted_at.is_(None))
            # Sorted here: asked for an order, SQLite reads the whole source along an index that has it.
            for row in sorted(connection.execute(select(*_COLUMNS).where(mine)).all(), key=lambda row: row.doc_id):
                found.setdefault(row.container, []).append(_known(row))
        return found

    def with_content(self, source_id: str, hashes: Collection[str]) -> list[KnownDocument]:
        """Living documents of the source whose content is one of `hashes`, by path."""
        found: list[KnownDocument] = []
        with self._db.read() as connection:
            for part in slices(sorted(hashes)):
                mine = and_(documents.c.source_id == source_id, documents.c.content_hash.in_(part), documents.c.deleted_at.is_(None))
                found.extend(_known(row) for row in connection.execute(select(*_COLUMNS).where(mine)))
        return sorted(found, key=lambda document: document.path)  # here and not in SQL, for the reason above

    def living_ids(self, source_id: str, page: int) -> Iterator[str]:
        """The doc_ids of the source's living documents, ascending; read `page` at a time, each page in a transaction of its own."""
        mine = and_(documents.c.source_id == source_id, documents.c.deleted_at.is_(None))
        after = ""
        while True:
            statement = select(documents.c.doc_id).where(mine, documents.c.doc_id > after).order_by(documents.c.doc_id).limit(page)
            with self._db.read() as connection:
                found = connection.execute(statement).scalars().all()
            yield from found
            if len(found) < page:
                return
            after = found[-1]

    def missing_ids(self, source_id: str) -> Iterator[str]:
        """The doc_ids of the living documents whose delete is held, ascending, streamed from one snapshot."""
        mine = and_(documents.c.source_id == source_id, documents.c.missing_scan.is_not(None))
        with self._db.read() as connection:
            statement = select(documents.c.doc_id).where(mine).order_by(documents.c.doc_id)
            yield from connection.execution_options(yield_per=STREAMED).execute(statement).scalars()

    def count_missing(self, source_id: str) -> int:
        """How many living documents of the source have a held delete."""
        mine = and_(documents.c.source_id == source_id, documents.c.missing_scan.is_not(None), documents.c.deleted_at.is_(None))
        with self._db.read() as connection:
            return connection.execute(select(func.count()).select_from(documents).where(mine)).scalar_one()

    def living_page(self, source_id: str, after: str, limit: int, if_missing: bool = False) -> list[KnownDocument]:
        """A page of the source's living documents by doc_id, from the one that follows `after`; with `if_missing` those whose delete is
        held."""
        mine = and_(documents.c.source_id == source_id, documents.c.deleted_at.is_(None), documents.c.doc_id > after)
        if if_missing:
            mine = and_(mine, documents.c.missing_scan.is_not(None))
        with self._db.read() as connection:
            rows = connection.execute(select(*_COLUMNS).where(mine).order_by(documents.c.doc_id).limit(limit))
            return [_known(row) for row in rows]

    def wait_to_be_read(self, source_id: str) -> bool:
        """Whether living documents of the source kept changing, or vanished, while they were read: only a listing shows them again."""
        mine = and_(documents.c.source_id == source_id, in_states(documents.c.reason, [Reason.CHANGING]), documents.c.deleted_at.is_(None))
        with self._db.read() as connection:
            return connection.execute(select(documents.c.doc_id).where(mine).limit(1)).first() is not None

    def changing(self, connection: Connection, source_id: str, paths: Collection[str]) -> set[str]:
        """Which of the paths have a living document that kept changing while it was read."""
        found: set[str] = set()
        for part in slices(sorted(paths)):
            here = and_(documents.c.source_id == source_id, documents.c.path.in_(part), documents.c.deleted_at.is_(None))
            found.update(connection.execute(select(documents.c.path).where(here, documents.c.reason == Reason.CHANGING)).scalars())
        return found

    def lock(self, connection: Connection, doc_ids: Collection[str]) -> None:
        """Take all documents that the transaction will change, in the order that all others take them; before it changes the first one."""
        lock_documents(connection, doc_ids)

    def mark_missing(self, connection: Connection, doc_ids: Sequence[str], scan: int) -> None:
        """A complete listing does not show these, and their delete is held. One that was missing before stays missing since then."""
        self.lock(connection, doc_ids)
        for part in slices(doc_ids):
            mine = and_(documents.c.doc_id.in_(part), documents.c.missing_scan.is_(None), documents.c.deleted_at.is_(None))
            connection.execute(update(documents).where(mine).values(missing_scan=scan))

    def mark_present(self, connection: Connection, doc_ids: Sequence[str]) -> None:
        """The source shows these again."""
        self.lock(connection, doc_ids)
        for part in slices(doc_ids):
            connection.execute(update(documents).where(documents.c.doc_id.in_(part)).values(missing_scan=None))

    def add(self, connection: Connection, source: Source, doc_id: str, place: Placement, version: VersionFacts) -> bool:
        """A document seen for the first time, or again after its tombstone, which a newer version lifts.

        A member has the permissions that an event told of its container. Returns False where a tombstone of the same or a newer version
        stands.
        """
        values = _facts(version) | {"missing_scan": None, "deleted_at": None, "canonical_doc_id": doc_id, "fetch_again": False}
        told = None if place.container is None else self._told_acl(connection, source.source_id, place.container)
        # RETURNING, since SQLAlchemy does not keep the row count of an INSERT on Postgres.
        added = connection.execute(
            insert_if_absent(self._db, documents)
            .values(doc_id=doc_id, source_id=source.source_id, tenant_id=source.tenant_id, library=source.library, **values)
            .values(_place(place) | ({} if told is None else {"told_acl_id": told, "acl_id": told, "acl_error": None}))
            .returning(documents.c.doc_id)
        )
        if added.one_or_none() is not None:
            return True
        revived = connection.execute(
            update(documents)
            .where(documents.c.doc_id == doc_id, documents.c.deleted_at.is_not(None))
            .where(documents.c.version_order < version.version_order)
            .values(**(values | {"bucket": func.coalesce(documents.c.bucket, version.bucket)}), **_shown_place(place))
        )
        if revived.rowcount != 1:
            return False
        # What the indexes still hold was deleted: it must not be seen again while the new version is on its way.
        connection.execute(update(index_state).where(index_state.c.doc_id == doc_id).values(generation=0, previous_generation=0))
        nothing_stands(connection, doc_id)
        return True

    def _told_acl(self, connection: Connection, source_id: str, path: str) -> str | None:
        """The ACL that an event gave the living document at a path."""
        here = and_(documents.c.source_id == source_id, documents.c.path == path, documents.c.deleted_at.is_(None))
        return connection.execute(select(documents.c.told_acl_id).where(here)).scalar_one_or_none()

    def bucket(self, connection: Connection, doc_id: str) -> str | None:
        """The bucket that a document lives in; None where its content was never read."""
        bucket: str | None = connection.execute(select(documents.c.bucket).where(documents.c.doc_id == doc_id)).scalar_one()
        return bucket

    def move(self, connection: Connection, doc_id: str, place: Placement) -> None:
        """Only metadata moves: path, title, fingerprint, permissions. The version and the content stay."""
        connection.execute(update(documents).where(documents.c.doc_id == doc_id).values(**_shown_place(place), missing_scan=None))

    def grant(self, connection: Connection, doc_id: str, acl_id: str, acl_error: str | None) -> None:
        """Only who may see it changes, as far as no event has told who may."""
        values = _shown_access(acl_id, acl_error) | {"missing_scan": None}
        connection.execute(update(documents).where(documents.c.doc_id == doc_id).values(**values))

    def advance(self, connection: Connection, doc_id: str, place: Placement, version: VersionFacts) -> bool:
        """A newer version, by compare-and-set. Returns False where the catalog already has that version or a newer one."""
        values = _facts(version) | {"bucket": func.coalesce(documents.c.bucket, version.bucket), "canonical_doc_id": doc_id}
        moved = connection.execute(
            update(documents)
            .where(documents.c.doc_id == doc_id, documents.c.version_order < version.version_order, documents.c.deleted_at.is_(None))
            .values(**_shown_place(place), **values, missing_scan=None, fetch_again=False)
        )
        return moved.rowcount == 1

    def fetched(self, connection: Connection, doc_id: str) -> None:
        """A document that was to be fetched again has the bytes that it had; they are stored."""
        connection.execute(update(documents).where(documents.c.doc_id == doc_id).values(fetch_again=False))

    def tombstone(
        self,
        connection: Connection,
        gone: Sequence[KnownDocument],
        now: datetime,
        told: Mapping[str, Deletion] = MappingProxyType({}),
        if_missing: bool = False,
    ) -> list[str]:
        """Tombstone documents, each still at the version given and, with `if_missing`, still missing. Returns the doc_ids that went.

        A tombstone's version is that of the delete (`told`: doc_id → deletion; the others went now) and at least one above the
        document's, so that a late repeat of any earlier version cannot revive it.
        """
        went = []
        for known in gone:
            guard = and_(
                documents.c.doc_id == known.doc_id,
                documents.c.version_order == known.version_order,
                documents.c.deleted_at.is_(None),
            )
            if if_missing:
                guard = and_(guard, documents.c.missing_scan.is_not(None))
            deletion = told.get(known.doc_id, Deletion(0, now))
            order, at = max(deletion.version_order, known.version_order + 1), deletion.event_time
            values = {
                "deleted_at": now,
                "status": "deleted",
                "reason": None,
                "version_order": order,
                "event_time": at,
                "missing_scan": None,
            }
            done = connection.execute(update(documents).where(guard).values(canonical_doc_id=documents.c.doc_id, **values))
            if done.rowcount == 1:
                went.append(known.doc_id)
        return went


def _place(place: Placement) -> dict[str, Any]:
    return {field.name: getattr(place, field.name) for field in fields(Placement)}


def _shown_place(place: Placement) -> dict[str, Any]:
    """The values of a place for a document that is there already: a told ACL stays, whenever it was told."""
    return _place(place) | _shown_access(place.acl_id, place.acl_error)


def _shown_access(acl_id: str, acl_error: str | None) -> dict[str, Any]:
    """What the source's own rules say, unless an event has told otherwise. Decided in the UPDATE itself, since an event's permissions are
    written beside a sync that has looked at the document before."""
    told = documents.c.told_acl_id
    return {"acl_id": func.coalesce(told, acl_id), "acl_error": case((told.is_not(None), None), else_=acl_error)}


def _facts(version: VersionFacts) -> dict[str, Any]:
    return {field.name: getattr(version, field.name) for field in fields(VersionFacts)}
