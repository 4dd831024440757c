"""Reading for a plan: bytes are fetched, hashed and dropped; and reading by a plan, which takes nothing else than what was planned."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from primer_assets.source_reading import Read, Reading, member_item
from primer_core.failures import DocumentFault, Reason
from primer_core.lanes import Lane, lane_at_fetch
from primer_core.routing import Format, Sniffed
from primer_core.sync_plan import PlannedRead
from primer_resources.catalog.documents import KnownDocument
from primer_resources.connectors.base import Fetched, ListedItem


def to_planned(read: Read, container: str = "") -> PlannedRead:
    """A read as the plan keeps it. A member's path is that inside its container."""
    fetched, fault = read.fetched, read.fault
    return PlannedRead(
        path=read.item.path.removeprefix(container),
        listed_fingerprint=read.item.fingerprint,
        version=read.item.version,
        content_hash=None if fetched is None else fetched.content_hash,
        size=read.item.size if fetched is None else fetched.size,
        fingerprint=read.item.fingerprint if fetched is None else fetched.fingerprint,
        modified_ns=read.item.modified_ns if fetched is None else fetched.modified_ns,
        mime=read.mime,
        lane=read.lane.value,
        reason=None if fault is None else fault.reason.value,
        error="" if fault is None else fault.message,
        is_taken_apart=read.is_taken_apart,
        members=tuple(to_planned(member, f"{read.item.path}/") for member in read.members),
    )


def _from_planned(item: ListedItem, planned: PlannedRead) -> Read:
    fetched = None
    if planned.content_hash is not None:
        fetched = Fetched(planned.content_hash, planned.size, planned.fingerprint, planned.modified_ns)
    fault = None if planned.reason is None else DocumentFault(Reason(planned.reason), planned.error)
    inner = ((member, member_item(item, member.path, member.listed_fingerprint, member.size)) for member in planned.members)
    members = tuple(_from_planned(each, member) for member, each in inner)
    return Read(item, fetched, planned.mime, fault, Lane(planned.lane), members, planned.is_taken_apart)


@dataclass(slots=True)
class DryReading(Reading):
    """Reads for a plan. `count_ocr_pages` looks into a PDF file (path, name); `ocr_pages` is content hash → pages that OCR will read."""

    count_ocr_pages: Callable[[Path, str], int | None] = lambda _path, _name: None
    reads: list[Read] = field(default_factory=list)
    ocr_pages: dict[str, int] = field(default_factory=dict)

    def read_all(self, items: Sequence[ListedItem], known: Mapping[str, KnownDocument]) -> list[Read]:
        """Read items, and remember what that gave."""
        # The two-argument form: a dataclass with slots is a class made anew, which the other form does not find.
        reads = Reading.read_all(self, items, known)
        self.reads.extend(reads)
        return reads

    def _lanes(self, every: Sequence[Read]) -> Mapping[str, Lane]:
        return {read.fetched.content_hash: read.lane for read in every if read.fetched is not None}

    def _store(self, file: Path, content_hash: str, size: int, sniffed: Sniffed) -> Lane:
        if sniffed.format is Format.IMAGE:
            self.ocr_pages[content_hash] = 1
        elif sniffed.format is Format.PDF and content_hash not in self.ocr_pages:
            self.ocr_pages[content_hash] = self.count_ocr_pages(file, file.name) or 0
        return lane_at_fetch(sniffed.format, size, self.fast)


@dataclass(slots=True)
class RememberedReading(Reading):
    """Reads nothing: an item that is listed as it was planned has the bytes that it had then. Others have a fault of their own, so that
    they differ from the plan."""

    planned: Mapping[str, PlannedRead] = field(default_factory=dict)
    reads: list[Read] = field(default_factory=list)

    def _read(self, item: ListedItem, document: KnownDocument | None) -> Read | None:
        planned = self.planned.get(item.path)
        if planned is None or (planned.listed_fingerprint, planned.version) != (item.fingerprint, item.version):
            return Read(item, None, None, DocumentFault(Reason.CHANGING, "it is listed otherwise than when the plan was made"))
        return _from_planned(item, planned)

    def _lanes(self, every: Sequence[Read]) -> Mapping[str, Lane]:
        return {read.fetched.content_hash: read.lane for read in every if read.fetched is not None}


@dataclass(slots=True)
class PlannedReading(Reading):
    """Reads in earnest, and leaves an item as it is whose bytes are not those of the plan. `not_applied` are their paths."""

    planned: Mapping[str, PlannedRead] = field(default_factory=dict)
    not_applied: list[str] = field(default_factory=list)

    def _read(self, item: ListedItem, document: KnownDocument | None) -> Read | None:
        read = Reading._read(self, item, document)
        planned = self.planned.get(item.path)
        if read is None or planned is None or _outcome(to_planned(read)) != _outcome(planned):
            self.not_applied.append(item.path)
            return None
        return read


def _outcome(planned: PlannedRead) -> tuple[object, ...]:
    """What of a read decides what is done with it."""
    return planned.path, planned.content_hash, planned.reason, planned.is_taken_apart, tuple(_outcome(each) for each in planned.members)
