"""One suite for the document store wherever it is: in folders over SQLite and over Postgres, and in buckets of a real S3 server. Here: what
was made of a content."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import polars
import pytest

from primer_core.chunks import Chunk
from primer_core.elements import ParsedDocument
from primer_core.failures import SystemFault, Transient
from primer_core.ids import content_hash
from primer_core.part_keys import DOCUMENT, ELEMENTS, chunk_set
from primer_core.stored_states import DriveKind, Manifest, Part, PartEntry, PartState, StateIdentity, WrittenBy
from primer_resources.catalog.schema_bodies import freed_objects
from primer_resources.catalog.stored_states import StoredState, StoredStates
from primer_resources.document_store.drive import ObjectGone
from primer_resources.document_store.parts import PARSED
from primer_resources.document_store.states import CopySourceGone
from tests.primer_resources.catalog.world import TENANT
from tests.s3_endpoint import REGION
from tests.store_stand import BY, CHUNK, DOC, HASH, Stand, Stands

NOTHING = ParsedDocument((), None, b"")


class Meanwhile(StoredStates):
    """States to which something else happens between the writing of objects and the commit of the manifest, once."""

    def __init__(self, stand: Stand, happen: Callable[[], object]) -> None:
        super().__init__(stand.world.catalog.database)
        self.happen: Callable[[], object] | None = happen

    def save(self, identity: StateIdentity, content_hash: str, entries: Sequence[PartEntry]) -> Manifest:
        if self.happen is not None:
            happen, self.happen = self.happen, None
            happen()
        return super().save(identity, content_hash, entries)


# What goes in comes out.


def test_what_was_made_comes_back_as_it_was_and_its_manifest_tells_of_each_object(stand: Stand) -> None:
    made = (CHUNK, replace(CHUNK, ordinal=1, occurrence=1), Chunk(2, (), "", "plain", "plain", (), 3))
    stand.tenant.put_parsed(HASH, "docling 2", DOC, "run-1")
    stand.tenant.put_chunks(HASH, "docling 2", "hybrid 1", made, "run-2")
    assert stand.tenant.get_parsed(HASH, "docling 2") == DOC
    assert stand.tenant.get_document(HASH, "docling 2") == DOC.docling_json_zst
    assert stand.tenant.get_chunks(HASH, "docling 2", "hybrid 1") == made
    manifest = stand.manifest()
    assert set(manifest.entries) == {*PARSED, chunk_set("hybrid 1")}
    for entry in manifest.present():
        body = stand.tenant.pipeline.drive.get(entry.object_key or "")
        assert (entry.sha256, entry.size) == (content_hash(body), len(body))
        is_chunks = entry.part is Part.CHUNKS
        assert entry.written_by == (WrittenBy("chunk", "run-2", "hybrid 1") if is_chunks else WrittenBy("parse", "run-1", "docling 2"))
    assert stand.named() == stand.pipeline_keys()


def test_every_recipe_has_chunk_sets_and_parses_of_its_own(stand: Stand) -> None:
    stand.tenant.put_parsed(HASH, "p1", DOC, "run")
    stand.tenant.put_chunks(HASH, "p1", "c1", [CHUNK], "run")
    stand.tenant.put_chunks(HASH, "p1", "c2", [CHUNK, CHUNK], "run")
    assert [stand.tenant.has_chunks(HASH, *recipe) for recipe in (("p1", "c1"), ("p2", "c1"), ("p1", "c3"))] == [True, False, False]
    assert [stand.tenant.has_parsed(HASH, version) for version in ("p1", "p2")] == [True, False]
    assert [len(stand.tenant.get_chunks(HASH, "p1", chunker)) for chunker in ("c1", "c2")] == [1, 2]
    assert len(stand.manifest("p1").masked([Part.CHUNKS])) == 2


def test_an_empty_part_writes_no_object_and_is_there_all_the_same(stand: Stand) -> None:
    assert not stand.tenant.has_parsed(HASH, "docling 2")
    assert not stand.tenant.has_chunks(HASH, "docling 2", "c1")
    stand.tenant.put_parsed(HASH, "docling 2", NOTHING, "run")
    stand.tenant.put_chunks(HASH, "docling 2", "c1", [], "run")
    assert stand.pipeline_keys() == []
    assert stand.tenant.has_parsed(HASH, "docling 2")
    assert stand.tenant.get_parsed(HASH, "docling 2") == NOTHING
    assert stand.tenant.has_chunks(HASH, "docling 2", "c1")
    assert stand.tenant.get_chunks(HASH, "docling 2", "c1") == ()
    assert {entry.state for entry in stand.manifest().entries.values()} == {PartState.EMPTY}
    stand.tenant.put_parsed(HASH, "p2", replace(DOC, metadata={}), "run")
    assert len(stand.pipeline_keys()) == 2, "a file that tells nothing of itself has no object for that"


def test_a_part_that_becomes_empty_frees_its_object_and_one_that_is_filled_gets_one(stand: Stand) -> None:
    key = chunk_set("c1")
    stand.save({key: b"one"})
    (before,) = stand.pipeline_keys()
    stand.save({key: b""})
    assert stand.tenant.pipeline.read(stand.state(), (key,)) == {key: b""}
    assert [row.object_key for row in stand.world.rows(freed_objects)] == [before]
    stand.save({key: b"two"})
    assert stand.tenant.pipeline.read(stand.state(), (key,)) == {key: b"two"}


def test_what_is_saved_again_is_not_written_again_and_what_changed_gets_a_new_key(stand: Stand) -> None:
    stand.tenant.put_chunks(HASH, "docling 2", "c1", [CHUNK], "run-1")
    before = stand.manifest()
    stand.tenant.put_chunks(HASH, "docling 2", "c1", [CHUNK], "run-2")
    assert stand.manifest() == before
    stand.tenant.put_chunks(HASH, "docling 2", "c1", [CHUNK, CHUNK], "run-3")
    (old,), (new,) = before.present(), stand.manifest().present()
    assert old.object_key != new.object_key
    assert new.written_by.run == "run-3"
    assert stand.pipeline_keys() == sorted([old.object_key or "", new.object_key or ""]), "a reader of the older manifest may still read"
    (freed,) = stand.world.rows(freed_objects)
    assert (freed.tenant_id, freed.kind, freed.object_key) == (TENANT, "pipeline", old.object_key)


def test_pictures_of_pages_are_kept_by_key(stand: Stand) -> None:
    keys = [
        stand.tenant.put_picture(HASH, "docling 2", page, region, b"png %d%d" % (page, region), "run") for page, region in ((1, 0), (1, 1))
    ]
    assert [stand.tenant.get_picture(key) for key in keys] == [b"png 10", b"png 11"]
    assert all(key.endswith(".png") for key in keys)
    assert stand.tenant.put_picture(HASH, "docling 2", 1, 0, b"png 10", "run") == keys[0]


def test_polars_reads_elements_and_chunk_sets_from_the_drive_itself(stand: Stand) -> None:
    other = stand.keep(b"other bytes") and content_hash(b"other bytes")
    for each in (HASH, other):
        stand.tenant.put_parsed(each, "docling 2", DOC, "run")
        stand.tenant.put_chunks(each, "docling 2", "c1", [CHUNK, replace(CHUNK, ordinal=1, pages=())], "run")
    spec = stand.specs[DriveKind.PIPELINE]
    options: dict[str, str] = {}
    if spec.is_s3:
        key_id, _, secret = (stand.folder / "keys").read_text().partition(":")
        options = {"aws_access_key_id": key_id, "aws_secret_access_key": secret, "aws_endpoint_url": spec.endpoint, "aws_region": REGION}
        options["aws_allow_http"] = "true"
    found = polars.scan_parquet(f"{spec.url}/**/chunks/*.parquet", storage_options=options or None).collect()
    assert found.height == 4
    assert found.sort("ordinal")["heading_path"].to_list() == [list(CHUNK.heading_path)] * 4
    assert found.sort("ordinal")["pages"].to_list() == [[1, 2], [1, 2], [], []]
    listed = polars.scan_parquet(f"{spec.url}/**/parsed/elements.*.parquet", storage_options=options or None)
    texts = listed.filter(polars.col("kind") == "paragraph").select("text").collect()["text"].to_list()
    assert texts == ["Zwölf Boxkämpfer 𝄞"] * 2


# Copies across drives, and what cannot be copied.


def test_an_entry_is_carried_to_another_drive(stand: Stand, make_stand: Stands) -> None:
    stand.save({DOCUMENT: b"a document"})
    (entry,) = stand.manifest().present()
    for to in (stand.tenant.intake, make_stand("folder-sqlite", None).tenant.intake, make_stand("radosgw-sqlite", None).tenant.intake):
        stand.tenant.pipeline.carry(entry, "carried/object", to)
        assert to.get("carried/object") == b"a document"
    stand.tenant.pipeline.carry(entry, "carried/here")
    assert stand.tenant.pipeline.drive.get("carried/here") == b"a document"


@pytest.mark.parametrize("how", ["gone", "no key", "deleted"])
def test_what_cannot_be_copied_is_named_and_the_save_writes_it_whole(stand: Stand, how: str) -> None:
    bodies = {DOCUMENT: b"a document", ELEMENTS: b"elements"}
    stand.save(bodies)
    entry = stand.manifest().entries[DOCUMENT]
    if how == "gone":
        stand.tenant.pipeline.drive.delete([entry.object_key or ""])
    else:
        state = PartState.PRESENT if how == "no key" else PartState.DELETED
        spoilt = replace(entry, object_key=None, state=state)
        change(stand, stand.manifest().merged([spoilt]))
        entry = spoilt
    with pytest.raises(CopySourceGone, match="part parsed/document"):
        stand.tenant.pipeline.carry(entry, "some/key")
    stand.save(bodies, "accepted", base="docling 2")
    assert stand.tenant.pipeline.read(stand.state("accepted"), tuple(Part)) == bodies
    assert "some/key" not in stand.pipeline_keys()


def change(stand: Stand, manifest: Manifest) -> None:
    """Put another manifest into the row."""
    states = stand.world.catalog.states
    with stand.world.catalog.database.begin() as connection:
        assert states.change(connection, states.find([stand.state().node_id])[stand.state().node_id], manifest)


# Damage and loss.


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"no parquet at all"])
def test_a_body_that_changed_on_the_drive_is_found_out_and_no_document_is_blamed(stand: Stand, damage: bytes) -> None:
    stand.tenant.put_parsed(HASH, "docling 2", DOC, "run")
    stand.tenant.put_chunks(HASH, "docling 2", "c1", [CHUNK], "run")
    for key in stand.pipeline_keys():
        stand.tenant.pipeline.drive.replace(key, damage)
    for ask in (
        lambda: stand.tenant.get_parsed(HASH, "docling 2"),
        lambda: stand.tenant.get_document(HASH, "docling 2"),
        lambda: stand.tenant.get_chunks(HASH, "docling 2", "c1"),
    ):
        with pytest.raises(SystemFault, match=r"object .* on drive .* holds other bytes than were saved; restore it"):
            ask()


def test_source_bytes_that_changed_on_the_drive_are_found_out(stand: Stand) -> None:
    key = stand.object_of(HASH)
    stand.tenant.intake.replace(key, b"The bytes")
    with pytest.raises(SystemFault, match=f"object {key} on drive .* holds other bytes than its content; restore it"):
        stand.fetched(HASH)


def test_what_is_gone_is_named(stand: Stand) -> None:
    unknown = content_hash(b"unknown")
    asks: list[tuple[Callable[[], object], str]] = [
        (lambda: stand.fetched(unknown), "is in no catalog row"),
        (lambda: stand.tenant.get_parsed(HASH, "p"), "has no parsed document"),
        (lambda: stand.tenant.get_document(HASH, "p"), "has no parsed document"),
        (lambda: stand.tenant.get_chunks(HASH, "p", "c"), "has no chunks"),
    ]
    for ask, words in asks:
        with pytest.raises(SystemFault, match=words):
            ask()
    stand.tenant.put_chunks(HASH, "docling 2", "c1", [CHUNK], "run")
    (key,) = stand.pipeline_keys()
    stand.tenant.pipeline.drive.delete([key])
    assert stand.tenant.has_chunks(HASH, "docling 2", "c1"), "the catalog answers, and the reconciler names what is missing"
    with pytest.raises(ObjectGone, match=key):
        stand.tenant.get_chunks(HASH, "docling 2", "c1")
    source = stand.object_of(HASH)
    stand.tenant.intake.delete([source])
    with pytest.raises(ObjectGone, match=source):
        stand.fetched(HASH)


def test_a_part_that_is_present_without_an_object_is_no_empty_one(stand: Stand) -> None:
    stand.save({DOCUMENT: b"a document"})
    entry = stand.manifest().entries[DOCUMENT]
    change(stand, Manifest.of([replace(entry, object_key=None)]))
    with pytest.raises(SystemFault, match="part parsed/document is present without an object"):
        stand.tenant.get_document(HASH, "docling 2")


def test_a_reader_of_an_older_manifest_looks_again(stand: Stand) -> None:
    stand.save({DOCUMENT: b"before"})
    older = stand.world.catalog.states.find([stand.state().node_id])
    stand.save({DOCUMENT: b"after"})
    (freed,) = stand.world.rows(freed_objects)
    stand.tenant.pipeline.drive.delete([freed.object_key])

    class Stale(StoredStates):
        looks = 0

        def find(self, node_ids: Collection[str]) -> dict[str, StoredState]:
            self.looks += 1
            return older if self.looks == 1 else super().find(node_ids)

    stale = Stale(stand.world.catalog.database)
    assert stand.on(stale).read(stand.state(), (DOCUMENT,)) == {DOCUMENT: b"after"}
    assert stale.looks == 2


# Two at once.


def test_of_two_saves_of_one_body_the_first_counts_and_the_other_leaves_nothing(stand: Stand) -> None:
    bodies = {DOCUMENT: b"a document", ELEMENTS: b"elements"}
    second = stand.on(Meanwhile(stand, lambda: stand.save(bodies)))
    manifest = second.save(stand.state(), HASH, bodies, replace(BY, run="run-2"))
    assert {entry.written_by.run for entry in manifest.present()} == {"run-1"}
    assert manifest == stand.manifest()
    assert stand.pipeline_keys() == stand.named()


def test_two_saves_of_different_parts_keep_both(stand: Stand) -> None:
    stand.save({DOCUMENT: b"a document"})
    second = stand.on(Meanwhile(stand, lambda: stand.save({chunk_set("c1"): b"one"})))
    second.save(stand.state(), HASH, {chunk_set("c2"): b"two"}, BY)
    assert stand.tenant.pipeline.read(stand.state(), tuple(Part)) == {
        DOCUMENT: b"a document",
        chunk_set("c1"): b"one",
        chunk_set("c2"): b"two",
    }
    assert stand.pipeline_keys() == stand.named()


def test_a_save_whose_state_is_purged_meanwhile_is_whole_all_the_same(stand: Stand) -> None:
    stand.save({DOCUMENT: b"a document"})
    bodies = {DOCUMENT: b"a document", ELEMENTS: b"elements"}
    manifest = stand.on(Meanwhile(stand, stand.forget_state)).save(stand.state(), HASH, bodies, BY)
    assert manifest == stand.manifest()
    assert stand.tenant.pipeline.read(stand.state(), tuple(Part)) == bodies
    assert stand.pipeline_keys() == stand.named()


def test_a_save_whose_content_is_freed_meanwhile_leaves_nothing(stand: Stand) -> None:
    with pytest.raises(Transient, match="was freed while it was worked on"):
        stand.on(Meanwhile(stand, stand.forget_content)).save(stand.state(), HASH, {DOCUMENT: b"a document"}, BY)
    assert stand.pipeline_keys() == []
    assert stand.manifest() == Manifest()
