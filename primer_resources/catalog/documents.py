"""Document rows as a sync sees them: what is known, what was seen, what changed. All writes are guarded by version or by scan."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from types import MappingProxyType
from typing import Any

from sqlalchemy import Connection, Row, and_, case, func, select, update

from primer_core.failures import Reason
from primer_core.lanes import Lane
from primer_resources.catalog.database import Database
from primer_resources.catalog.generations import lock_documents, slices
from primer_resources.catalog.schema import contents, documents, index_state
from primer_resources.catalog.sources import Source
from primer_resources.catalog.upsert import insert_if_absent


@dataclass(frozen=True, slots=True)
class KnownDocument:
    """A document of a source as the catalog has it. `container` is the path of the mail or archive that it is a member of; `told_acl_id` is
    the ACL that an event gave it, which stands before what the source's own rules say; `canonical_doc_id` the document whose rows stand
    for its content: itself, unless it is a copy."""

    doc_id: str
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
            rows = connection.execute(select(*_COLUMNS).where(mine, documents.c.container.is_not(None)).order_by(documents.c.doc_id))
            for row in rows:
                found.setdefault(row.container, []).append(_known(row))
        return found

    def unseen_with_content(self, source_id: str, scan: int, hashes: Collection[str]) -> list[KnownDocument]:
        """Living documents that this scan has not seen and whose content is one of `hashes`: what a rename may have left behind."""
        found: list[KnownDocument] = []
        with self._db.read() as connection:
            for part in slices(sorted(hashes)):
                rows = connection.execute(
                    select(*_COLUMNS)
                    .where(documents.c.source_id == source_id, documents.c.content_hash.in_(part))
                    .where(documents.c.seen_scan != scan, documents.c.deleted_at.is_(None))
                    .order_by(documents.c.path)
                )
                found.extend(_known(row) for row in rows)
        return found

    def unseen(self, source_id: str, scan: int, page: int) -> Iterator[list[KnownDocument]]:
        """Living documents that this scan has not seen, by doc_id, `page` at a time."""
        after = ""
        while True:
            statement = (
                select(*_COLUMNS)
                .where(documents.c.source_id == source_id, documents.c.seen_scan != scan, documents.c.deleted_at.is_(None))
                .where(documents.c.doc_id > after)
                .order_by(documents.c.doc_id)
                .limit(page)
            )
            with self._db.read() as connection:
                found = [_known(row) for row in connection.execute(statement)]
            if not found:
                return
            yield found
            after = found[-1].doc_id

    def wait_to_be_read(self, source_id: str) -> bool:
        """Whether living documents of the source kept changing, or vanished, while they were read: only a listing shows them again."""
        mine = and_(documents.c.source_id == source_id, documents.c.reason == Reason.CHANGING, documents.c.deleted_at.is_(None))
        with self._db.read() as connection:
            return connection.execute(select(documents.c.doc_id).where(mine).limit(1)).first() is not None

    def changing(self, connection: Connection, source_id: str, paths: Collection[str]) -> set[str]:
        """Which of the paths have a living document that kept changing while it was read."""
        found: set[str] = set()
        for part in slices(sorted(paths)):
            here = and_(documents.c.source_id == source_id, documents.c.path.in_(part), documents.c.deleted_at.is_(None))
            found.update(connection.execute(select(documents.c.path).where(here, documents.c.reason == Reason.CHANGING)).scalars())
        return found

    def living(self, source_id: str) -> int:
        """How many living documents the source has."""
        statement = select(func.count()).select_from(documents).where(documents.c.source_id == source_id, documents.c.deleted_at.is_(None))
        with self._db.read() as connection:
            return connection.execute(statement).scalar_one()

    def lock(self, connection: Connection, doc_ids: Collection[str]) -> None:
        """Take all documents that the transaction will change, in the order that all others take them; before it changes the first one."""
        lock_documents(connection, doc_ids)

    def mark_seen(self, connection: Connection, doc_ids: Sequence[str], scan: int) -> None:
        """These documents are in the listing."""
        self.lock(connection, doc_ids)
        for part in slices(doc_ids):
            connection.execute(update(documents).where(documents.c.doc_id.in_(part)).values(seen_scan=scan))

    def add(self, connection: Connection, source: Source, doc_id: str, place: Placement, version: VersionFacts, scan: int) -> bool:
        """A document seen for the first time, or again after its tombstone, which a newer version lifts.

        A member has the permissions that an event told of its container. Returns False where a tombstone of the same or a newer version
        stands.
        """
        values = _facts(version) | {"seen_scan": scan, "deleted_at": None, "canonical_doc_id": doc_id}
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
        return True

    def _told_acl(self, connection: Connection, source_id: str, path: str) -> str | None:
        """The ACL that an event gave the living document at a path."""
        here = and_(documents.c.source_id == source_id, documents.c.path == path, documents.c.deleted_at.is_(None))
        return connection.execute(select(documents.c.told_acl_id).where(here)).scalar_one_or_none()

    def bucket(self, connection: Connection, doc_id: str) -> str | None:
        """The bucket that a document lives in; None where its content was never read."""
        bucket: str | None = connection.execute(select(documents.c.bucket).where(documents.c.doc_id == doc_id)).scalar_one()
        return bucket

    def move(self, connection: Connection, doc_id: str, place: Placement, scan: int) -> None:
        """Only metadata moves: path, title, fingerprint, permissions. The version and the content stay."""
        connection.execute(update(documents).where(documents.c.doc_id == doc_id).values(**_shown_place(place), seen_scan=scan))

    def grant(self, connection: Connection, doc_id: str, acl_id: str, acl_error: str | None, scan: int) -> None:
        """Only who may see it changes, as far as no event has told who may."""
        values = _shown_access(acl_id, acl_error) | {"seen_scan": scan}
        connection.execute(update(documents).where(documents.c.doc_id == doc_id).values(**values))

    def advance(self, connection: Connection, doc_id: str, place: Placement, version: VersionFacts, scan: int) -> bool:
        """A newer version, by compare-and-set. Returns False where the catalog already has that version or a newer one."""
        values = _facts(version) | {"bucket": func.coalesce(documents.c.bucket, version.bucket), "canonical_doc_id": doc_id}
        moved = connection.execute(
            update(documents)
            .where(documents.c.doc_id == doc_id, documents.c.version_order < version.version_order, documents.c.deleted_at.is_(None))
            .values(**_shown_place(place), **values, seen_scan=scan)
        )
        return moved.rowcount == 1

    def tombstone(
        self,
        connection: Connection,
        gone: Sequence[KnownDocument],
        scan: int | None,
        now: datetime,
        told: Mapping[str, Deletion] = MappingProxyType({}),
    ) -> list[str]:
        """Tombstone documents, each still at the version given and, with a scan, still unseen by it. Returns the doc_ids that went.

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
            if scan is not None:
                guard = and_(guard, documents.c.seen_scan != scan)
            deletion = told.get(known.doc_id, Deletion(0, now))
            order, at = max(deletion.version_order, known.version_order + 1), deletion.event_time
            values = {"deleted_at": now, "status": "deleted", "reason": None, "version_order": order, "event_time": at}
            done = connection.execute(update(documents).where(guard).values(canonical_doc_id=documents.c.doc_id, **values))
            if done.rowcount == 1:
                went.append(known.doc_id)
        return went

    def add_content(self, connection: Connection, content_hash: str, size: int, mime: str, lane: Lane, key: str) -> None:
        """A content whose bytes are in the store. One that is known keeps its lane."""
        connection.execute(
            insert_if_absent(self._db, contents).values(content_hash=content_hash, size=size, mime=mime, lane=lane, object=key)
        )


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
