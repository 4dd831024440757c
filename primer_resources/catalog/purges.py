"""Purges: the catalog's side of taking a document's bodies away for good, and the proofs of it.

A purge goes in three transactions with the stores' work between them. First the catalog lets go: under locks, of what is still deleted
and no index serves any more, it deletes the states that own bodies, frees the objects that nobody else owns, and keeps what it knew. Then
the bytes go. Last, when all was looked for and not found, one transaction ends the purge and writes its proof. A process that dies between
them leaves a purge that the next run ends.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row, and_, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from primer_core.stored_states import DriveKind, Manifest, Part, PartEntry, PartKey
from primer_resources.catalog.contents import HANDLING, is_content, lock_contents
from primer_resources.catalog.database import Database
from primer_resources.catalog.generations import lock_documents, slices
from primer_resources.catalog.schema import LIVE_STATES, chunks, documents, in_states, index_state, intents, jobs, purges_due
from primer_resources.catalog.schema_bodies import (
    contents,
    freed_objects,
    parsed,
    purge_proofs,
    purges,
    reviews,
    stored_states,
)
from primer_resources.catalog.stored_states import StoredStates, state_of

SOURCE: PartKey = (Part.BLOBS, "")
LOOK_AGAIN = 0.25
"""A state that cannot go yet is left alone for this share of the time for which it has waited: its rows go within minutes, but the version
after it may be long in coming, or a dead letter."""


@dataclass(frozen=True, slots=True)
class ReleasedContent:
    """A content that a document had. `is_freed` says that no other document has it; then `entries` tell of all its bodies: the source's
    (BLOBS without a sub-key) and those of its pipeline states."""

    content_hash: str
    size: int
    is_freed: bool
    entries: tuple[PartEntry, ...]

    def keys(self, kind: DriveKind) -> list[str]:
        """The keys of its objects on one of the tenant's drives."""
        mine = (entry for entry in self.entries if (entry.key == SOURCE) == (kind is DriveKind.INTAKE))
        return [entry.object_key for entry in mine if entry.object_key is not None]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, for the catalog."""
        return {
            "content_hash": self.content_hash,
            "size": self.size,
            "is_freed": self.is_freed,
            "entries": [entry.to_json() for entry in self.entries],
        }

    @staticmethod
    def from_json(data: dict[str, Any]) -> "ReleasedContent":
        """The content back from the catalog's JSON."""
        return ReleasedContent(**{**data, "entries": tuple(PartEntry.from_json(each) for each in data["entries"])})


@dataclass(frozen=True, slots=True)
class Purge:
    """A purge under way: the document, the contents that it had, and its index rows (index version → bucket → row ids) as far as the
    catalog still knew them."""

    purge_id: int
    doc_id: str
    tenant_id: str
    source_id: str
    library: str
    uri: str
    deleted_at: datetime
    contents: tuple[ReleasedContent, ...]
    rows: dict[str, dict[str, list[str]]]


@dataclass(frozen=True, slots=True)
class Proof:
    """That a document is gone. `looked_at` says where it was looked and for how much; all of it was gone. What could not be looked for is
    counted there as `unread_chunk_sets`: chunk sets that were lost before their purge, so that nobody knows which vectors were theirs."""

    purge_id: int
    doc_id: str
    tenant_id: str
    source_id: str
    library: str
    uri: str
    contents: list[dict[str, Any]]
    looked_at: dict[str, int]
    deleted_at: datetime
    purged_at: datetime


