"""A document store of one tenant to act on: where its drives and its catalog are, and what a purge would do to it."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import pytest
from sqlalchemy import delete

from primer_core.chunks import Chunk
from primer_core.drives import DriveSpec
from primer_core.elements import Element, ElementKind, ParsedDocument
from primer_core.ids import content_hash
from primer_core.lanes import Lane
from primer_core.stored_states import DriveKind, Manifest, PartKey, StateIdentity, WrittenBy, pipeline_state
from primer_resources.catalog.schema_bodies import contents, stored_states
from primer_resources.catalog.stored_states import StoredStates
from primer_resources.document_store import Arrived, TenantStore
from primer_resources.document_store.opening import set_up_drive
from primer_resources.document_store.states import StateStore
from tests.primer_resources.catalog.world import TENANT, World
from tests.s3_endpoint import REGION, S3Endpoint
from tests.stores import store_on

BYTES = b"the bytes"
HASH = content_hash(BYTES)
BY = WrittenBy("parse", "run-1", "docling 2")
NUMBERS = count()
CHUNK = Chunk(0, ("Guide", "Setup é"), "Before. ", "Now.\n\n| a | b |", "Guide > Setup\nBefore. Now.", (1, 2), 12)
DOC = ParsedDocument(
    (
        Element(0, ElementKind.HEADING, "Guide", 1, 1),
        Element(1, ElementKind.PARAGRAPH, "Zwölf Boxkämpfer 𝄞", None, None),
        Element(2, ElementKind.TABLE, "| a |\n| --- |", None, 3),
    ),
    3,
    b"\x28\xb5\x2f\xfd compressed",
    {"front_matter": {"title": "Été"}},
)


@dataclass
class Stand:
    """A store of one tenant, and what it stands on."""

    world: World
    specs: dict[DriveKind, DriveSpec]
    tenant: TenantStore
    folder: Path

    def file(self, body: bytes) -> Arrived:
        """A file that a connector fetched."""
        path = self.folder / "given"
        path.write_bytes(body)
        return Arrived(path, content_hash(body), len(body), "text/plain", Lane.FAST)

    def keep(self, body: bytes, force: bool = False) -> str:
        """Keep source bytes. Returns their key."""
        self.tenant.keep(self.file(body), force)
        return self.object_of(content_hash(body))

    def object_of(self, of: str) -> str:
        """The key of a content's bytes."""
        key = self.world.catalog.contents.object_of(TENANT, of)
        assert key is not None
        return key

    def fetched(self, of: str) -> bytes:
        """A content's bytes, as a parse gets them."""
        self.tenant.fetch_content(of, self.folder / "fetched")
        return (self.folder / "fetched").read_bytes()

    def pipeline_keys(self) -> list[str]:
        """All keys of the pipeline drive."""
        return sorted(stored.key for stored in self.tenant.pipeline.drive.list())

    def intake_keys(self) -> list[str]:
        """All keys of the intake drive."""
        return sorted(stored.key for stored in self.tenant.intake.list())

    def state(self, version: str = "docling 2") -> StateIdentity:
        """A pipeline state of the content HASH."""
        return pipeline_state(TENANT, HASH, version)

    def manifest(self, version: str = "docling 2") -> Manifest:
        """Its manifest."""
        return self.tenant.pipeline.manifest(self.state(version))

    def named(self, version: str = "docling 2") -> list[str]:
        """The keys that its manifest names."""
        return sorted(entry.object_key or "" for entry in self.manifest(version).present())

    def save(self, bodies: dict[PartKey, bytes], version: str = "docling 2", base: str | None = None) -> Manifest:
        """Save bodies of the content HASH."""
        return self.tenant.pipeline.save(self.state(version), HASH, bodies, BY, None if base is None else self.state(base))

    def on(self, states: StoredStates) -> StateStore:
        """The same pipeline store over other states."""
        return replace(self.tenant.pipeline, states=states)

    def forget_state(self) -> None:
        """What a purge does to a pipeline state: its row goes, and its objects after it."""
        keys = self.named()
        with self.world.catalog.database.begin() as connection:
            connection.execute(delete(stored_states).where(stored_states.c.node_id == self.state().node_id))
        self.tenant.pipeline.drive.delete(keys)

    def forget_content(self, of: str = HASH) -> None:
        """What a purge does to a content that nobody has: its row goes, and its bytes after it."""
        key = self.object_of(of)
        with self.world.catalog.database.begin() as connection:
            connection.execute(delete(contents).where(contents.c.content_hash == of))
        self.tenant.intake.delete([key])


Stands = Callable[[str, str | None], Stand]


@pytest.fixture
def make_stand(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stands]:
    """Makes a stand of a kind, DRIVES-DATABASE; buckets are reached through another address where one is given."""
    with ExitStack() as opened:

        def make(kind: str, endpoint: str | None = None) -> Stand:
            drives, database = kind.split("-")
            folder = tmp_path / f"stand{next(NUMBERS)}"
            folder.mkdir()
            if database == "postgres":
                url = request.getfixturevalue("postgres_copy")(f"store_{next(NUMBERS)}")
            else:
                shutil.copy(request.getfixturevalue("sqlite_template"), folder / "catalog.sqlite")
                url = f"sqlite:///{folder / 'catalog.sqlite'}"
            if drives == "folder":
                specs = {kind: DriveSpec(str(folder / kind)) for kind in DriveKind}
            else:
                specs = buckets(request.getfixturevalue("radosgw").s3, folder / "keys", endpoint)
            for spec in specs.values():
                set_up_drive(spec, Path("/"))
            world = World(url)
            opened.callback(world.catalog.close)
            return Stand(world, specs, store_on(world.catalog, specs).of(TENANT), folder)

        yield make


def buckets(s3: S3Endpoint, keys: Path, endpoint: str | None) -> dict[DriveKind, DriveSpec]:
    """Drives in new buckets, one each."""
    keys.write_text(f"{s3.key_id}:{s3.secret}")
    return {kind: DriveSpec(f"s3://{s3.make_bucket()}/a/prefix", REGION, endpoint or s3.url, f"file:{keys}") for kind in DriveKind}


@pytest.fixture(params=["folder-sqlite", "folder-postgres", "radosgw-sqlite"])
def empty(request: pytest.FixtureRequest, make_stand: Stands) -> Stand:
    """A store with nothing in it."""
    return make_stand(request.param, None)


@pytest.fixture
def stand(empty: Stand) -> Stand:
    """A store with one content."""
    empty.keep(BYTES)
    return empty
