"""One sync of one source: a full listing against the catalog, in batches, each committed with the jobs that it causes.

Known paths are settled while the listing streams by; unknown ones wait in a spool until it has ended, since only then is it known
which documents vanished and may stand there under a new path. Memory stays flat, whatever the source holds, and nothing is written for
a document that stands as it stood.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import islice
from typing import TextIO

from sqlalchemy import Connection

from primer_assets.source_deletes import delete_documents
from primer_assets.source_reading import Read, Reading
from primer_core import ids
from primer_core.buckets import bucket_of
from primer_core.delete_guard import DeleteDecision, Verdict, decide_deletes, vanishing_digest
from primer_core.failures import SystemFault
from primer_core.lanes import FastLane
from primer_core.renames import Appeared, Vanished, match_renames
from primer_core.source_time import from_ns
from primer_core.stages import FETCH, Operation
from primer_core.stored_states import WrittenBy
from primer_core.sync_report import SyncReport
from primer_resources.catalog.acls import AclRow
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.copies import Content
from primer_resources.catalog.documents import KnownDocument, Placement, VersionFacts
from primer_resources.catalog.held_deletes import HeldState
from primer_resources.catalog.jobs import NewJob
from primer_resources.catalog.sources import Source
from primer_resources.connectors.base import Access, Connector, Cursor, ListedItem
from primer_resources.connectors.frozen import to_line, unspool
from primer_resources.containers.expander import Expander
from primer_resources.document_store import TenantStore
from primer_resources.scratch import Scratch
from primer_resources.seen_ids import MissingIds, SeenIds

LISTED_A_BATCH = 500
IDS_A_PAGE = 10_000
FETCHED_A_BATCH = 50
"""Documents fetched before a commit: what a crash may fetch again."""
RACY = timedelta(seconds=2)
"""A file changed this shortly before the last good sync began, or since, may have changed again within one tick of its file
system's clock (FAT: 2 s)."""


