"""Stored states: the rows that own bodies, and their manifests. What is changed here is guarded by a revision or by a lock on the row."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, and_, bindparam, delete, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from primer_core.failures import Transient
from primer_core.stored_states import (
    INTAKE_NODE,
    DeletedReason,
    DriveKind,
    Manifest,
    Part,
    PartEntry,
    PartState,
    StateIdentity,
    WrittenBy,
    earlier_state,
    intake_state,
)
from primer_resources.catalog.contents import is_content, lock_contents
from primer_resources.catalog.database import Database
from primer_resources.catalog.generations import slices
from primer_resources.catalog.schema_bodies import LIVE, PENDING_PURGE, SUPERSEDED, contents, freed_objects, stored_states
from primer_resources.catalog.upsert import insert_if_absent, insert_or_update, insert_unless_taken


@dataclass(frozen=True, slots=True)
class StoredState:
    """A state as the catalog has it."""

    node_id: str
    doc_id: str
    node: str
    tenant_id: str
    graph: str
    content_hash: str
    manifest: Manifest
    revision: int
    state: str
    created_at: datetime
    updated_at: datetime
    doomed_at: datetime | None


@dataclass(frozen=True, slots=True)
class FreedObject:
    """An object whose owner is gone from the catalog and whose bytes are still to be removed; the purge that waits for that, if one does.

    Of a chunk set: when the vectors that only it had had left the caches, and how many those were (one that another chunk set of the
    same purge has, too, counts once).
    """

    tenant_id: str
    kind: DriveKind
    object_key: str
    purge_id: int | None = None
    forgotten_at: datetime | None = None
    forgotten_vectors: int | None = None

    @property
    def is_chunk_set(self) -> bool:
        """Whether its key is that of a chunk set (states.py: new_key)."""
        return self.kind is DriveKind.PIPELINE and self.object_key.split("/")[2:3] == [Part.CHUNKS]


class StoredStates:
    """Finds and changes states."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def find(self, node_ids: Collection[str]) -> dict[str, StoredState]:
        """node_id → state, of those that there are."""
        found: dict[str, StoredState] = {}
        with self._db.read() as connection:
            for part in slices(sorted(node_ids)):
                rows = connection.execute(select(stored_states).where(stored_states.c.node_id.in_(part)))
                found.update({row.node_id: state_of(row) for row in rows})
        return found

    def of_documents(self, doc_ids: Collection[str]) -> dict[str, StoredState]:
        """doc_id → intake state, of the documents that have one."""
        found: dict[str, StoredState] = {}
        with self._db.read() as connection:
            for part in slices(sorted(doc_ids)):
                mine = and_(stored_states.c.doc_id.in_(part), stored_states.c.node == INTAKE_NODE)
                found.update({row.doc_id: state_of(row) for row in connection.execute(select(stored_states).where(mine))})
        return found

    def earlier_of(self, doc_id: str) -> list[StoredState]:
        """The superseded states of a document: contents that it had before and that are still kept for it."""
        mine = and_(stored_states.c.doc_id == doc_id, stored_states.c.state == SUPERSEDED)
        with self._db.read() as connection:
            return [state_of(row) for row in connection.execute(select(stored_states).where(mine).order_by(stored_states.c.node_id))]

    def of_content(self, tenant_id: str, content_hash: str) -> list[StoredState]:
        """The pipeline states of a content: one for each way in which it was parsed."""
        mine = and_(stored_states.c.doc_id == content_hash, stored_states.c.tenant_id == tenant_id)
        with self._db.read() as connection:
            return [state_of(row) for row in connection.execute(select(stored_states).where(mine).order_by(stored_states.c.node_id))]

    def save(self, identity: StateIdentity, content_hash: str, entries: Sequence[PartEntry]) -> Manifest:
        """Put entries into a state's manifest; the state is made where it is missing. Returns the manifest that then holds: an entry whose
        body is there already stays as it was, and its new object is in no manifest.

        Objects that the entries take the place of are freed. Raises Transient where the content is gone, since its last document is.
        """
        while True:
            state = self.find([identity.node_id]).get(identity.node_id)
            if state is None:
                if (manifest := self._insert(identity, content_hash, entries)) is not None:
                    return manifest
                continue
            merged = state.manifest.merged(entry for entry in entries if not entry.has_body_of(state.manifest.find(*entry.key)))
            if merged == state.manifest:
                return merged
            kept = {entry.object_key for entry in merged.present()}
            lost = [entry.object_key for entry in state.manifest.present() if entry.object_key not in kept and entry.object_key is not None]
            with self._db.begin() as connection:
                if self.change(connection, state, merged):
                    self.free(connection, identity.tenant_id, DriveKind.PIPELINE, lost)
                    return merged

    def _insert(self, identity: StateIdentity, content_hash: str, entries: Sequence[PartEntry]) -> Manifest | None:
        manifest = Manifest.of(entries)
        try:
            with self._db.begin() as connection:
                row = insert_unless_taken(self._db, stored_states).values(**self._row(identity, content_hash, manifest.to_json()))
                made = connection.execute(row.returning(stored_states.c.node_id)).one_or_none()
                return None if made is None else manifest
        except IntegrityError as error:
            with self._db.read() as connection:
                if connection.execute(select(contents.c.size).where(is_content(identity.tenant_id, content_hash))).first() is not None:
                    raise
            raise Transient(f"content {content_hash[:12]} of tenant {identity.tenant_id} was freed while it was worked on") from error

    def _row(self, identity: StateIdentity, content_hash: str, manifest: list[dict[str, Any]]) -> dict[str, Any]:
        now = self._db.now()
        return {
            "node_id": identity.node_id,
            "doc_id": identity.doc_id,
            "node": identity.node,
            "tenant_id": identity.tenant_id,
            "graph": identity.graph,
            "content_hash": content_hash,
            "manifest": manifest,
            "revision": 1,
            "state": LIVE,
            "created_at": now,
            "updated_at": now,
            "doomed_at": None,
            "look_at": None,
        }

    def change(self, connection: Connection, state: StoredState, manifest: Manifest) -> bool:
        """Inside a transaction: a new manifest, unless the state has changed since it was read. One that was purged and made anew, whose
        revisions began again, is told by when it was made."""
        mine = and_(stored_states.c.node_id == state.node_id, stored_states.c.created_at == state.created_at)
        same = and_(mine, stored_states.c.revision == state.revision)
        values = {"manifest": manifest.to_json(), "revision": state.revision + 1, "updated_at": self._db.now()}
        return connection.execute(update(stored_states).where(same).values(**values)).rowcount == 1

    def free(self, connection: Connection, tenant_id: str, kind: DriveKind, keys: Iterable[str], purge_id: int | None = None) -> None:
        """Inside the transaction that takes their owner away: these objects are to go. `purge_id` is the purge that waits for it."""
        now = self._db.now()
        rows = [{"tenant_id": tenant_id, "kind": kind, "object_key": key, "freed_at": now, "purge_id": purge_id} for key in keys]
        if rows:
            connection.execute(insert_if_absent(self._db, freed_objects), rows)

    def own(self, connection: Connection, tenant_id: str, doc_id: str, content_hash: str | None, by: WrittenBy) -> None:
        """Inside the transaction that gives a document a content, which is locked: its intake state has the content's bytes from now on,
        whether or not it was doomed. None takes the bytes away from it.

        A content that it had before stays its own in a superseded state, since indexes still serve it. Raises Transient where the content
        was freed meanwhile.
        """
        here = intake_state(tenant_id, doc_id)
        found = select(stored_states).where(stored_states.c.node_id == here.node_id).with_for_update()
        before = connection.execute(found).one_or_none()
        if before is not None and before.content_hash != content_hash:
            earlier = self._row(earlier_state(tenant_id, doc_id, before.content_hash), before.content_hash, before.manifest)
            values = {**earlier, "state": SUPERSEDED, "doomed_at": earlier["updated_at"], "look_at": earlier["updated_at"]}
            connection.execute(insert_or_update(self._db, stored_states, ("doomed_at", "look_at")).values(**values))
        if content_hash is None:
            connection.execute(delete(stored_states).where(stored_states.c.node_id == here.node_id))
            return
        again = earlier_state(tenant_id, doc_id, content_hash).node_id
        connection.execute(delete(stored_states).where(stored_states.c.node_id == again))
        row = self._row(here, content_hash, [self._take(connection, tenant_id, doc_id, content_hash, by).to_json()])
        if before is None:
            connection.execute(insert(stored_states).values(**row))
            return
        changed = {name: row[name] for name in ("content_hash", "manifest", "state", "updated_at", "doomed_at", "look_at")}
        mine = update(stored_states).where(stored_states.c.node_id == here.node_id)
        connection.execute(mine.values(**changed, revision=stored_states.c.revision + 1))

    def _take(self, connection: Connection, tenant_id: str, doc_id: str, content_hash: str, by: WrittenBy) -> PartEntry:
        """The entry of a content's bytes, which are somebody's from now on."""
        taken = update(contents).where(is_content(tenant_id, content_hash)).values(unowned_at=None)
        content = connection.execute(taken.returning(contents.c.size, contents.c.object)).one_or_none()
        if content is None or (content.object is None and content.size):
            raise Transient(f"content {content_hash[:12]} of document {doc_id} was freed while the document was read; it is read again")
        state, sha256 = (PartState.PRESENT, content_hash) if content.size else (PartState.EMPTY, None)
        return PartEntry(Part.BLOBS, "", state, content.size, sha256, self._db.now(), content.object, by)

    def claims(self, connection: Connection, tenant_id: str, hashes: Collection[str]) -> list[StoredState]:
        """Inside a transaction that has locked these contents: the states of documents that have their bytes, in one order."""
        found: list[StoredState] = []
        for part in slices(sorted(hashes)):
            mine = and_(stored_states.c.tenant_id == tenant_id, stored_states.c.content_hash.in_(part))
            theirs = select(stored_states).where(mine, stored_states.c.graph == f"{DriveKind.INTAKE}:{tenant_id}")
            found.extend(state_of(row) for row in connection.execute(theirs.order_by(stored_states.c.node_id).with_for_update()))
        return found

    def bring_back(self, tenant_id: str, content_hash: str, key: str) -> bool:
        """The bytes of a content that were deleted are stored again, under a key of the intake drive. Returns False where the content is
        gone, or has bytes by now. Like the bytes of a new content, nobody frees them for HANDLING."""
        now = self._db.now()
        with self._db.begin() as connection:
            lock_contents(connection, [(tenant_id, content_hash)])
            lacking = and_(is_content(tenant_id, content_hash), contents.c.object.is_(None))
            if connection.execute(update(contents).where(lacking).values(object=key, unowned_at=now)).rowcount != 1:
                return False
            for state in self.claims(connection, tenant_id, [content_hash]):
                entry = state.manifest.find(Part.BLOBS)
                if entry is not None and entry.deleted_reason in (DeletedReason.POST_PARSE_POLICY, DeletedReason.LOST):
                    self.change(connection, state, state.manifest.merged([entry.kept_again(key, now)]))
        return True

    def lose(self, node_id: str, key: str) -> None:
        """An object of a pipeline state is not on its drive any more: its manifest says so from now on, unless it has another by now."""
        while (state := self.find([node_id]).get(node_id)) is not None:
            left = state.manifest.without_object(key, self._db.now())
            if left == state.manifest:
                return
            with self._db.begin() as connection:
                if self.change(connection, state, left):
                    return

    def lose_source(self, tenant_id: str, content_hash: str, key: str) -> None:
        """The source bytes of a content are not on their drive any more: so say all who have it, unless it has others by now."""
        now = self._db.now()
        with self._db.begin() as connection:
            lock_contents(connection, [(tenant_id, content_hash)])
            same = and_(is_content(tenant_id, content_hash), contents.c.object == key)
            if connection.execute(update(contents).where(same).values(object=None)).rowcount != 1:
                return
            for state in self.claims(connection, tenant_id, [content_hash]):
                self.change(connection, state, state.manifest.without_object(key, now))

    def is_source_lost(self, tenant_id: str, content_hash: str) -> bool:
        """Whether the source bytes of a content were lost, as one of the states that have it tells."""
        mine = and_(stored_states.c.tenant_id == tenant_id, stored_states.c.content_hash == content_hash)
        theirs = select(stored_states.c.manifest).where(mine, stored_states.c.graph == f"{DriveKind.INTAKE}:{tenant_id}").limit(1)
        with self._db.read() as connection:
            manifest = connection.execute(theirs).scalar_one_or_none()
        entry = None if manifest is None else Manifest.from_json(manifest).find(Part.BLOBS)
        return entry is not None and entry.is_lost

    def doom(self, connection: Connection, doc_ids: Collection[str]) -> None:
        """Inside the transaction that tombstones documents: their intake states are to be purged."""
        now = self._db.now()
        for part in slices(sorted(doc_ids)):
            mine = and_(stored_states.c.doc_id.in_(part), stored_states.c.node == INTAKE_NODE, stored_states.c.state == LIVE)
            connection.execute(update(stored_states).where(mine).values(state=PENDING_PURGE, doomed_at=now, look_at=now))

    def freed(self, skip: int, limit: int) -> list[FreedObject]:
        """Objects that were freed and still have bytes, oldest first, without the first `skip` and those that a purge waits for."""
        alone = freed_objects.c.purge_id.is_(None)
        in_order = select(freed_objects).where(alone).order_by(freed_objects.c.freed_at, freed_objects.c.object_key)
        statement = in_order.offset(skip).limit(limit)
        with self._db.read() as connection:
            return [_freed(row) for row in connection.execute(statement)]

    def freed_by(self, purge_ids: Collection[int]) -> list[FreedObject]:
        """The objects whose bytes these purges wait for."""
        with self._db.read() as connection:
            rows = connection.execute(select(freed_objects).where(freed_objects.c.purge_id.in_(sorted(purge_ids))))
            return [_freed(row) for row in rows]

    def forgotten(self, counts: Mapping[FreedObject, int]) -> None:
        """Vectors have left the caches that only these chunk sets had, so many of each; now their bytes may go."""
        now = self._db.now()
        mine = and_(*(freed_objects.c[name] == bindparam(f"of_{name}") for name in ("tenant_id", "kind", "object_key")))
        mark = update(freed_objects).where(mine).values(forgotten_at=now, forgotten_vectors=bindparam("counted"))
        rows = [
            {"of_tenant_id": each.tenant_id, "of_kind": each.kind, "of_object_key": each.object_key, "counted": count}
            for each, count in counts.items()
        ]
        if rows:
            with self._db.begin() as connection:
                connection.execute(mark, rows)

    def removed(self, objects: Sequence[FreedObject]) -> None:
        """The bytes of these are gone."""
        with self._db.begin() as connection:
            for part in slices(objects):
                each = (
                    and_(
                        freed_objects.c.tenant_id == gone.tenant_id,
                        freed_objects.c.kind == gone.kind,
                        freed_objects.c.object_key == gone.object_key,
                    )
                    for gone in part
                )
                connection.execute(delete(freed_objects).where(or_(*each)))


def _freed(row: Row[Any]) -> FreedObject:
    return FreedObject(row.tenant_id, DriveKind(row.kind), row.object_key, row.purge_id, row.forgotten_at, row.forgotten_vectors)


def state_of(row: Row[Any]) -> StoredState:
    """The state of a row."""
    values = {field.name: row._mapping[field.name] for field in fields(StoredState)}
    return StoredState(**{**values, "manifest": Manifest.from_json(row.manifest)})
