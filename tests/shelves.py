"""Two drives of a tenant over a catalog, wherever they are: for tests of what the catalog and the drives say of each other."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random

from primer_core.chunks import Chunk
from primer_core.drives import DriveSpec
from primer_core.elements import Element, ElementKind, ParsedDocument
from primer_core.ids import content_hash
from primer_core.lanes import Lane
from primer_core.stored_states import DriveKind, WrittenBy, intake_state
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.contents import lock_contents
from primer_resources.catalog.tenants import Tenant
from primer_resources.clock import Clock, SystemClock
from primer_resources.document_store import Arrived, DocumentStore, TenantStore
from primer_resources.document_store.drive import Drive
from primer_resources.document_store.drives import TenantDrives
from primer_resources.document_store.opening import set_up_drive
from primer_resources.document_store.reconciler import Reconciler

PARSE, CHUNKER = "p1", "c1"


def chunk(text: str) -> Chunk:
    """A passage."""
    return Chunk(0, ("Guide",), "", text, text, (1,), 3)


def parsed(text: str) -> ParsedDocument:
    """A parsed document: two objects, since its file tells nothing of itself."""
    return ParsedDocument((Element(0, ElementKind.PARAGRAPH, text, None, 1),), 1, b"\x28\xb5\x2f\xfd " + text.encode(), {})


@dataclass
class Shelves:
    """A tenant's drives and its store. `files` is a folder for what is given to the store."""

    catalog: Catalog
    tenant_id: str
    specs: dict[DriveKind, DriveSpec]
    files: Path
    clock: Clock = field(default_factory=SystemClock)
    random: Random = field(default_factory=lambda: Random(7))
    _numbers: Iterator[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        tenant = Tenant(self.tenant_id, True, self.specs)
        self.drives = TenantDrives(lambda _name: tenant, self.clock, lambda spec: set_up_drive(spec, self.files))

    @property
    def store(self) -> TenantStore:
        """The tenant's store."""
        return DocumentStore(self.catalog.contents, self.catalog.states, self.drives, self.clock, self.random).of(self.tenant_id)

    def drive(self, kind: DriveKind) -> Drive:
        """One of the drives."""
        return self.drives.of(self.tenant_id, kind)

    def reconciler(self, clock: Clock) -> Reconciler:
        """What holds the drives against the catalog, at a time of its own."""
        return Reconciler(self.catalog.object_owners, self.drives, clock)

    def keys(self, kind: DriveKind) -> dict[str, int]:
        """key → bytes of all objects of a drive."""
        return {each.key: each.size for each in self.drive(kind).list()}

    def keep(self, name: str) -> str:
        """Bytes of a document that has them, so that a row owns them. Returns the content hash."""
        body = f"the bytes of {name}".encode()
        file = self.files / f"given-{next(self._numbers)}"
        file.write_bytes(body)
        key = content_hash(body)
        self.store.keep(Arrived(file, key, len(body), "text/plain", Lane.FAST))
        with self.catalog.database.begin() as connection:
            lock_contents(connection, [(self.tenant_id, key)])
            self.catalog.states.own(connection, self.tenant_id, f"doc-{name}", key, WrittenBy("fetch", "run", ""))
        return key

    def document(self, name: str) -> str:
        """A whole document: source bytes, a parsed document and a chunk set, four objects. Returns the content hash."""
        key = self.keep(name)
        self.store.put_parsed(key, PARSE, parsed(name), "run")
        self.store.put_chunks(key, PARSE, CHUNKER, [chunk(name)], "run")
        return key

    def owned(self, kind: DriveKind) -> set[str]:
        """The keys that live rows own."""
        return {each.key for page in self.catalog.object_owners.pages(self.tenant_id, kind) for each in page}

    def intake_key(self, name: str) -> str:
        """The key of a document's source bytes, by its manifest."""
        node = intake_state(self.tenant_id, f"doc-{name}").node_id
        (entry,) = self.catalog.states.find([node])[node].manifest.present()
        assert entry.object_key is not None
        return entry.object_key
