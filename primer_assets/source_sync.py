"""One sync of one source: a full listing against the catalog, in batches, each committed with the jobs that it causes.

Known paths are settled while the listing streams by; unknown ones wait in a spool until it has ended, since only then is it known
which documents vanished and may stand there under a new path. Memory stays flat, whatever the source holds.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import TextIO

from sqlalchemy import Connection

from primer_core import ids
from primer_core.buckets import bucket_of
from primer_core.delete_guard import DeleteDecision, Verdict, decide_deletes, vanishing_digest
from primer_core.failures import DocumentFault, Reason, Transient
from primer_core.lanes import FastLane, Lane, lane_at_fetch
from primer_core.renames import Appeared, Vanished, match_renames
from primer_core.stages import FETCH, Operation
from primer_core.sync_report import SyncReport
from primer_resources.catalog.acls import AclRow
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.documents import KnownDocument, Placement, VersionFacts
from primer_resources.catalog.jobs import NewJob
from primer_resources.catalog.sources import Source
from primer_resources.connectors.base import Access, Connector, Fetched, ListedItem
from primer_resources.document_store import DocumentStore
from primer_resources.parser.sniffing import sniff_file
from primer_resources.scratch import Scratch

LISTED_A_BATCH = 500
FETCHED_A_BATCH = 50
"""Documents fetched before a commit: what a crash may fetch again."""
TRIES = 3
"""Reads of a file that changes while it is read, before it is left for the next sync."""
RACY = timedelta(seconds=2)
"""A file changed this shortly before the last good sync began, or since, may have changed again within one tick of its file
system's clock (FAT: 2 s)."""


@dataclass(frozen=True, slots=True)
class Read:
    """What reading an item gave: its content, kind and lane, or the fault that it has."""

    item: ListedItem
    fetched: Fetched | None
    mime: str | None
    fault: DocumentFault | None
    lane: Lane = Lane.FAST


