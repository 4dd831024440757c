"""A sync of one source by its change feed: piece by piece from the saved cursor, each piece committed with the cursor that follows it.

A delete that a feed tells of is evidence by itself, for that one document; the delete guard is for what a listing merely fails to show.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from sqlalchemy import Connection

from primer_assets.feed_plan import FeedPlan, plan_changes
from primer_assets.source_deletes import tombstone_documents
from primer_assets.source_reading import Read, Reading, member_item
from primer_assets.source_sync import SourceSync
from primer_core.renames import Appeared, Vanished, match_renames
from primer_core.stages import Operation
from primer_resources.catalog.documents import Deletion, KnownDocument
from primer_resources.connectors.base import ORDER_STEP, Change, ChangePage, Cursor, CursorExpired, ListedItem
from primer_resources.scratch import Scratch

MOST_PAGES = 1000
"""Pieces of a feed in one sync. Beyond it the source waits for its next turn, so that one busy source does not hold a run for hours."""


@dataclass(slots=True)
class _Settled:
    """What a piece comes to, before it is written: reads of known and of new documents, documents that only move, and what is gone."""

    known_reads: list[tuple[Read, KnownDocument]]
    new_reads: list[tuple[Read, Change]]
    shown: list[tuple[ListedItem, KnownDocument]]
    gone: dict[str, tuple[KnownDocument, Change]]


@dataclass(slots=True)
class FeedSync(SourceSync):
    """One sync by the feed."""

    def follow(self, cursor: Cursor) -> None:
        """Settle all that happened since the cursor. Raises CursorExpired where only a full listing can go on."""
        self._acls = self.catalog.acls.of_source(self.source.source_id)
        with Scratch() as work:
            reading = self.open_reading(self.catalog, self.store, self.connector, self.expander, self.fast, work)
            for page in self.pages(cursor):
                self._settle_page(page, reading, is_moved=_key(page.cursor) != _key(cursor))
                cursor = page.cursor
            self.notices = (*self.notices, *reading.notices)
            self.report.bytes_read += reading.bytes_read

    def pages(self, cursor: Cursor) -> Iterator[ChangePage]:
        """The pieces of the feed since the cursor. Raises CursorExpired where only a full listing can go on."""
        seen = {_key(cursor)}
        for _ in range(MOST_PAGES):
            page = self.connector.changes(cursor)
            if page is None:
                raise CursorExpired(f"source {self.source.source_id} has a cursor and no change feed")
            if page.more and _key(page.cursor) in seen:
                raise CursorExpired(f"source {self.source.source_id}: its feed came back to a cursor that it gave before")
            yield page
            cursor = page.cursor
            seen.add(_key(cursor))
            if not page.more:
                return
        self.notices = (f"the feed has more than {MOST_PAGES} pages; the next sync goes on from there",)

    def _settle_page(self, page: ChangePage, reading: Reading, is_moved: bool) -> None:
        if page.changes or is_moved:
            save = partial(self.catalog.sources.save_cursor, source_id=self.source.source_id, cursor=page.cursor)
            self._settle_changes(page.changes, reading, save)

    def _settle_changes(self, changes: Iterable[Change], reading: Reading, also: Callable[[Connection], None]) -> None:
        """Settle changes, oldest first, in one transaction; `also` is what is written with them."""
        plan = plan_changes(changes)
        self.hiding.update(
            each.change.item.access.error for each in plan.standing.values() if each.change.item and not each.change.item.access.readable
        )
        settled = self._read_page(plan, reading)
        self.report.scanned += len(settled.shown) + len(settled.known_reads) + len(settled.new_reads)
        fresh_ids = self._new_ids([read.item.path for read, _ in settled.new_reads])
        touched = {document.doc_id for _, document in (*settled.known_reads, *settled.shown)}
        touched |= {document.doc_id for document, _ in settled.gone.values()}
        items = [each.change.item for each in plan.standing.values() if each.change.item is not None]
        reads = [read for read, _ in (*settled.known_reads, *settled.new_reads)]
        with self.catalog.database.begin() as connection:
            locked = self._begin(connection, items, touched, touched, reads)
            self._delete_gone(connection, settled)
            for item, document in settled.shown:
                self._keep(connection, item, document)
            for read, document in settled.known_reads:
                self._settle_read(connection, read, document)
            for read, change in settled.new_reads:
                doc_id, order = fresh_ids[read.item.path]
                if order >= 0 and not _is_after(change, order):
                    self.report.unchanged += 1  # a late repeat of what was deleted since
                else:
                    self._add(connection, read, doc_id, order)
            self.catalog.copies.settle(connection, locked, self.versions)
            also(connection)

    def _read_page(self, plan: FeedPlan, reading: Reading) -> _Settled:
        """Look up what is known, leave out what is older, and read what may have new bytes."""
        paths = {*plan.standing, *plan.gone, *(each.origin for each in plan.standing.values())}
        known = self.catalog.documents.by_path(self.source.source_id, paths)
        members = self.catalog.documents.members(self.source.source_id, [document.path for document in known.values()])
        settled = _Settled([], [], [], self._gone(plan, known))
        to_read: dict[str, tuple[ListedItem, KnownDocument | None, Change]] = {}
        for path, standing in plan.standing.items():
            change, document = standing.change, known.get(standing.origin)
            item = change.item
            if item is None:
                raise CursorExpired(f"source {self.source.source_id}: its feed tells of {path!r} and does not show it")
            if document is not None and _is_before(change, document.version_order):
                self.report.scanned += 1
                self.report.unchanged += 1
                settled.gone.pop(document.doc_id, None)
            elif document is None or (change.operation is not Operation.ACL and self._must_read(item, document)):
                to_read[path] = (item, document, change)
            else:
                settled.shown.append((item, document))
                settled.shown.extend(_inside(item, document, members.get(document.path, ())))
        stay = {path: document for path, (_, document, _) in to_read.items() if document is not None and document.path == path}
        reads = reading.read_all([item for item, _, _ in to_read.values()], stay)
        moved = self._match_moved(reads, to_read, settled)
        for read in reads:
            _, document, change = to_read[read.item.path]
            document = document or moved.get(read.item.path)
            self._sort_read(read, document, change, members, settled)
        self._add_members_of_gone(members, settled)
        return settled

    def _gone(self, plan: FeedPlan, known: Mapping[str, KnownDocument]) -> dict[str, tuple[KnownDocument, Change]]:
        """doc_id → what the feed says was deleted, and what a document that moved onto its path replaced."""
        gone = {}
        for path, change in plan.gone.items():
            document = known.get(path)
            if document is not None and not _is_before(change, document.version_order):
                gone[document.doc_id] = (document, change)
        staying = {standing.origin for standing in plan.standing.values()}
        for path, standing in plan.standing.items():
            replaced = known.get(path)
            if replaced is not None and path not in staying and path not in plan.gone:
                gone[replaced.doc_id] = (replaced, standing.change)
        return gone

    def _match_moved(
        self, reads: Sequence[Read], to_read: Mapping[str, tuple[ListedItem, KnownDocument | None, Change]], settled: _Settled
    ) -> dict[str, KnownDocument]:
        """path → the document that went elsewhere in this piece and has the same bytes: a rename that the source tells as two events."""
        left = {doc_id: document for doc_id, (document, _) in settled.gone.items()}
        appeared = [
            Appeared(read.item.path, read.fetched.content_hash)
            for read in reads
            if read.fetched is not None and to_read[read.item.path][1] is None
        ]
        vanished = [Vanished(doc_id, document.path, document.content_hash or "") for doc_id, document in left.items()]
        matched = {path: left[doc_id] for path, doc_id in match_renames(vanished, appeared).items()}
        self.report.renamed += len(matched)
        for document in matched.values():
            del settled.gone[document.doc_id]
        return matched

    def _sort_read(
        self,
        read: Read,
        document: KnownDocument | None,
        change: Change,
        members: Mapping[str, list[KnownDocument]],
        settled: _Settled,
    ) -> None:
        """A read document and its members, each to where it belongs."""
        if document is None:
            settled.new_reads.extend((each, change) for each in (read, *read.members))
            return
        settled.known_reads.append((read, document))
        inside = {member.path.removeprefix(document.path): member for member in members.get(document.path, ())}
        if read.is_taken_apart:
            for member in read.members:
                present = inside.pop(member.item.path.removeprefix(read.item.path), None)
                if present is None:
                    settled.new_reads.append((member, change))
                else:
                    settled.known_reads.append((member, present))
            settled.gone.update({member.doc_id: (member, change) for member in inside.values()})
        else:
            settled.shown.extend(_inside(read.item, document, inside.values()))

    def _add_members_of_gone(self, members: Mapping[str, list[KnownDocument]], settled: _Settled) -> None:
        """What was inside a deleted container is gone with it, unless it stands elsewhere now."""
        kept = {document.doc_id for _, document in (*settled.known_reads, *settled.shown)}
        for container, change in list(settled.gone.values()):
            inside = (member for member in members.get(container.path, ()) if member.doc_id not in kept)
            settled.gone.update({member.doc_id: (member, change) for member in inside if member.doc_id not in settled.gone})

    def _delete_gone(self, connection: Connection, settled: _Settled) -> None:
        told = {doc_id: Deletion(change.order, change.event_time) for doc_id, (_, change) in settled.gone.items()}
        documents = [document for document, _ in settled.gone.values()]
        self.report.deleted += tombstone_documents(self.catalog, connection, self.source, documents, self.versions, told)

    def _keep(self, connection: Connection, item: ListedItem, document: KnownDocument) -> None:
        """The content stays; place and permissions follow."""
        if item.path != document.path:
            self.report.renamed += 1
            self._move(connection, item, item.fingerprint, document)
            return
        granted = self._is_granted_anew(item, document)
        if granted:
            self._grant(connection, item.access, document)
        elif document.missing_scan is not None:
            self.catalog.documents.mark_present(connection, [document.doc_id])
        self._count_kept(item, granted)


def _inside(item: ListedItem, container: KnownDocument, members: Iterable[KnownDocument]) -> Iterator[tuple[ListedItem, KnownDocument]]:
    """The members of a container as they stand where it stands now."""
    for member in members:
        yield member_item(item, member.path.removeprefix(f"{container.path}/"), member.fingerprint, 0), member


def _key(cursor: Cursor) -> str:
    return json.dumps(cursor, sort_keys=True)


def _is_before(change: Change, version_order: int) -> bool:
    """Whether the change is older than the version that is known, as far as the source can tell them apart."""
    return change.order // ORDER_STEP < version_order // ORDER_STEP


def _is_after(change: Change, version_order: int) -> bool:
    return change.order // ORDER_STEP > version_order // ORDER_STEP
