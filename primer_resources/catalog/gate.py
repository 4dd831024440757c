"""The reader's gate: one look-up, from one snapshot, that says of hits which rows count and which document each may be shown as.

Rows of a content stand for every document that has it. A hit is shown as the document whose rows they are where the searcher may see
that one, else as a copy that he may see, else not at all; nothing of a document that he may not see is told.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, exists, func, or_, select

from primer_core.ids import chunk_of, row_id
from primer_core.visibility import DocumentView, Holding, TwoFlips, generation_as_of, holding_as_of, is_visible
from primer_resources.catalog.copies import Content
from primer_resources.catalog.database import Database
from primer_resources.catalog.generations import slices
from primer_resources.catalog.schema import acl_groups, acls, canonicals, chunks, documents, index_state, purges_due


@dataclass(frozen=True, slots=True)
class HitDocument:
    """What a search result says of its document."""

    doc_id: str
    source_id: str
    path: str
    uri: str


@dataclass(frozen=True, slots=True)
class Owner:
    """A document that hits' rows belong to. `outputs` are what its rows may quote, the present one and the one before: the hash of a
    content, and the label of the pages of it that a person let through."""

    view: DocumentView
    document: HitDocument
    place: tuple[str, str]
    outputs: tuple[tuple[str, str], ...]

    @property
    def contents(self) -> set[Content]:
        """What its rows are of, at present and before."""
        return {Content(*self.place, content_hash) for content_hash, _ in self.outputs}


@dataclass(frozen=True, slots=True)
class Copied:
    """A content that hidden documents' rows hold: its canonical document, and the copies that the searcher may see, in order."""

    leading: DocumentView | None
    copies: tuple[tuple[DocumentView, HitDocument], ...]


@dataclass(frozen=True, slots=True)
class Gate:
    """What one look-up says of the hits' documents and rows. `live` are the rows that the catalog lists now."""

    owners: Mapping[str, Owner]
    dead_gens: Mapping[str, int]
    live: frozenset[str]
    copied: Mapping[Content, Copied] = field(default_factory=dict)

    def shown_as(self, doc_id: str, row: str, added_gen: int, started_at: datetime) -> HitDocument | None:
        """The document that a hit on a row counts as for a reader who began at `started_at`; None where it does not count.

        Raises TwoFlips where that can no longer be known.
        """
        owner = self.owners.get(doc_id)
        if owner is None or (owner.view.hidden and self.copied.keys().isdisjoint(owner.contents)):
            return None
        generation = generation_as_of(owner.view, started_at)
        # The list of live chunks decides: a row of a writer that woke up after all of its marks were forgotten is in no list.
        # A document that came back after its deletion is at generation 0 until it is indexed: its old rows are listed and do not count.
        counts = (
            added_gen <= generation and row in self.live
            if generation == owner.view.generation
            else is_visible(added_gen, self.dead_gens, row, generation)
        )
        if not counts:
            return None
        return self._copy(owner, started_at) if owner.view.hidden else owner.document

    def _copy(self, owner: Owner, started_at: datetime) -> HitDocument | None:
        """A copy of what the owner held then, if its rows stood for copies: another document's do once they are there."""
        held = holding_as_of(owner.view, started_at)
        copied = self.copied.get(Content(*owner.place, held.content_hash or ""))
        if copied is None:
            return None
        if copied.leading is not None and copied.leading.doc_id != owner.document.doc_id:
            other = holding_as_of(copied.leading, started_at)
            if other.content_hash == held.content_hash and not other.is_copy:
                return None
        unsure: TwoFlips | None = None
        for view, document in copied.copies:
            try:
                mine = holding_as_of(view, started_at)
            except TwoFlips as twice:
                unsure = twice
                continue
            if mine.is_copy and mine.content_hash == held.content_hash:
                return document
        if unsure is not None:
            raise unsure
        return None