@dataclass(slots=True)
class SourceSync:
    """One sync under way."""

    catalog: Catalog
    store: DocumentStore
    connector: Connector
    source: Source
    scan: int
    epoch: int
    versions: Sequence[str]
    buckets: int
    confirms_held: bool
    fast: FastLane
    report: SyncReport = field(default_factory=SyncReport)
    problems: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)
    _acls: dict[str, AclRow] = field(default_factory=dict)
    _changed_acls: set[str] = field(default_factory=set)
    hiding: set[str] = field(default_factory=set)

    def run(self) -> DeleteDecision:
        """List, settle, delete. Returns what was decided on the documents that the listing no longer showed."""
        self._acls = self.catalog.acls.of_source(self.source.source_id)
        known_before = self.catalog.documents.living(self.source.source_id)
        with Scratch() as work, (work / "new.jsonl").open("w+", encoding="utf-8") as spool:
            listing = self.connector.list()
            for batch in _batches(listing, LISTED_A_BATCH):
                self._settle_known(batch, spool, work)
            self.problems, self.notices, self.skipped = listing.problems, listing.notices, listing.skipped
            spool.seek(0)
            for batch in _batches(_unspool(spool), FETCHED_A_BATCH):
                self._settle_new(batch, work)
        return self._settle_vanished(known_before)

    def _settle_known(self, batch: list[ListedItem], spool: TextIO, work: Path) -> None:
        known = self.catalog.documents.by_path(self.source.source_id, [item.path for item in batch])
        self.report.scanned += len(batch)
        seen: list[str] = []
        moved: list[tuple[ListedItem, KnownDocument]] = []
        to_read: list[ListedItem] = []
        self.hiding.update(item.access.error for item in batch if not item.access.readable)
        for item in batch:
            document = known.get(item.path)
            if document is None:
                spool.write(json.dumps(asdict(item)) + "\n")
            elif self._must_read(item, document):
                to_read.append(item)
            elif (document.acl_id, document.acl_error) != self._access(item.access, document):
                moved.append((item, document))
            else:
                seen.append(document.doc_id)
        with self.catalog.database.begin() as connection:
            self._begin(connection, batch, [*seen, *(document.doc_id for _, document in moved)])
            self.catalog.documents.mark_seen(connection, seen, self.scan)
            for item, document in moved:
                self._move(connection, item, item.fingerprint, document)
        kept = set(seen)
        for item in batch:
            document = known.get(item.path)
            if document is not None and document.doc_id in kept:
                self._count_kept(item, moved=False)
        for part in _batches(to_read, FETCHED_A_BATCH):
            reads = self._read_all(part, known, work)
            with self.catalog.database.begin() as connection:
                self._begin(connection, (), [known[read.item.path].doc_id for read in reads])
                for read in reads:
                    self._settle_read(connection, read, known[read.item.path])

    def _must_read(self, item: ListedItem, document: KnownDocument) -> bool:
        if item.fault is not None or document.content_hash is None or item.fingerprint != document.fingerprint:
            return True
        began = self.source.last_began_at
        return began is not None and _moment(item.modified_ns) >= began - RACY

    def _settle_read(self, connection: Connection, read: Read, document: KnownDocument) -> None:
        """A document that was read again: the same bytes move only metadata; other bytes, or a fault, are a new version."""
        item, fetched = read.item, read.fetched
        if read.fault is not None and document.reason == read.fault.reason:
            self.catalog.documents.mark_seen(connection, [document.doc_id], self.scan)
            self.report.unchanged += 1
            self.report.still_unreadable += 1
            return
        if fetched is not None and fetched.content_hash == document.content_hash:
            self._move(connection, item, fetched.fingerprint, document)
            return
        version = self._version(read, document.version_order)
        place = self._place(item, item.fingerprint if fetched is None else fetched.fingerprint, document)
        if self.catalog.documents.advance(connection, document.doc_id, place, version, self.scan):
            self.report.changed += 1
            self._add_job(connection, document.doc_id, document.bucket or version.bucket, version, read, place)

    def _settle_new(self, batch: list[ListedItem], work: Path) -> None:
        reads = self._read_all(batch, {}, work)
        hashes = {read.fetched.content_hash for read in reads if read.fetched is not None}
        left = {d.doc_id: d for d in self.catalog.documents.unseen_with_content(self.source.source_id, self.scan, hashes)}
        renames = match_renames(
            [Vanished(d.doc_id, d.path, d.content_hash or "") for d in left.values()],
            [Appeared(read.item.path, read.fetched.content_hash) for read in reads if read.fetched is not None],
        )
        fresh_ids = self._new_ids([read.item.path for read in reads if read.item.path not in renames])
        with self.catalog.database.begin() as connection:
            self._begin(connection, batch, sorted(set(renames.values())))
            for read in reads:
                doc_id = renames.get(read.item.path)
                if doc_id is not None and read.fetched is not None:
                    self.report.renamed += 1
                    self._move(connection, read.item, read.fetched.fingerprint, left[doc_id])
                else:
                    self._add(connection, read, *fresh_ids[read.item.path])

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
        if self.catalog.documents.add(connection, self.source, doc_id, place, version, self.scan):
            self.report.new += 1
            bucket = self.catalog.documents.bucket(connection, doc_id)
            self._add_job(connection, doc_id, bucket, version, read, place)

    def _version(self, read: Read, order: int) -> VersionFacts:
        """What is seen now is newer than what is known, whatever the file's time says: an older file may have been put back."""
        fetched = read.fetched
        modified = read.item.modified_ns if fetched is None else fetched.modified_ns
        label = f"{modified}-{'unread' if fetched is None else fetched.content_hash[:12]}"
        return VersionFacts(
            source_version=label,
            version_order=max(modified, order + 1),
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
            self.catalog.jobs.add_dead(connection, job, self.versions, FETCH, read.fault)
            self.report.unreadable += 1
        else:
            self.catalog.jobs.add(connection, [job], self.versions)

    def _move(self, connection: Connection, item: ListedItem, fingerprint: str, document: KnownDocument) -> None:
        """The content stays. A document that came under another ACL has its rows rewritten; its own ACL already decides."""
        place = self._place(item, fingerprint, document)
        self.catalog.documents.move(connection, document.doc_id, place, self.scan)
        moved = place.acl_id != document.acl_id
        if moved and document.bucket is not None:
            job = NewJob(
                document.doc_id,
                self.source.source_id,
                document.source_version,
                document.content_hash,
                document.bucket,
                Lane.FAST,
                Operation.ACL,
                self.catalog.database.clock.now(),
            )
            self.catalog.jobs.add(connection, [job], self.versions)
        self._count_kept(item, moved or place.acl_error != document.acl_error)

    def _count_kept(self, item: ListedItem, moved: bool) -> None:
        if moved or self._acl_id(item.access) in self._changed_acls:
            self.report.acl_only += 1
        else:
            self.report.unchanged += 1

    def _settle_vanished(self, known_before: int) -> DeleteDecision:
        """Deletes, under the guard: the listing proves absence only when it is complete, and much absence only when it says so twice."""
        source = self.source.source_id
        count = 0

        def vanishing() -> Iterator[str]:
            nonlocal count
            for page in self.catalog.documents.unseen(source, self.scan, LISTED_A_BATCH):
                count += len(page)
                yield from (document.doc_id for document in page)

        digest = vanishing_digest(vanishing())
        decision = decide_deletes(
            known=max(known_before, count),
            vanishing=count,
            digest=digest,
            complete=not self.problems,
            previously_held=self.source.held_digest if self.confirms_held else None,
        )
        if decision.verdict is Verdict.APPLY:
            for page in self.catalog.documents.unseen(source, self.scan, LISTED_A_BATCH):
                with self.catalog.database.begin() as connection:
                    self.catalog.sources.check(connection, source, self.epoch)
                    self.report.deleted += delete_documents(self.catalog, connection, source, page, self.versions, self.scan)
        elif decision.verdict is Verdict.HOLD:
            self.report.held = count
        return decision

    def _begin(self, connection: Connection, batch: Iterable[ListedItem], doc_ids: Collection[str]) -> None:
        """Fence the batch, lock its documents in the order that all lock them in, and write the ACL rows that it names anew."""
        self.catalog.sources.check(connection, self.source.source_id, self.epoch)
        self.catalog.documents.lock(connection, doc_ids)
        for item in batch:
            access = item.access
            if not access.readable:
                continue
            acl_id = self._acl_id(access)
            groups = tuple(sorted(set(access.groups)))
            row = AclRow(acl_id, access.scope, groups, readable=True, error="")
            before = self._acls.get(acl_id)
            if before == row:
                continue
            self.catalog.acls.put(connection, self.source, row, self.catalog.database.clock.now())
            self._acls[acl_id] = row
            if before is not None:
                self._changed_acls.add(acl_id)

    def _acl_id(self, access: Access) -> str:
        return ids.acl_id(self.source.tenant_id, self.source.source_id, access.scope)

    def _access(self, access: Access, document: KnownDocument | None) -> tuple[str, str | None]:
        """(ACL id, why it could not be read). Unread permissions hide the document and leave what is known of them as it was."""
        if access.readable:
            return self._acl_id(access), None
        return self._acl_id(access) if document is None else document.acl_id, access.error

    def _place(self, item: ListedItem, fingerprint: str, document: KnownDocument | None) -> Placement:
        acl_id, acl_error = self._access(item.access, document)
        return Placement(item.path, item.uri, item.title, fingerprint, acl_id, acl_error, _moment(item.modified_ns))

    def _read_all(self, items: Sequence[ListedItem], known: Mapping[str, KnownDocument], work: Path) -> list[Read]:
        reads = [self._read(item, known.get(item.path), work / "fetched") for item in items]
        with self.catalog.database.begin() as connection:
            for read in reads:
                if read.fetched is not None and read.mime is not None:
                    key = self.store.content_key(read.fetched.content_hash)
                    self.catalog.documents.add_content(connection, read.fetched.content_hash, read.fetched.size, read.mime, read.lane, key)
        lanes = self.catalog.parses.lanes({read.fetched.content_hash for read in reads if read.fetched is not None})
        return [read if read.fetched is None else replace(read, lane=lanes[read.fetched.content_hash]) for read in reads]

    def _read(self, item: ListedItem, document: KnownDocument | None, target: Path) -> Read:
        """Fetch into the store, unless nobody knows who may see it.

        A file that keeps changing is a fault of its own, tried again at the next sync.
        """
        if item.fault is not None:
            return Read(item, None, None, DocumentFault(item.fault, item.error))
        if not item.access.readable and (document is None or document.content_hash is None):
            return Read(item, None, None, DocumentFault(Reason.ACL_UNREADABLE, item.access.error))
        changing = ""
        for _ in range(TRIES):
            try:
                fetched = self.connector.fetch(item, target)
            except DocumentFault as fault:
                return Read(item, None, None, fault)
            except Transient as error:
                changing = str(error)
                continue
            sniffed = sniff_file(target, item.title)
            self.store.put_content(target, fetched.content_hash)
            target.unlink()
            self.report.bytes_read += fetched.size
            return Read(item, fetched, sniffed.mime, None, lane_at_fetch(sniffed.format, fetched.size, self.fast))
        return Read(item, None, None, DocumentFault(Reason.CHANGING, changing))


def delete_documents(
    catalog: Catalog, connection: Connection, source_id: str, gone: Sequence[KnownDocument], versions: Sequence[str], scan: int | None
) -> int:
    """Tombstone documents and make the jobs that take their rows out of the indexes. Returns how many went."""
    now = catalog.database.clock.now()
    went = set(catalog.documents.tombstone(connection, gone, scan, now))
    for document in gone:
        if document.doc_id in went:
            job = NewJob(document.doc_id, source_id, document.source_version, None, document.bucket or "", Lane.FAST, Operation.DELETE, now)
            if document.bucket is None:
                catalog.jobs.supersede(connection, document.doc_id, now)
            else:
                catalog.jobs.add(connection, [job], versions)
    return len(went)


def _moment(nanoseconds: int) -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=nanoseconds // 1000)


def _unspool(spool: TextIO) -> Iterator[ListedItem]:
    for line in spool:
        values = json.loads(line)
        access = Access(**(values.pop("access") | {"groups": tuple(json.loads(line)["access"]["groups"])}))
        fault = values.pop("fault")
        yield replace(ListedItem(access=access, **values), fault=None if fault is None else Reason(fault))


def _batches(items: Iterable[ListedItem], size: int) -> Iterator[list[ListedItem]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch
