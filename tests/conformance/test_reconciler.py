"""The reconciler names exactly the orphans and the missing objects there are, and takes exactly the orphans: on a folder and on S3 servers,
one of them real, over either database."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import delete

from primer_core.coherence import MIN_AGE, DriveCoherence
from primer_core.drives import DriveSpec
from primer_core.failures import SystemFault
from primer_core.ids import content_hash
from primer_core.part_keys import ELEMENTS, SOURCE, chunk_set
from primer_core.stored_states import DriveKind, Part, WrittenBy, content_node, pipeline_state
from primer_resources.catalog.object_owners import ObjectOwners, OwnedObject
from primer_resources.catalog.schema_bodies import stored_states
from primer_resources.document_store.drive import Drive, Stored
from primer_resources.document_store.states import new_key
from tests.primer_resources.catalog.conftest import postgres_copy, sqlite_template
from tests.primer_resources.catalog.world import TENANT, World
from tests.s3_endpoint import S3Endpoint
from tests.shelves import CHUNKER, PARSE, Shelves
from tests.store_stand import buckets

__all__ = ["postgres_copy", "sqlite_template"]

NAMES = ("one", "two", "three")
BYTES = b"nobody's"
INTAKE, PIPELINE = DriveKind.INTAKE, DriveKind.PIPELINE
BY = WrittenBy("fetch", "run", "")


@dataclass
class Still:
    """A clock that a test sets."""

    moment: datetime = datetime(2000, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self.moment


@dataclass
class Planted(Shelves):
    """Shelves with three documents, and a reconciler whose time the test chooses."""

    still: Still = field(default_factory=Still)

    def let_all_be_old(self) -> None:
        """What is on the drives now is an hour old for the reconciler, and what comes from now on is not."""
        newest = max(each.modified for kind in DriveKind for each in self.drive(kind).list())
        for number in range(10_000):
            drive = self.drive(INTAKE)
            drive.create(f"tick/{number}", b"")
            (tick,) = drive.list("tick")
            drive.delete([tick.key])
            if tick.modified > newest:
                break
        self.still.moment = newest + MIN_AGE

    def plant(self, kind: DriveKind, keys: list[str]) -> set[str]:
        """Objects of nobody."""
        for key in keys:
            assert self.drive(kind).create(key, BYTES)
        return set(keys)

    def look(self, kind: DriveKind, takes_orphans: bool = False) -> DriveCoherence:
        return self.reconciler(self.still).look(self.drive(kind), TENANT, kind, takes_orphans)

    def keys_with_rows(self, kind: DriveKind) -> list[str]:
        """Keys as a save that was cut off leaves them: of a state that there is, or of a content, which its row does not name."""
        content = content_hash(b"the bytes of one")
        if kind is INTAKE:
            return [new_key(content_node(TENANT, content), SOURCE, self.random)]
        node = pipeline_state(TENANT, content, PARSE).node_id
        return [new_key(node, key, self.random) for key in (chunk_set(CHUNKER), ELEMENTS)]

    def keys_without_rows(self) -> list[str]:
        """Keys of a state that there is not, and others that begin as those of states do or do not."""
        node = content_node(TENANT, f"{self.random.getrandbits(64)}")
        loose = [f"{prefix}/{self.random.getrandbits(64):x}" for prefix in ("ab", "zz")]
        return [new_key(node, SOURCE, self.random), f"loose{self.random.getrandbits(64)}", *loose]


between_the_looks = pytest.mark.parametrize("planted", ["folder-sqlite", "folder-postgres"], indirect=True)
"""Of what happens while the reconciler works: that is between it and the catalog, whatever the store."""


@pytest.fixture(params=["folder-sqlite", "folder-postgres", "moto-sqlite", "radosgw-postgres"])
def planted(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Planted]:
    place, database = request.param.split("-")
    if database == "postgres":
        copy: Callable[[str], str] = request.getfixturevalue("postgres_copy")
        url = copy("reconciler")
    else:
        template: Path = request.getfixturevalue("sqlite_template")
        (tmp_path / "catalog.sqlite").write_bytes(template.read_bytes())
        url = f"sqlite:///{tmp_path / 'catalog.sqlite'}"
    if place == "folder":
        specs = {kind: DriveSpec(str(tmp_path / kind)) for kind in DriveKind}
    else:
        server = request.getfixturevalue(place)
        specs = buckets(server if isinstance(server, S3Endpoint) else server.s3, tmp_path / "keys", None)
    world = World(url)
    made = Planted(world.catalog, TENANT, specs, tmp_path)
    for name in NAMES:
        made.document(name)
    yield made
    world.catalog.close()


def test_planted_orphans_are_named_and_taken_and_nothing_else_is(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("primer_resources.document_store.reconciler.LIST_PAGE", 5)
    monkeypatch.setattr("primer_resources.catalog.object_owners.PAGE", 2)
    old = {kind: planted.plant(kind, [*planted.keys_with_rows(kind), *planted.keys_without_rows()]) for kind in DriveKind}
    # Another drive's key is no key of this one's rows.
    old[INTAKE] |= planted.plant(INTAKE, [sorted(planted.owned(PIPELINE))[0]])
    freed = {kind: planted.plant(kind, [f"ab/freed-{kind}", *planted.keys_with_rows(kind)]) for kind in DriveKind}
    with planted.catalog.database.begin() as connection:
        for kind, keys in freed.items():
            planted.catalog.states.free(connection, TENANT, kind, keys)
    probes = planted.plant(INTAKE, ["probe/of-a-process-that-was-killed"])
    planted.let_all_be_old()
    young = {kind: planted.plant(kind, [*planted.keys_with_rows(kind), *planted.keys_without_rows()]) for kind in DriveKind}
    for kind in DriveKind:
        before = planted.keys(kind)
        owned = planted.owned(kind)
        look = planted.look(kind)
        assert set(look.orphans.sample) == old[kind]
        assert (look.orphans.count, look.orphans.bytes) == (len(old[kind]), len(old[kind]) * len(BYTES))
        assert set(look.too_young.sample) == young[kind]
        assert set(look.freed.sample) == freed[kind]
        assert (look.objects, look.bytes, look.checked) == (len(before), sum(before.values()), len(owned))
        assert (look.missing, look.reclaimed.count, look.fault, look.is_coherent) == (0, 0, None, False)
        assert planted.keys(kind) == before

        taken = planted.look(kind, takes_orphans=True)
        assert set(taken.reclaimed.sample) == old[kind]
        assert taken.is_coherent
        assert planted.keys(kind).keys() == before.keys() - old[kind]
        assert planted.keys(kind).keys() == owned | young[kind] | freed[kind] | (probes if kind is INTAKE else set())
        again = planted.look(kind, takes_orphans=True)
        assert (again.orphans.count, again.missing, again.is_coherent) == (0, 0, True)
    for name in NAMES:
        assert planted.store.get_chunks(content_hash(f"the bytes of {name}".encode()), PARSE, CHUNKER)[0].text == name


def test_missing_objects_are_named_with_whose_they_are(planted: Planted) -> None:
    content = content_hash(b"the bytes of two")
    with planted.catalog.database.begin() as connection:
        planted.catalog.states.own(connection, TENANT, "doc-a-copy", content, BY)
    source = planted.intake_key("two")
    manifest = planted.store.pipeline.manifest(pipeline_state(TENANT, content, PARSE))
    chunks = manifest.entries[chunk_set(CHUNKER)].object_key or ""
    nobodys = planted.keep("of nobody")
    with planted.catalog.database.begin() as connection:
        planted.catalog.states.own(connection, TENANT, "doc-of nobody", None, BY)
    planted.drive(INTAKE).delete([source, planted.catalog.contents.object_of(TENANT, nobodys) or ""])
    planted.drive(PIPELINE).delete([chunks])
    planted.let_all_be_old()
    intake, pipeline = (planted.look(kind, takes_orphans=True) for kind in DriveKind)
    assert (intake.missing, pipeline.missing, intake.checked, pipeline.checked) == (2, 1, 4, 9)
    assert {(each.object_key, each.content_hash, each.doc_id) for each in intake.missing_sample if each.content_hash == content} == {
        (source, content, "doc-a-copy")
    }
    assert {each.content_hash for each in intake.missing_sample} == {content, nobodys}
    (gone,) = pipeline.missing_sample
    assert (gone.object_key, gone.part, gone.sub_key, gone.doc_id) == (chunks, Part.CHUNKS, chunk_set(CHUNKER)[1], "doc-a-copy")
    assert not intake.is_coherent
    assert (intake.orphans.count, intake.reclaimed.count) == (0, 0)


@between_the_looks
def test_an_owner_that_comes_between_the_look_and_the_delete_keeps_its_object(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    """The manifest of a very slow save is committed while the reconciler has its object in hand."""
    content = content_hash(b"the bytes of one")
    (late, cut_off) = planted.keys_with_rows(PIPELINE)
    planted.plant(PIPELINE, [late, cut_off])
    planted.let_all_be_old()
    head = Drive.head
    committed: list[str] = []

    def commits_first(drive: Drive, key: str) -> object:
        if key == late and not committed:
            committed.append(key)
            own(planted, content, late)
        return head(drive, key)

    monkeypatch.setattr(Drive, "head", commits_first)
    look = planted.look(PIPELINE, takes_orphans=True)
    assert committed
    assert (set(look.orphans.sample), set(look.reclaimed.sample)) == ({cut_off}, {cut_off})
    assert planted.drive(PIPELINE).get(late) == BYTES
    assert look.missing == 0


def own(planted: Planted, content: str, key: str) -> None:
    """A pipeline state's manifest names this object from now on."""
    states = planted.catalog.states
    node = pipeline_state(TENANT, content, PARSE).node_id
    state = states.find([node])[node]
    entry = replace(state.manifest.entries[chunk_set(CHUNKER)], sub_key="late", object_key=key)
    with planted.catalog.database.begin() as connection:
        assert states.change(connection, state, state.manifest.merged([entry]))


@between_the_looks
def test_what_the_purge_removes_meanwhile_is_neither_orphan_nor_missing(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    content = content_hash(b"the bytes of three")
    node = pipeline_state(TENANT, content, PARSE).node_id
    planted.let_all_be_old()
    plain = Drive.list

    def removes_after_the_listing(drive: Drive, prefix: str = "") -> Iterator[Stored]:
        shown = list(plain(drive, prefix))
        if drive is planted.drive(PIPELINE):
            forget(planted, node)
        yield from shown

    monkeypatch.setattr(Drive, "list", removes_after_the_listing)
    look = planted.look(PIPELINE, takes_orphans=True)
    assert (look.objects, look.orphans.count, look.missing, look.checked) == (9, 0, 0, 6)


def forget(planted: Planted, node: str) -> None:
    """All of a state goes, as a purge has it: its row, then its objects."""
    state = planted.catalog.states.find([node]).get(node)
    if state is None:
        return
    with planted.catalog.database.begin() as connection:
        connection.execute(delete(stored_states).where(stored_states.c.node_id == node))
    planted.drive(PIPELINE).delete([each.object_key or "" for each in state.manifest.present()])


@between_the_looks
def test_what_is_saved_after_the_listing_is_not_missing_nor_what_is_gone_again_by_then(
    planted: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted.let_all_be_old()
    plain = ObjectOwners.pages

    def saves_first(owners: ObjectOwners, tenant_id: str, kind: DriveKind) -> Iterator[Sequence[OwnedObject]]:
        gone = ""
        if kind is PIPELINE:
            planted.document("four")
            gone = pipeline_state(TENANT, planted.document("five"), PARSE).node_id
        pages = list(plain(owners, tenant_id, kind))
        if gone:
            forget(planted, gone)
        yield from pages

    monkeypatch.setattr(ObjectOwners, "pages", saves_first)
    look = planted.look(PIPELINE)
    assert (look.objects, look.checked, look.missing) == (9, 15, 0)


def test_a_drive_that_fails_is_told_and_the_other_is_looked_at(planted: Planted) -> None:
    planted.let_all_be_old()
    pipeline = planted.drive(PIPELINE)

    def listing(_prefix: str = "") -> Iterator[Stored]:
        yield from list(type(pipeline).list(pipeline))[:4]
        raise SystemFault(f"drive {pipeline.place} failed")

    pipeline.list = listing  # type: ignore[method-assign,assignment]
    intake, failed = planted.reconciler(planted.still).run([TENANT])
    assert (intake.fault, intake.is_coherent) == (None, True)
    assert failed.fault == f"drive {pipeline.place} failed"
    assert not failed.is_coherent
    assert (failed.missing, failed.orphans.count) == (0, 0)