class GateLookup:
    """Looks hits up in the catalog."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def look(
        self, index_version: str, doc_ids: Collection[str], row_ids: Collection[str], groups: Collection[str], started_at: datetime
    ) -> Gate:
        """Generations, tombstones, permissions, copies and purges of hits, for a reader of these groups who began at `started_at`.

        A document whose ACL opens to none of the groups is hidden.
        """
        with self._db.read() as connection:
            owners = {owner.document.doc_id: owner for owner in self._owners(connection, index_version, doc_ids, groups)}
            held = {content for owner in owners.values() if owner.view.hidden for content in owner.contents}
            copied = self._copied(connection, index_version, held, groups, started_at)
            dead: dict[str, int] = {}
            live: set[str] = set()
            for part in slices(sorted(row_ids)):
                statement = select(purges_due.c.row_id, purges_due.c.dead_gen).where(
                    purges_due.c.index_version == index_version, purges_due.c.row_id.in_(part)
                )
                dead.update({row.row_id: row.dead_gen for row in connection.execute(statement)})
            for part in slices(sorted({chunk_of(row) for row in row_ids})):
                listed = select(chunks.c.chunk_id, chunks.c.added_gen).where(
                    chunks.c.index_version == index_version, chunks.c.chunk_id.in_(part)
                )
                live.update(row_id(row.chunk_id, row.added_gen) for row in connection.execute(listed))
        return Gate(owners, dead, frozenset(live), copied)

    def _owners(self, connection: Connection, index_version: str, doc_ids: Collection[str], groups: Collection[str]) -> Iterable[Owner]:
        allowed = set(groups)
        statement = (
            select(*_OWNER)
            .join(index_state, index_state.c.doc_id == documents.c.doc_id)
            .outerjoin(acls, acls.c.acl_id == documents.c.acl_id)
            .where(index_state.c.index_version == index_version)
        )
        for part in slices(sorted(doc_ids)):
            for row in connection.execute(statement.where(documents.c.doc_id.in_(part))):
                unsure = row.acl_error is not None or not row.readable
                hidden = row.deleted_at is not None or unsure or allowed.isdisjoint(row.allow_groups or ())
                outputs = ((row.content_hash, row.accepted_pages), (row.previous_content_hash, row.previous_accepted_pages))
                held = tuple(output for output in outputs if output[0])
                yield Owner(_view(row, hidden), _document(row), (row.tenant_id, row.library), held)

    def _copied(
        self, connection: Connection, index_version: str, held: Collection[Content], groups: Collection[str], started_at: datetime
    ) -> dict[Content, Copied]:
        """The copies of contents that the groups open: the first of those that stand still, and all that flipped since the search began."""
        if not held or not groups:
            return {}
        found: dict[Content, list[tuple[DocumentView, HitDocument]]] = {}
        for part in slices(sorted({content.content_hash for content in held})):
            present = and_(index_state.c.is_copy, index_state.c.content_hash.in_(part))
            before = and_(index_state.c.previous_is_copy, index_state.c.previous_content_hash.in_(part))
            here = and_(index_state.c.index_version == index_version, _is_open(groups))
            place = (documents.c.tenant_id, documents.c.library, index_state.c.content_hash)
            first = (
                select(func.min(documents.c.doc_id))
                .join(index_state, index_state.c.doc_id == documents.c.doc_id)
                .where(here, present, index_state.c.generation > 0, index_state.c.flipped_at <= started_at)
                .group_by(*place)
            )
            chosen = [str(doc_id) for doc_id in connection.execute(first).scalars()]
            statement = select(*_DOCUMENT, *_STATE).join(index_state, index_state.c.doc_id == documents.c.doc_id)
            moving = and_(or_(present, before), index_state.c.flipped_at > started_at)
            wanted = statement.where(here, or_(and_(present, documents.c.doc_id.in_(chosen)), moving)).order_by(documents.c.doc_id)
            for row in connection.execute(wanted):
                for content_hash in {row.content_hash, row.previous_content_hash} - {None}:
                    entry = (_view(row, hidden=False), _document(row))
                    found.setdefault(Content(row.tenant_id, row.library, content_hash), []).append(entry)
        leading = self._leading(connection, index_version, found) if found else {}
        return {content: Copied(leading.get(content), tuple(copies)) for content, copies in found.items()}

    def _leading(self, connection: Connection, index_version: str, held: Collection[Content]) -> dict[Content, DocumentView]:
        views: dict[Content, DocumentView] = {}
        for part in slices(sorted({content.content_hash for content in held})):
            statement = (
                select(canonicals.c.tenant_id, canonicals.c.library, canonicals.c.content_hash.label("led"), *_STATE)
                .join(index_state, index_state.c.doc_id == canonicals.c.doc_id)
                .where(index_state.c.index_version == index_version, canonicals.c.content_hash.in_(part))
            )
            for row in connection.execute(statement):
                views[Content(row.tenant_id, row.library, row.led)] = _view(row, hidden=True)
        return views


_DOCUMENT: Sequence[ColumnElement[Any]] = [documents.c[name] for name in ("tenant_id", "library", "source_id", "path", "uri")]
_STATE: Sequence[ColumnElement[Any]] = [
    index_state.c[name]
    for name in (
        "doc_id",
        "generation",
        "previous_generation",
        "flipped_at",
        "previous_flipped_at",
        "content_hash",
        "previous_content_hash",
        "accepted_pages",
        "previous_accepted_pages",
        "is_copy",
        "previous_is_copy",
    )
]


_OWNER: Sequence[ColumnElement[Any]] = [
    *_DOCUMENT,
    *_STATE,
    documents.c.acl_error,
    documents.c.deleted_at,
    acls.c.allow_groups,
    acls.c.readable,
]


def _is_open(groups: Collection[str]) -> ColumnElement[bool]:
    """Whether a document is living, its permissions are known, and one of the groups may read it."""
    granted = exists().where(
        acl_groups.c.acl_id == documents.c.acl_id,
        acl_groups.c.tenant_id == documents.c.tenant_id,
        acl_groups.c.group_name.in_(sorted(groups)),
    )
    known = exists().where(acls.c.acl_id == documents.c.acl_id, acls.c.readable)
    return and_(documents.c.deleted_at.is_(None), documents.c.acl_error.is_(None), known, granted)


def _document(row: Row[Any]) -> HitDocument:
    return HitDocument(row.doc_id, row.source_id, row.path, row.uri)


def _view(row: Row[Any], hidden: bool) -> DocumentView:
    return DocumentView(
        row.doc_id,
        row.generation,
        row.previous_generation,
        row.flipped_at,
        row.previous_flipped_at,
        hidden,
        Holding(row.content_hash, row.is_copy),
        Holding(row.previous_content_hash, row.previous_is_copy),
    )