class Purges:
    """Finds what is to be purged, lets go of it, and keeps the proofs."""

    def __init__(self, database: Database, states: StoredStates) -> None:
        self._db = database
        self._states = states

    def doomed(self, grace: timedelta, after: str, limit: int) -> list[str]:
        """doc_ids behind `after` with states that were doomed the grace ago or earlier, in order. `release` looks whether they can be let
        go of; those that could not are left out for a while."""
        old = stored_states.c.look_at <= self._db.now() - grace
        statement = select(stored_states.c.doc_id).where(old, stored_states.c.doc_id > after).distinct()
        with self._db.read() as connection:
            return list(connection.execute(statement.order_by(stored_states.c.doc_id).limit(limit)).scalars())

    def is_due(self, grace: timedelta) -> bool:
        """Whether a purge would find something to do."""
        now = self._db.now()
        with self._db.read() as connection:
            wanted = (
                select(stored_states.c.node_id).where(stored_states.c.look_at <= now - grace),
                select(contents.c.content_hash).where(contents.c.unowned_at <= now - HANDLING),
                select(freed_objects.c.object_key),
                select(purges.c.purge_id),
            )
            return any(connection.execute(statement.limit(1)).first() is not None for statement in wanted)

    def waiting(self) -> tuple[int, int]:
        """How many states wait to be let go of, and how many objects to be removed."""
        with self._db.read() as connection:
            states = select(func.count()).select_from(stored_states).where(stored_states.c.doomed_at.is_not(None))
            objects = select(func.count()).select_from(freed_objects)
            return connection.execute(states).scalar_one(), connection.execute(objects).scalar_one()

    def release(self, doc_ids: Collection[str], grace: timedelta) -> int:
        """Let go of what these documents have no more: deleted ones of everything, which begins a purge each, living ones of contents that
        they had before. What an index may still serve stays, and so does a document that came back. Returns how many states went."""
        now = self._db.now()
        with self._db.begin() as connection:
            doomed = and_(stored_states.c.doc_id.in_(sorted(doc_ids)), stored_states.c.doomed_at.is_not(None))
            wanted = connection.execute(select(stored_states.c.tenant_id, stored_states.c.content_hash).where(doomed)).all()
            lock_contents(connection, ((row.tenant_id, row.content_hash) for row in wanted))
            lock_documents(connection, doc_ids)
            # Looked at again under the locks: a document that came back meanwhile has a state that is not doomed.
            found = connection.execute(select(stored_states).where(doomed).order_by(stored_states.c.node_id).with_for_update()).all()
            needed = self._served(connection, doc_ids, now - grace) | self._touched(connection, found, now)
            busy = self._busy(connection, doc_ids)
            dead = {row.doc_id: row for row in connection.execute(_DEAD.where(documents.c.doc_id.in_(sorted(doc_ids))))}
            by_document: dict[str, list[Row[Any]]] = {}
            for row in found:
                by_document.setdefault(row.doc_id, []).append(row)
            gone = 0
            for doc_id, rows in by_document.items():
                if doc_id in dead:
                    if doc_id in busy or any((doc_id, row.content_hash) in needed for row in rows):
                        self._look_again(connection, rows, now)
                        continue
                    released = [self._release(connection, row) for row in rows]
                    self._begin(connection, dead[doc_id], released, now)
                    gone += len(rows)
                    continue
                for row in rows:
                    if (doc_id, row.content_hash) in needed:
                        self._look_again(connection, [row], now)
                        continue
                    self._free(connection, self._release(connection, row), row.tenant_id, None)
                    gone += 1
        return gone

    def _look_again(self, connection: Connection, rows: Sequence[Row[Any]], now: datetime) -> None:
        for row in rows:
            doomed_at = state_of(row).doomed_at or now
            later = update(stored_states).where(stored_states.c.node_id == row.node_id)
            connection.execute(later.values(look_at=now + (now - doomed_at) * LOOK_AGAIN))

    def _served(self, connection: Connection, doc_ids: Collection[str], flipped_before: datetime) -> set[tuple[str, str]]:
        """(doc_id, content hash) that index rows or jobs of the documents still rest on."""
        mine = index_state.c.doc_id.in_(sorted(doc_ids))
        before = and_(index_state.c.previous_content_hash.is_not(None), index_state.c.flipped_at > flipped_before)
        found = {(row.doc_id, row.content_hash) for row in connection.execute(select(index_state).where(mine)) if row.content_hash}
        for row in connection.execute(select(index_state.c.doc_id, index_state.c.previous_content_hash).where(mine, before)):
            found.add((row.doc_id, row.previous_content_hash))
        live = and_(jobs.c.doc_id.in_(sorted(doc_ids)), jobs.c.content_hash.is_not(None), in_states(jobs.c.state, LIVE_STATES))
        for row in connection.execute(select(jobs.c.doc_id, jobs.c.content_hash).where(live)):
            found.add((row.doc_id, row.content_hash))
        return found

    def _touched(self, connection: Connection, rows: Sequence[Row[Any]], now: datetime) -> set[tuple[str, str]]:
        """(doc_id, content hash) of states whose content a sync has just stored, and is about to give to some document."""
        found: set[tuple[str, str]] = set()
        for row in rows:
            recent = and_(is_content(row.tenant_id, row.content_hash), contents.c.unowned_at > now - HANDLING)
            if connection.execute(select(contents.c.size).where(recent)).first() is not None:
                found.add((row.doc_id, row.content_hash))
        return found

    def _busy(self, connection: Connection, doc_ids: Collection[str]) -> set[str]:
        """Documents with work under way, or with rows that an index may still have."""
        ids = sorted(doc_ids)
        found: set[str] = set()
        for column, still in (
            (jobs.c.doc_id, in_states(jobs.c.state, LIVE_STATES)),
            (purges_due.c.doc_id, purges_due.c.done_at.is_(None)),
            (intents.c.doc_id, intents.c.doc_id.is_not(None)),
        ):
            found.update(connection.execute(select(column).where(column.in_(ids), still).distinct()).scalars())
        return found

    def _release(self, connection: Connection, row: Row[Any]) -> ReleasedContent:
        """Take a content from one state that owns it, and try to free it: the foreign key refuses where another state owns it, too."""
        connection.execute(delete(stored_states).where(stored_states.c.node_id == row.node_id))
        source = tuple(Manifest.from_json(row.manifest).entries.values())
        here = is_content(row.tenant_id, row.content_hash)
        content = connection.execute(select(contents).where(here)).one()
        made = self._try_to_free(connection, row.tenant_id, row.content_hash)
        return ReleasedContent(row.content_hash, content.size, made is not None, (*source, *(made or ())))

    def _try_to_free(self, connection: Connection, tenant_id: str, content_hash: str) -> list[PartEntry] | None:
        """Delete a content and all that was made of it. Returns the entries of the latter, or None where another state owns the content."""
        of_content = and_(stored_states.c.tenant_id == tenant_id, stored_states.c.doc_id == content_hash)
        made = [state_of(row) for row in connection.execute(select(stored_states).where(of_content).order_by(stored_states.c.node_id))]
        try:
            with connection.begin_nested():
                for table in (parsed, reviews):
                    connection.execute(delete(table).where(table.c.tenant_id == tenant_id, table.c.content_hash == content_hash))
                connection.execute(delete(stored_states).where(of_content))
                connection.execute(delete(contents).where(is_content(tenant_id, content_hash)))
        except IntegrityError:
            return None
        return [entry for state in made for _, entry in sorted(state.manifest.entries.items())]

    def _begin(self, connection: Connection, document: Any, released: Sequence[ReleasedContent], now: datetime) -> None:
        rows: dict[str, dict[str, list[str]]] = {}
        due = select(purges_due.c.index_version, purges_due.c.bucket, purges_due.c.row_id).where(purges_due.c.doc_id == document.doc_id)
        for row in connection.execute(due.order_by(purges_due.c.row_id)):
            rows.setdefault(row.index_version, {}).setdefault(row.bucket, []).append(row.row_id)
        facts = {
            **{name: getattr(document, name) for name in ("doc_id", "tenant_id", "source_id", "library", "uri")},
            "deleted_at": document.deleted_at.isoformat(),
            "contents": [content.to_json() for content in released],
            "rows": rows,
        }
        begun = insert(purges).values(facts=facts, released_at=now).returning(purges.c.purge_id)
        purge_id: int = connection.execute(begun).scalar_one()
        for content in released:
            self._free(connection, content, document.tenant_id, purge_id)

    def _free(self, connection: Connection, content: ReleasedContent, tenant_id: str, purge_id: int | None) -> None:
        if not content.is_freed:
            return
        for kind in DriveKind:
            self._states.free(connection, tenant_id, kind, content.keys(kind), purge_id)

    def free_unowned(self, limit: int) -> int:
        """Free contents that no document was given within HANDLING after they were stored; those that one was given after all are owned
        from now on. Returns how many went."""
        gone = 0
        with self._db.read() as connection:
            old = contents.c.unowned_at <= self._db.now() - HANDLING
            found = connection.execute(select(contents.c.tenant_id, contents.c.content_hash).where(old).limit(limit)).all()
        for row in found:
            with self._db.begin() as connection:
                lock_contents(connection, [(row.tenant_id, row.content_hash)])
                here = and_(is_content(row.tenant_id, row.content_hash), contents.c.unowned_at <= self._db.now() - HANDLING)
                content = connection.execute(select(contents).where(here)).one_or_none()
                if content is None:
                    continue
                made = self._try_to_free(connection, row.tenant_id, row.content_hash)
                if made is None:
                    connection.execute(update(contents).where(here).values(unowned_at=None))
                    continue
                source = [] if content.object is None else [content.object]
                self._states.free(connection, row.tenant_id, DriveKind.INTAKE, source)
                keys = [entry.object_key for entry in made if entry.object_key is not None]
                self._states.free(connection, row.tenant_id, DriveKind.PIPELINE, keys)
                gone += 1
        return gone

    def under_way(self, after: int, limit: int) -> list[Purge]:
        """Purges behind `after` that were begun and not ended, oldest first."""
        with self._db.read() as connection:
            rows = connection.execute(select(purges).where(purges.c.purge_id > after).order_by(purges.c.purge_id).limit(limit)).all()
        return [_purge(row) for row in rows]

    def of_document(self, doc_id: str) -> list[Purge]:
        """The purges of a document that were begun and not ended."""
        mine = purges.c.facts["doc_id"].as_string() == doc_id
        with self._db.read() as connection:
            return [_purge(row) for row in connection.execute(select(purges).where(mine).order_by(purges.c.purge_id))]

    def living_texts(self, text_hashes: Collection[str]) -> set[str]:
        """Those of these embedded texts (by their SHA-256) that a passage of some document still has."""
        found: set[str] = set()
        with self._db.read() as connection:
            for part in slices(sorted(text_hashes)):
                found.update(connection.execute(select(chunks.c.text_hash).where(chunks.c.text_hash.in_(part)).distinct()).scalars())
        return found

    def finish(self, done: Sequence[tuple[Purge, dict[str, int]]]) -> None:
        """End purges whose every piece was looked for and is gone, and write their proofs, in one transaction. One that another run has
        ended is passed over."""
        now = self._db.now()
        with self._db.begin() as connection:
            for purge, looked_at in done:
                connection.execute(delete(freed_objects).where(freed_objects.c.purge_id == purge.purge_id))
                ended = connection.execute(delete(purges).where(purges.c.purge_id == purge.purge_id))
                if ended.rowcount == 1:
                    connection.execute(
                        insert(purge_proofs).values(
                            purge_id=purge.purge_id,
                            doc_id=purge.doc_id,
                            tenant_id=purge.tenant_id,
                            source_id=purge.source_id,
                            library=purge.library,
                            uri=purge.uri,
                            contents=[_summary(content) for content in purge.contents],
                            looked_at=looked_at,
                            deleted_at=purge.deleted_at,
                            purged_at=now,
                        )
                    )

    def proofs(self, doc_id: str) -> list[Proof]:
        """The proofs of a document, oldest first: one for each time that it was deleted and purged."""
        with self._db.read() as connection:
            rows = connection.execute(select(purge_proofs).where(purge_proofs.c.doc_id == doc_id).order_by(purge_proofs.c.purge_id))
            return [Proof(**row._mapping) for row in rows]


_DEAD = select(
    documents.c.doc_id, documents.c.tenant_id, documents.c.source_id, documents.c.library, documents.c.uri, documents.c.deleted_at
).where(documents.c.deleted_at.is_not(None))


def _purge(row: Row[Any]) -> Purge:
    facts = dict(row.facts)
    contents_of = tuple(ReleasedContent.from_json(each) for each in facts.pop("contents"))
    deleted_at = datetime.fromisoformat(facts.pop("deleted_at"))
    return Purge(row.purge_id, deleted_at=deleted_at, contents=contents_of, **facts)


def _summary(content: ReleasedContent) -> dict[str, Any]:
    """What a proof says of a content: hashes and sizes, and no key that still leads anywhere."""
    parts = [
        {"part": entry.part, "sub_key": entry.sub_key, "size": entry.size, "sha256": entry.sha256, "written_by": entry.written_by.stage}
        for entry in content.entries
    ]
    return {
        "content_hash": content.content_hash,
        "size": content.size,
        "bytes": "gone" if content.is_freed else "kept for other documents",
        "parts": parts,
    }
