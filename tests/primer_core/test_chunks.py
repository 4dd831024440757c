from hypothesis import given
from hypothesis import strategies as st

from primer_core.chunks import Chunk, diff_chunks, next_manifest, number_occurrences

DOC = "0" * 32


def chunk(text: str, heading: tuple[str, ...] = ("Guide",), overlap: str = "", page: int = 1) -> Chunk:
    return Chunk(0, heading, overlap, text, f"{' > '.join(heading)}\n{overlap}{text}", (page,), len(text))


def ids_of(*chunks: Chunk) -> list[str]:
    return [each.id_in(DOC) for each in number_occurrences(chunks)]


def test_a_paragraph_that_stands_three_times_is_three_chunks_and_two_when_one_goes() -> None:
    three = ids_of(chunk("same"), chunk("other"), chunk("same"), chunk("same"))
    assert len(set(three)) == 4
    two = ids_of(chunk("same"), chunk("other"), chunk("same"))
    diff = diff_chunks(two, dict.fromkeys(three, 1))
    assert (len(diff.new), len(diff.kept), len(diff.gone)) == (0, 3, 1)
    assert next_manifest(two, dict.fromkeys(three, 1), 2) == dict.fromkeys(two, 1)


def test_an_insert_at_the_top_renames_nobody() -> None:
    before = ids_of(chunk("one"), chunk("two"), chunk("two"))
    after = ids_of(chunk("zero"), chunk("one", page=2), chunk("two", page=2), chunk("two", page=3))
    diff = diff_chunks(after, dict.fromkeys(before, 1))
    assert diff.new == (after[0],)
    assert set(diff.kept) == set(before)
    assert diff.gone == ()


def test_what_shapes_the_vector_shapes_the_id_and_place_does_not() -> None:
    plain = chunk("text")
    assert plain.key == chunk("text", page=9).key
    assert len({plain.key, chunk("Text").key, chunk("text", heading=()).key, chunk("text", overlap="b").key}) == 4
    assert plain.id_in(DOC) != plain.id_in("1" * 32)


def test_occurrences_and_ordinals_follow_the_order_of_the_document() -> None:
    numbered = number_occurrences([chunk("a"), chunk("b"), chunk("a")])
    assert [each.ordinal for each in numbered] == [0, 1, 2]
    assert [each.occurrence for each in numbered] == [0, 0, 1]


def test_a_one_chunk_document_that_is_written_again_loses_nothing() -> None:
    only = ids_of(chunk("all there is"))
    assert diff_chunks(only, {only[0]: 1}).gone == ()
    assert next_manifest(only, {only[0]: 1}, 2) == {only[0]: 1}


def test_a_shorter_version_takes_its_late_chunks_out() -> None:
    twelve = ids_of(*(chunk(f"p{n}") for n in range(12)))
    three = ids_of(*(chunk(f"p{n}") for n in range(3)))
    assert set(diff_chunks(three, dict.fromkeys(twelve, 1)).gone) == set(twelve[3:])


names = st.text("abc", min_size=1, max_size=1)


@given(st.lists(names, unique=True), st.dictionaries(names, st.integers(1, 5)))
def test_the_diff_parts_old_and_new_and_gone_is_old_without_new(new_ids: list[str], manifest: dict[str, int]) -> None:
    diff = diff_chunks(new_ids, manifest)
    assert set(diff.gone) == set(manifest) - set(new_ids)
    assert set(diff.new) == set(new_ids) - set(manifest)
    assert set(diff.kept) == set(new_ids) & set(manifest)
    following = next_manifest(new_ids, manifest, 6)
    assert following == {name: manifest.get(name, 6) for name in new_ids}


@given(st.lists(st.sampled_from(["x", "y", "z"])))
def test_every_passage_of_a_document_has_an_id_of_its_own(texts: list[str]) -> None:
    made = ids_of(*(chunk(text) for text in texts))
    assert len(set(made)) == len(texts)
