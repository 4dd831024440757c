from dataclasses import replace
from pathlib import Path

import pytest

from primer_core.chunks import Chunk
from primer_core.elements import Element, ElementKind, ParsedDocument
from primer_core.failures import SystemFault
from primer_core.ids import content_hash
from primer_resources.document_store import DocumentStore

HASH = content_hash(b"the bytes")
CHUNK = Chunk(0, ("Guide", "Setup é"), "Before. ", "Now.\n\n| a | b |", "Guide > Setup\nBefore. Now.", (1, 2), 12)
PARSED = ParsedDocument(
    (
        Element(0, ElementKind.HEADING, "Guide", 1, 1),
        Element(1, ElementKind.PARAGRAPH, "Zwölf Boxkämpfer 𝄞", None, None),
        Element(2, ElementKind.TABLE, "| a |\n| --- |", None, 3),
    ),
    3,
    b"\x28\xb5\x2f\xfd compressed",
    {"front_matter": {"title": "Été"}},
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def store(folder: Path) -> DocumentStore:
    return DocumentStore.at_folder(folder)


def file_of(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "given"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("data", [b"", b"the bytes", bytes(range(256)) * 50_000])
def test_bytes_come_back_as_they_went_in(store: DocumentStore, tmp_path: Path, data: bytes) -> None:
    key = store.put_content(file_of(tmp_path, data), content_hash(data))
    assert key == store.content_key(content_hash(data))
    store.fetch_content(content_hash(data), tmp_path / "fetched")
    assert (tmp_path / "fetched").read_bytes() == data


def test_an_object_is_written_once_and_never_changed(store: DocumentStore, folder: Path, tmp_path: Path) -> None:
    key = store.put_content(file_of(tmp_path, b"the bytes"), HASH)
    store.put_content(file_of(tmp_path, b"other bytes under the same name"), HASH)
    assert (folder / key).read_bytes() == b"the bytes"
    store.put_chunks(HASH, "p1", "c1", [CHUNK])
    store.put_chunks(HASH, "p1", "c1", [])
    assert store.get_chunks(HASH, "p1", "c1") == (CHUNK,)
    store.put_parsed(HASH, "p1", PARSED)
    store.put_parsed(HASH, "p1", replace(PARSED, pages=9))
    assert store.get_parsed(HASH, "p1") == PARSED


def test_bytes_that_changed_on_disk_are_found_out(store: DocumentStore, folder: Path, tmp_path: Path) -> None:
    key = store.put_content(file_of(tmp_path, b"the bytes"), HASH)
    (folder / key).write_bytes(b"The bytes")
    with pytest.raises(SystemFault, match=f"object {key} in store .* holds other bytes than its name says; restore it"):
        store.fetch_content(HASH, tmp_path / "fetched")


def test_objects_that_are_gone_are_named(store: DocumentStore, tmp_path: Path) -> None:
    for ask in (
        lambda: store.fetch_content(HASH, tmp_path / "f"),
        lambda: store.get_parsed(HASH, "p"),
        lambda: store.get_chunks(HASH, "p", "c"),
    ):
        with pytest.raises(SystemFault, match=f"object [a-z]+/{HASH[:2]}/{HASH}.* cannot be read"):
            ask()


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"no parquet at all"])
def test_damaged_chunk_sets_and_parses_are_named_and_no_document_is_blamed(store: DocumentStore, folder: Path, damage: bytes) -> None:
    store.put_chunks(HASH, "p1", "c1", [CHUNK])
    store.put_parsed(HASH, "p1", PARSED)
    for path in folder.rglob("*.parquet"):
        path.write_bytes(damage)
    with pytest.raises(SystemFault, match=r"object chunks/.*\.parquet in store .* is damaged"):
        store.get_chunks(HASH, "p1", "c1")
    with pytest.raises(SystemFault, match=r"object parsed/.*elements\.parquet in store .* is damaged"):
        store.get_parsed(HASH, "p1")


@pytest.mark.parametrize("pages", [None, 1, 900])
def test_a_parsed_document_comes_back_as_it_was(store: DocumentStore, pages: int | None) -> None:
    store.put_parsed(HASH, "docling 2", replace(PARSED, pages=pages))
    assert store.get_parsed(HASH, "docling 2") == replace(PARSED, pages=pages)


def test_a_parse_that_gave_nothing_is_not_a_parse_that_is_missing(store: DocumentStore) -> None:
    nothing = ParsedDocument((), None, b"")
    assert not store.has_parsed(HASH, "p")
    store.put_parsed(HASH, "p", nothing)
    assert store.has_parsed(HASH, "p")
    assert store.get_parsed(HASH, "p") == nothing


def test_a_parse_counts_only_once_its_elements_are_there(store: DocumentStore, folder: Path) -> None:
    store.put_parsed(HASH, "p", PARSED)
    next(folder.rglob("elements.parquet")).unlink()
    assert not store.has_parsed(HASH, "p"), "a crash between the two writes leaves the document to be parsed again"
    store.put_parsed(HASH, "p", PARSED)
    assert store.get_parsed(HASH, "p") == PARSED


def test_a_chunk_set_comes_back_in_order_with_every_field(store: DocumentStore) -> None:
    made = [CHUNK, replace(CHUNK, ordinal=1, occurrence=1), Chunk(2, (), "", "plain", "plain", (), 3)]
    store.put_chunks(HASH, "p1", "c1", made)
    assert store.get_chunks(HASH, "p1", "c1") == tuple(made)


def test_a_set_of_no_chunks_is_a_set(store: DocumentStore) -> None:
    assert not store.has_chunks(HASH, "p1", "c1")
    store.put_chunks(HASH, "p1", "c1", [])
    assert store.has_chunks(HASH, "p1", "c1")
    assert store.get_chunks(HASH, "p1", "c1") == ()


def test_every_recipe_has_chunk_sets_and_parses_of_its_own(store: DocumentStore) -> None:
    store.put_chunks(HASH, "p1", "c1", [CHUNK])
    store.put_parsed(HASH, "p1", PARSED)
    assert [store.has_chunks(HASH, *recipe) for recipe in (("p1", "c1"), ("p2", "c1"), ("p1", "c2"))] == [True, False, False]
    assert [store.has_parsed(HASH, version) for version in ("p1", "p2")] == [True, False]


def test_a_store_that_cannot_be_written_is_the_systems_fault(tmp_path: Path) -> None:
    store = DocumentStore.at_folder(tmp_path / "store")
    (tmp_path / "store" / "chunks").write_bytes(b"a file where a folder should be")
    with pytest.raises(SystemFault, match=r"store .* cannot keep chunks/"):
        store.put_chunks(HASH, "p1", "c1", [])


def test_no_half_written_object_is_ever_there(store: DocumentStore, folder: Path, tmp_path: Path) -> None:
    store.put_content(file_of(tmp_path, b"x" * 1_000_000), content_hash(b"x" * 1_000_000))
    assert [path.name for path in folder.rglob("*") if path.is_file()] == [content_hash(b"x" * 1_000_000)]