@dataclass(slots=True)
class SourceSync:
    """One sync under way."""

    catalog: Catalog
    store: TenantStore
    connector: Connector
    expander: Expander
    source: Source
    scan: int
    epoch: int
    buckets: int
    confirms_held: bool
    fast: FastLane
    report: SyncReport = field(default_factory=SyncReport)
    problems: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)
    cursor: Cursor | None = None
    vanished_digest: str | None = None
    _acls: dict[str, AclRow] = field(default_factory=dict)
    _changed_acls: set[str] = field(default_factory=set)
    _seen: SeenIds = field(init=False)
    hiding: set[str] = field(default_factory=set)
    open_reading: Callable[..., Reading] = Reading
    run_id: str = ""
    versions: Sequence[str] = ()
    """The index versions that the transaction under way writes to."""

    def run(self) -> DeleteDecision:
        """List, settle, delete. Returns what was decided on the documents that the listing no longer showed.

        Raises SystemFault where the connector gives no listing, which is not the same as an empty one.
        """
        source = self.source.source_id
        self._acls = self.catalog.acls.of_source(source)
        with Scratch() as work, (work / "new.jsonl").open("w+", encoding="utf-8") as spool:
            listing = self.connector.list(self.source.cursor)
            if listing is None:
                raise SystemFault(f"source {source}: its connector gave no listing at all; nothing is known of its documents")
            self._seen = SeenIds(work / "seen")
            reading = self.open_reading(self.catalog, self.store, self.connector, self.expander, self.fast, work)
            for batch in _batches(listing, LISTED_A_BATCH):
                self._settle_known(batch, spool, reading)
            missing = self._seen.missing_of(self.catalog.documents.living_ids(source, IDS_A_PAGE))
            spool.seek(0)
            for batch in _batches(unspool(spool), FETCHED_A_BATCH):
                self._settle_new(batch, reading, missing)
            self.problems, self.skipped, self.cursor = listing.problems, listing.skipped, listing.cursor
            self.notices = (*listing.notices, *reading.notices)
            self.report.bytes_read = reading.bytes_read
            return self._settle_vanished(missing)

    def _settle_known(self, batch: list[ListedItem], spool: TextIO, reading: Reading) -> None:
        known = self.catalog.documents.by_path(self.source.source_id, [item.path for item in batch])
        self._seen.add(document.doc_id for document in known.values())
        self.report.scanned += len(batch)
        self.hiding.update(item.access.error for item in batch if not item.access.readable)
        shown: list[ListedItem] = []
        to_read: list[ListedItem] = []
        for item in batch:
            document = known.get(item.path)
            if document is None:
                spool.write(to_line(item))
            elif self._must_read(item, document):
                to_read.append(item)
            else:
                shown.append(item)
        self._settle_shown(batch, [(item, known[item.path]) for item in shown], shown)
        for part in _batches(to_read, FETCHED_A_BATCH):
            reads = reading.read_all(part, known)
            self._settle_reads(reads, known)
            # What was not taken apart to the end has the members that it had, under the permissions that now hold.
            taken_apart = {read.item.path for read in reads if read.is_taken_apart}
            self._settle_shown((), (), [item for item in part if item.path not in taken_apart])

    def _settle_shown(
        self,
        accesses: Sequence[ListedItem],
        shown: Sequence[tuple[ListedItem, KnownDocument]],
        containers: Sequence[ListedItem],
    ) -> None:
        """Documents whose content stays, and the members of `containers`: seen, and moved to another ACL where the source says so.

        `accesses` are items whose ACL rows are written first.
        """
        members = self.catalog.documents.members(self.source.source_id, [item.path for item in containers])
        inside = [(item, member) for item in containers for member in members.get(item.path, ())]
        self.report.scanned += len(inside)
        moved = [(item, document) for item, document in (*shown, *inside) if self._is_granted_anew(item, document)]
        regranted = {document.doc_id for _, document in moved}
        kept = [(item, document) for item, document in (*shown, *inside) if document.doc_id not in regranted]
        back = [document.doc_id for _, document in kept if document.missing_scan is not None]
        self._seen.add(member.doc_id for _, member in inside)
        if moved or back or self._new_acls(accesses):
            with self.catalog.database.begin() as connection:
                self._begin(connection, accesses, [*regranted, *back], regranted)
                self.catalog.documents.mark_present(connection, back)
                for item, document in moved:
                    self._grant(connection, item.access, document)
        for item, document in (*kept, *moved):
            self._count_kept(item, moved=document.doc_id in regranted)

    def _settle_reads(self, reads: Sequence[Read], known: Mapping[str, KnownDocument]) -> None:
        """Known documents that were read again, and the members found in them, in one transaction: a container never has half of them."""
        members = [member for read in reads for member in read.members]
        self.report.scanned += len(members)
        inside = self.catalog.documents.by_path(self.source.source_id, [member.item.path for member in members])
        self._seen.add(document.doc_id for document in inside.values())
        fresh_ids = self._new_ids([member.item.path for member in members if member.item.path not in inside])
        self._seen.add(doc_id for doc_id, _ in fresh_ids.values())
        changing = [known[read.item.path].doc_id for read in reads] + [each.doc_id for each in inside.values()]
        with self.catalog.database.begin() as connection:
            locked = self._begin(connection, (), changing, changing, (*reads, *members))
            for read in reads:
                self._settle_read(connection, read, known[read.item.path])
            for member in members:
                present = inside.get(member.item.path)
                if present is None:
                    self._add(connection, member, *fresh_ids[member.item.path])
                else:
                    self._settle_read(connection, member, present)
            self.catalog.copies.settle(connection, locked, self.versions)

    def _must_read(self, item: ListedItem, document: KnownDocument) -> bool:
        if item.fault is not None or document.content_hash is None or document.fetch_again or item.fingerprint != document.fingerprint:
            return True
        began = self.source.last_began_at
        return began is not None and from_ns(item.modified_ns) >= began - RACY

    def _settle_read(self, connection: Connection, read: Read, document: KnownDocument) -> None:
        """A document that was read again: the same bytes move only metadata; other bytes, or a fault, are a new version."""
        item, fetched = read.item, read.fetched
        if read.fault is not None and document.reason == read.fault.reason:
            if item.path == document.path:
                self.catalog.documents.mark_present(connection, [document.doc_id])
                self.report.unchanged += 1
            else:
                self._move(connection, item, item.fingerprint, document)
            self.report.still_unreadable += 1
            return
        if fetched is not None and fetched.content_hash == document.content_hash:
            self._move(connection, item, fetched.fingerprint, document)
            if document.fetch_again:
                self._index_again(connection, read, document)
            return
        version = self._version(read, document.version_order)
        place = self._place(item, item.fingerprint if fetched is None else fetched.fingerprint, document)
        if self.catalog.documents.advance(connection, document.doc_id, place, version):
            self.report.changed += 1
            self._own(connection, document.doc_id, version)
            self._add_job(connection, document.doc_id, document.bucket or version.bucket, version, read, place)

    def _settle_new(self, batch: list[ListedItem], reading: Reading, missing: MissingIds) -> None:
        listed = reading.read_all(batch, {})
        reads = [each for read in listed for each in (read, *read.members)]
        self.report.scanned += len(reads) - len(listed)
        hashes = {read.fetched.content_hash for read in reads if read.fetched is not None}
        left = {d.doc_id: d for d in self.catalog.documents.with_content(self.source.source_id, hashes) if d.doc_id in missing}
        renames = match_renames(
            [Vanished(d.doc_id, d.path, d.content_hash or "") for d in left.values()],
            [Appeared(read.item.path, read.fetched.content_hash) for read in reads if read.fetched is not None],
        )
        fresh_ids = self._new_ids([read.item.path for read in reads if read.item.path not in renames])
        renamed = sorted(set(renames.values()))
        with self.catalog.database.begin() as connection:
            locked = self._begin(connection, batch, renamed, renamed, reads)
            for read in reads:
                doc_id = renames.get(read.item.path)
                if doc_id is not None and read.fetched is not None:
                    missing.take_out(doc_id)
                    self.report.renamed += 1
                    self._move(connection, read.item, read.fetched.fingerprint, left[doc_id])
                else:
                    self._add(connection, read, *fresh_ids[read.item.path])
            self.catalog.copies.settle(connection, locked, self.versions)

    def _new_ids(self, paths: Sequence[str]) -> dict[str, tuple[str, int]]:
        """path → (doc_id, version order that it must pass). A living document may still own the id of its first path."""
        chosen: dict[str, tuple[str, int]] = {}
        keys = {path: path for path in paths}
        count = 0
        while keys:
            wanted = {path: ids.doc_id(self.source.source_id, key) for path, key in keys.items()}
            taken = self.catalog.documents.by_id(wanted.values())
            count += 1
            keys = {}
            for path, doc_id in wanted.items():
                owner = taken.get(doc_id)
                if owner is not None and owner.deleted_at is None:
                    keys[path] = f"{path}\0{count}"
                else:
                    chosen[path] = (doc_id, -1 if owner is None else owner.version_order)
        return chosen

    def _add(self, connection: Connection, read: Read, doc_id: str, order: int) -> None:
        version = self._version(read, order)
        place = self._place(read.item, read.item.fingerprint if read.fetched is None else read.fetched.fingerprint, None)
        if self.catalog.documents.add(connection, self.source, doc_id, place, version):
            self.report.new += 1
            self._own(connection, doc_id, version)
            bucket = self.catalog.documents.bucket(connection, doc_id)
            self._add_job(connection, doc_id, bucket, version, read, place)
            told = [] if place.container else self.catalog.events.waiting_acls(connection, self.source.source_id, place.path)
            if told:
                self.catalog.inbox.tell(connection, self.source, told, self.versions)

    def _own(self, connection: Connection, doc_id: str, version: VersionFacts) -> None:
        """The document has the bytes of its version from now on, and no others."""
        by = WrittenBy(FETCH, self.run_id, version.source_version)
        self.catalog.states.own(connection, self.source.tenant_id, doc_id, version.content_hash, by)

    def _version(self, read: Read, order: int) -> VersionFacts:
        """What is seen now is newer than what is known, whatever the file's time says: an older file may have been put back."""
        fetched = read.fetched
        modified = read.item.modified_ns if fetched is None else fetched.modified_ns
        label = f"{read.item.version or modified}-{'unread' if fetched is None else fetched.content_hash[:12]}"
        return VersionFacts(
            source_version=label,
            version_order=max(read.item.order or modified, order + 1),
            content_hash=None if fetched is None else fetched.content_hash,
            mime=read.mime,
            bucket=None if fetched is None else bucket_of(fetched.content_hash, self.buckets),
            status="pending" if read.fault is None else "dead_letter",
            reason=None if read.fault is None else read.fault.reason,
        )

    def _add_job(
        self, connection: Connection, doc_id: str, bucket: str | None, version: VersionFacts, read: Read, place: Placement
    ) -> None:
        job = NewJob(
            doc_id,
            self.source.source_id,
            version.source_version,
            version.content_hash,
            bucket or "",
            read.lane,
            Operation.UPSERT,
            place.event_time,
        )
        if read.fault is not None:
            self.catalog.dead_letters.add(connection, job, self.versions, FETCH, read.fault)
            self.report.unreadable += 1
        else:
            operation = self.catalog.copies.join(connection, doc_id, version.content_hash or "", self.versions)
            self.catalog.jobs.add(connection, [replace(job, operation=operation)], self.versions)

    def _index_again(self, connection: Connection, read: Read, document: KnownDocument) -> None:
        """A replay waited for the bytes of a document, which are those that it had: it goes its whole way once more."""
        self.catalog.documents.fetched(connection, document.doc_id)
        operation = self.catalog.copies.join(connection, document.doc_id, document.content_hash or "", self.versions)
        job = NewJob(
            document.doc_id,
            self.source.source_id,
            document.source_version,
            document.content_hash,
            document.bucket or "",
            read.lane,
            operation,
            self.catalog.database.clock.now(),
        )
        self.catalog.jobs.add(connection, [job], self.versions)

    def _move(self, connection: Connection, item: ListedItem, fingerprint: str, document: KnownDocument) -> None:
        """The content stays, and everything else is as the source shows it now."""
        place = self._place(item, fingerprint, document)
        self.catalog.documents.move(connection, document.doc_id, place)
        if document.content_hash is not None:
            self.catalog.contents.owned(connection, self.source.tenant_id, document.content_hash)
        self._queue_new_acl(connection, document, place.acl_id)
        self._count_kept(item, (place.acl_id, place.acl_error) != (document.acl_id, document.acl_error))

    def _grant(self, connection: Connection, access: Access, document: KnownDocument) -> None:
        """Content and place stay; only who may see it changes."""
        acl_id, acl_error = self._access(access, document)
        self.catalog.documents.grant(connection, document.doc_id, acl_id, acl_error)
        self._queue_new_acl(connection, document, acl_id)

    def _queue_new_acl(self, connection: Connection, document: KnownDocument, acl_id: str) -> None:
        """A document that came under another ACL has the rows that stand for it rewritten; its own ACL already decides."""
        if acl_id != document.acl_id and document.bucket is not None:
            self.catalog.copies.rewrite(connection, document.doc_id, self.versions)

    def _is_granted_anew(self, item: ListedItem, document: KnownDocument) -> bool:
        return (document.acl_id, document.acl_error) != self._access(item.access, document)

    def _count_kept(self, item: ListedItem, moved: bool) -> None:
        if moved or self._acl_id(item.access) in self._changed_acls:
            self.report.acl_only += 1
        else:
            self.report.unchanged += 1

    def _settle_vanished(self, missing: MissingIds) -> DeleteDecision:
        """Deletes, under the guard: the listing proves absence only when it is complete, and much absence only when it says so twice."""
        source, count, digest = self.source.source_id, len(missing), vanishing_digest(missing)
        self.vanished_digest = digest
        decided = self.catalog.held_deletes.find(source, digest)
        decision = decide_deletes(
            known=missing.known,
            vanishing=count,
            digest=digest,
            complete=not self.problems,
            previously_held=self.source.held_digest if self.confirms_held else None,
            approved=digest if decided is not None and decided.state is HeldState.APPROVED else None,
            rejected=(decided is not None and decided.state is HeldState.REJECTED) or self.catalog.held_deletes.is_rejected_missing(source),
        )
        if decision.verdict is Verdict.APPLY:
            self._delete_missing(missing)
        elif decision.verdict is Verdict.HOLD:
            self._hold(missing, digest, decision.reasons)
        if decision.verdict is not Verdict.REFUSE:
            self._close_held(digest, decision.verdict)
        return decision

    def _delete_missing(self, missing: MissingIds) -> None:
        for page in missing.pages(LISTED_A_BATCH):
            gone = list(self.catalog.documents.by_id(page).values())
            with self.catalog.database.begin() as connection:
                self.catalog.sources.check(connection, self.source.source_id, self.epoch)
                self.report.deleted += delete_documents(self.catalog, connection, self.source, gone)

    def _hold(self, missing: MissingIds, digest: str, reasons: Sequence[str]) -> None:
        """Mark what is missing, so that a person can let exactly this set through, and remember it."""
        for page in missing.pages(LISTED_A_BATCH):
            with self.catalog.database.begin() as connection:
                self.catalog.sources.check(connection, self.source.source_id, self.epoch)
                self.catalog.documents.mark_missing(connection, page, self.scan)
        self.report.held = len(missing)
        with self.catalog.database.begin() as connection:
            self.catalog.sources.check(connection, self.source.source_id, self.epoch)
            self.catalog.held_deletes.hold(connection, self.source.source_id, digest, self.scan, len(missing), reasons)

    def _close_held(self, digest: str, verdict: Verdict) -> None:
        """A complete listing has decided: what was held and is not this set any more waits for nobody."""
        with self.catalog.database.begin() as connection:
            self.catalog.sources.check(connection, self.source.source_id, self.epoch)
            self.catalog.held_deletes.close(connection, self.source.source_id, digest, is_held=verdict is Verdict.HOLD)

    def _begin(
        self,
        connection: Connection,
        batch: Iterable[ListedItem],
        doc_ids: Collection[str],
        changing: Collection[str],
        reads: Iterable[Read] = (),
    ) -> list[Content]:
        """Fence the batch, lock its documents and contents in the order that all lock them in, and write the ACL rows that it names anew.

        `changing` are the documents whose content or permissions may change, `reads` what they and new ones are now. Returns the
        contents whose copies are to be settled at the end.
        """
        self.versions = self.catalog.deployments.written_to(connection)
        self.catalog.sources.check(connection, self.source.source_id, self.epoch)
        place = (self.source.tenant_id, self.source.library)
        hashes = {read.fetched.content_hash for read in reads if read.fetched is not None}
        locked = self.catalog.copies.lock(connection, place, doc_ids, changing, hashes)
        for row in self._new_acls(batch).values():
            self.catalog.acls.put(connection, self.source, row, self.catalog.database.clock.now())
            if row.acl_id in self._acls:
                self._changed_acls.add(row.acl_id)
            self._acls[row.acl_id] = row
        return locked

    def _new_acls(self, batch: Iterable[ListedItem]) -> dict[str, AclRow]:
        """acl_id → the ACL row that items name and the catalog has otherwise or not at all; where two differ, the later one."""
        rows = {}
        for item in batch:
            access = item.access
            if access.readable:
                acl_id = self._acl_id(access)
                rows[acl_id] = AclRow(acl_id, access.scope, tuple(sorted(set(access.groups))), readable=True, error="")
        return {acl_id: row for acl_id, row in rows.items() if self._acls.get(acl_id) != row}

    def _acl_id(self, access: Access) -> str:
        return ids.acl_id(self.source.tenant_id, self.source.source_id, access.scope)

    def _access(self, access: Access, document: KnownDocument | None) -> tuple[str, str | None]:
        """(ACL id, why it could not be read). What an event told stands before what the source shows; unread permissions hide the document
        and leave what is known of them as it was."""
        if document is not None and document.told_acl_id is not None:
            return document.told_acl_id, None
        if access.readable:
            return self._acl_id(access), None
        return self._acl_id(access) if document is None else document.acl_id, access.error

    def _place(self, item: ListedItem, fingerprint: str, document: KnownDocument | None) -> Placement:
        acl_id, acl_error = self._access(item.access, document)
        return Placement(item.path, item.uri, item.title, item.container, fingerprint, acl_id, acl_error, from_ns(item.modified_ns))


def _batches(items: Iterable[ListedItem], size: int) -> Iterator[list[ListedItem]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch
