"""The formats of ids are stored in every deployment. A golden value below must never change: a changed one re-ids all documents."""

import re
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from primer_core import ids

texts = st.text(st.characters(exclude_categories=[]), max_size=6)
"""Any text, lone surrogates too."""


def test_ids_are_what_every_deployment_has_stored() -> None:
    # Never change these literals; they were computed once and are in databases, object keys and index rows.
    assert ids.content_hash(b"abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert ids.source_id("default", "handbook") == "cf4d3f75c65549709f3f59fcef783dcf"
    assert ids.doc_id("handbook", "a/b.md") == "365d655d578e89ec455c4daf17f5e470"
    assert ids.acl_id("default", "handbook", "HR") == "0ebb7bfa6eb5ecfe9188c2c427facecb"
    assert ids.recipe_key("docling 2.143") == "7d08f23699f2c456ccad100696531203"
    assert ids.chunk_key(("Guide", "Setup"), "Before.", "Now.") == "84adbed2f0f21b04776615803a261302"
    assert ids.chunk_id("0" * 32, "1" * 32, 2) == "f675e1be71260d7d2a0bdf9b529dc5ef"
    assert ids.embedding_key("m@1;dims=3", "passage: Now.") == "1dc60ce6df4b5c5612c554d17a56fdc1"
    assert ids.row_id("0" * 32, 7) == "00000000000000000000000000000000:7"


@given(texts, texts, st.lists(texts, max_size=3), st.integers(0, 9))
def test_ids_are_lower_case_hex_that_no_tokenizer_splits(a: str, b: str, path: list[str], n: int) -> None:
    made = [ids.source_id(a, b), ids.doc_id(a, b), ids.acl_id(a, b, a), ids.recipe_key(a), ids.chunk_key(path, a, b), ids.chunk_id(a, b, n)]
    assert all(re.fullmatch("[0-9a-f]{32}", made_id) for made_id in [*made, ids.embedding_key(a, b)])


@given(st.tuples(texts, texts), st.tuples(texts, texts))
def test_parts_never_run_into_each_other(one: tuple[str, str], two: tuple[str, str]) -> None:
    assert (ids.doc_id(*one) == ids.doc_id(*two)) == (one == two)
    assert (ids.embedding_key(*one) == ids.embedding_key(*two)) == (one == two)


@given(texts, st.integers(0, 6), st.integers(0, 6))
def test_a_boundary_moved_within_the_same_text_makes_another_id(text: str, one: int, two: int) -> None:
    first, second = (text[:one], text[one:]), (text[:two], text[two:])
    assert (ids.doc_id(*first) == ids.doc_id(*second)) == (first == second)


@given(st.tuples(st.lists(texts, max_size=3), texts, texts), st.tuples(st.lists(texts, max_size=3), texts, texts))
def test_heading_overlap_and_text_of_a_chunk_are_kept_apart(one: tuple[list[str], str, str], two: tuple[list[str], str, str]) -> None:
    assert (ids.chunk_key(*one) == ids.chunk_key(*two)) == (one == two)


def test_a_heading_that_moves_into_the_text_is_another_chunk() -> None:
    shapes = [
        ((), "", "ab"),
        (("a",), "", "b"),
        ((), "a", "b"),
        (("a", "b"), "", ""),
        (("ab",), "", ""),
        (("",), "", "ab"),
        (("", ""), "", "ab"),
    ]
    keys = [ids.chunk_key(*shape) for shape in shapes]
    assert all(a != b for a, b in combinations(keys, 2))


def test_kinds_never_share_an_id() -> None:
    assert ids.source_id("a", "b") != ids.doc_id("a", "b")
    assert ids.doc_id("a", "b") != ids.embedding_key("a", "b")


def test_text_that_utf8_cannot_hold_still_has_an_id_of_its_own() -> None:
    assert len({ids.chunk_key((), "", text) for text in ("\ud800", "\ud801", "?", "\ufffd", "")}) == 5


def test_equal_chunks_differ_by_their_occurrence_and_a_returning_chunk_by_its_generation() -> None:
    assert ids.chunk_id("d", "k", 0) != ids.chunk_id("d", "k", 1)
    assert ids.chunk_id("d", "k", 0) != ids.chunk_id("e", "k", 0)
    assert ids.row_id("c", 1) != ids.row_id("c", 2)
