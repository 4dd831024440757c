"""Reading: a listed item's bytes fetched into the store, recognised, and taken apart where it is a mail or an archive."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from primer_core.failures import DocumentFault, Reason, Transient
from primer_core.lanes import FastLane, Lane, lane_at_fetch
from primer_core.routing import Sniffed
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.documents import KnownDocument
from primer_resources.connectors.base import Connector, Fetched, ListedItem
from primer_resources.containers.expander import Expander
from primer_resources.document_store import Arrived, TenantStore
from primer_resources.parser.sniffing import sniff_file

TRIES = 3
"""Reads of a file that changes while it is read, before it is left for the next sync."""


@dataclass(frozen=True, slots=True)
class Read:
    """What reading an item gave: its content, kind and lane, or the fault that it has; and what reading its members gave.
    `is_taken_apart` says that it was taken apart to the end, so that its members are all there are."""

    item: ListedItem
    fetched: Fetched | None
    mime: str | None
    fault: DocumentFault | None
    lane: Lane = Lane.FAST
    members: tuple["Read", ...] = ()
    is_taken_apart: bool = False


@dataclass(slots=True)
class Reading:
    """Reads items of one source. `notices` are containers that could not be taken apart, and why."""

    catalog: Catalog
    store: TenantStore
    connector: Connector
    expander: Expander
    fast: FastLane
    work: Path
    bytes_read: int = 0
    notices: list[str] = field(default_factory=list)

    def read_all(self, items: Sequence[ListedItem], known: Mapping[str, KnownDocument]) -> list[Read]:
        """Read items; their contents are in the store and in the catalog afterwards. An item that is to stay as it is has no read."""
        tried = (self._read(item, known.get(item.path)) for item in items)
        reads = [read for read in tried if read is not None]
        lanes = self._lanes([each for read in reads for each in (read, *read.members)])

        def placed(read: Read) -> Read:
            members = tuple(placed(member) for member in read.members)
            return replace(read, lane=Lane.FAST if read.fetched is None else lanes[read.fetched.content_hash], members=members)

        return [placed(read) for read in reads]

    def _lanes(self, every: Sequence[Read]) -> Mapping[str, Lane]:
        """content hash → the lane that it is parsed in, perhaps decided before."""
        return self.catalog.contents.lanes(self.store.tenant_id, {read.fetched.content_hash for read in every if read.fetched is not None})

    def _store(self, file: Path, content_hash: str, size: int, sniffed: Sniffed) -> Lane:
        """Keep the bytes of a content. Returns the lane that it is to be parsed in, as far as reading it tells."""
        lane = lane_at_fetch(sniffed.format, size, self.fast)
        self.store.keep(Arrived(file, content_hash, size, sniffed.mime, lane))
        return lane

    def _read(self, item: ListedItem, document: KnownDocument | None) -> Read | None:
        """Fetch into the store, unless nobody knows who may see it.

        A file that keeps changing is a fault of its own, tried again at the next sync.
        """
        if item.fault is not None:
            return Read(item, None, None, DocumentFault(item.fault, item.error))
        if not item.access.readable and (document is None or document.content_hash is None):
            return Read(item, None, None, DocumentFault(Reason.ACL_UNREADABLE, item.access.error))
        target, changing = self.work / "fetched", ""
        for _ in range(TRIES):
            try:
                fetched = self.connector.fetch(item, target)
            except DocumentFault as fault:
                return Read(item, None, None, fault)
            except Transient as error:
                changing = str(error)
                continue
            self.bytes_read += fetched.size
            is_same = document is not None and document.content_hash == fetched.content_hash and not document.fetch_again
            read = self._keep(item, target, fetched, is_same)
            target.unlink()
            return read
        return Read(item, None, None, DocumentFault(Reason.CHANGING, changing))

    def _keep(self, item: ListedItem, file: Path, fetched: Fetched, is_same: bool) -> Read:
        """Store and recognise a file. The members of one that is the same as before are known, and it is not taken apart again."""
        sniffed = sniff_file(file, item.title)
        faults = len(self.notices)
        members = () if is_same or not self.expander.opens(sniffed) else tuple(self._members(item, file))
        lane = self._store(file, fetched.content_hash, fetched.size, sniffed)
        return Read(item, fetched, sniffed.mime, None, lane, members, is_taken_apart=not is_same and len(self.notices) == faults)

    def _members(self, item: ListedItem, file: Path) -> Iterator[Read]:
        """Read the members of a container, each as an item of its own that shares the container's permissions and time."""
        try:
            for member in self.expander.expand(file, item.title):
                size = member.file.stat().st_size
                with member.file.open("rb") as opened:
                    content_hash = hashlib.file_digest(opened, "sha256").hexdigest()
                inner = member_item(item, member.path, content_hash, size)
                sniffed = sniff_file(member.file, inner.title)
                lane = self._store(member.file, content_hash, size, sniffed)
                yield Read(inner, Fetched(content_hash, size, content_hash, item.modified_ns), sniffed.mime, None, lane)
        except DocumentFault as fault:
            self.notices.append(f"the files inside are not read: {fault.message}")


def member_item(container: ListedItem, inner: str, fingerprint: str, size: int) -> ListedItem:
    """A member as an item; it shares the container's permissions and time. `inner` is its path in there."""
    return replace(
        container,
        path=f"{container.path}/{inner}",
        uri=f"{container.uri}#{quote(inner)}",
        title=PurePosixPath(inner).name,
        fingerprint=fingerprint,
        size=size,
        container=container.path,
    )
