"""Renames: equal bytes under a new path keep their document."""

from hypothesis import given
from hypothesis import strategies as st

from primer_core.renames import Appeared, Vanished, match_renames

hashes = st.sampled_from(["h1", "h2", "h3"])
paths = st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(["x.txt", "y.txt", "z.txt"])).map("/".join)
vanished_sets = st.lists(st.tuples(paths, hashes), max_size=8).map(
    lambda pairs: [Vanished(f"d{n}", path, content) for n, (path, content) in enumerate(pairs)]
)
appeared_sets = st.dictionaries(paths, hashes, max_size=6).map(lambda found: [Appeared(*pair) for pair in found.items()])


@given(vanished_sets, appeared_sets)
def test_pairs_are_one_to_one_of_equal_content_and_as_many_as_possible(vanished: list[Vanished], appeared: list[Appeared]) -> None:
    matches = match_renames(vanished, appeared)
    old = {v.doc_id: v.content_hash for v in vanished}
    new = {a.path: a.content_hash for a in appeared}
    assert len(set(matches.values())) == len(matches)
    assert all(new[path] == old[doc_id] for path, doc_id in matches.items())
    for content in {*old.values(), *new.values()}:
        possible = min(list(old.values()).count(content), list(new.values()).count(content))
        assert sum(new[path] == content for path in matches) == possible


@given(vanished_sets, appeared_sets, st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(vanished: list[Vanished], appeared: list[Appeared], random: object) -> None:
    expected = match_renames(vanished, appeared)
    random.shuffle(vanished)  # type: ignore[attr-defined]
    random.shuffle(appeared)  # type: ignore[attr-defined]
    assert match_renames(vanished, appeared) == expected


def test_a_file_moved_under_its_own_name_beats_one_that_only_sorts_first() -> None:
    vanished = [Vanished("first", "in/a.txt", "h"), Vanished("moved", "in/report.txt", "h")]
    assert match_renames(vanished, [Appeared("archive/report.txt", "h")]) == {"archive/report.txt": "moved"}


def test_a_file_renamed_in_its_folder_beats_one_from_elsewhere() -> None:
    vanished = [Vanished("elsewhere", "a/old.txt", "h"), Vanished("here", "b/old.txt", "h")]
    assert match_renames(vanished, [Appeared("b/new.txt", "h")]) == {"b/new.txt": "here"}


def test_the_same_name_beats_the_same_folder() -> None:
    vanished = [Vanished("in place", "b/old.txt", "h"), Vanished("moved", "z/report.txt", "h")]
    assert match_renames(vanished, [Appeared("b/report.txt", "h")]) == {"b/report.txt": "moved"}


def test_a_folder_renamed_whole_keeps_every_document_although_all_are_equal() -> None:
    vanished = [Vanished(f"d{n}", f"old/{n}.txt", "h") for n in range(5)]
    appeared = [Appeared(f"new/{n}.txt", "h") for n in range(5)]
    assert match_renames(vanished, appeared) == {f"new/{n}.txt": f"d{n}" for n in range(5)}


def test_a_changed_content_is_no_rename() -> None:
    assert match_renames([Vanished("d", "a.txt", "h1")], [Appeared("b.txt", "h2")]) == {}


def test_plain_tuples_are_accepted() -> None:
    assert match_renames([("d", "a.txt", "h")], [("b.txt", "h")]) == {"b.txt": "d"}  # type: ignore[list-item]
