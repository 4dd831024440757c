"""Which small sections share a passage, and that a section put in moves only what is beside it."""

from itertools import pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from primer_core.siblings import Section, common_path, merge_small

SMALL, MOST = 120, 260


@st.composite
def outlines(draw: st.DrawFn) -> list[Section]:
    """Sections of a page in order, up to four headings deep; every path is another."""
    made: list[Section] = []
    path: tuple[str, ...] = ()
    for number in range(draw(st.integers(0, 30))):
        depth = draw(st.integers(0, min(len(path) + 1, 4))) if made else draw(st.integers(0, 1))
        path = (*path[: max(depth - 1, 0)], str(number)) if depth else path or (str(number),)
        made.append(Section(path, draw(st.integers(1, 400)), draw(st.integers(0, 2**32 - 1)), draw(st.booleans())))
    return made


def merged(sections: list[Section]) -> list[tuple[int, int]]:
    def measure(first: int, stop: int) -> int:
        return sum(section.size for section in sections[first:stop])

    return merge_small(sections, SMALL, MOST, measure)


@given(outlines())
def test_every_section_is_in_one_passage_in_order(sections: list[Section]) -> None:
    assert [n for first, stop in merged(sections) for n in range(first, stop)] == list(range(len(sections)))


@given(outlines())
def test_only_whole_sections_share_within_the_limit_and_one_of_two_neighbours_is_small(sections: list[Section]) -> None:
    for first, stop in merged(sections):
        together = sections[first:stop]
        if len(together) > 1:
            assert sum(section.size for section in together) <= MOST
            assert all(section.whole for section in together)
            assert all(min(before.size, after.size) < SMALL for before, after in pairwise(together))
            assert all(after.path[:-1] in (before.path, before.path[:-1]) for before, after in pairwise(together))


@given(outlines())
def test_the_common_path_leads_to_every_section_and_leaves_at_most_one_heading_of_the_first(sections: list[Section]) -> None:
    for first, stop in merged(sections):
        together = sections[first:stop]
        path = common_path(together)
        assert all(section.path[: len(path)] == path for section in together)
        assert len(together[0].path) - len(path) <= 1


def test_small_siblings_and_an_opening_text_with_its_first_child_share() -> None:
    sections = [Section(("A",), 60, 1), Section(("A", "a"), 60, 2), Section(("A", "b"), 60, 3), Section(("B",), 300, 4)]
    assert merged(sections) == [(0, 3), (3, 4)]
    assert common_path(sections[:3]) == ("A",)


def test_the_last_child_does_not_share_with_its_parents_sibling() -> None:
    assert merged([Section(("A", "a"), 30, 1), Section(("B",), 30, 2)]) == [(0, 1), (1, 2)]


def test_a_measure_over_the_limit_keeps_sections_apart() -> None:
    sections = [Section(("A",), 60, 1), Section(("B",), 60, 2)]
    assert merge_small(sections, SMALL, MOST, lambda first, stop: 300 if stop - first > 1 else 60) == [(0, 1), (1, 2)]


def test_a_section_put_in_anywhere_changes_few_passages_however_long_the_page() -> None:
    random = Random(3)
    changed = []
    for _ in range(300):
        sections = [Section((str(n),), random.randint(5, 200), random.getrandbits(32)) for n in range(200)]
        place = random.choice([0, 1, random.randrange(200)])
        edited = [*sections[:place], Section(("new",), random.randint(5, 200), random.getrandbits(32)), *sections[place:]]
        before = {tuple(sections[first:stop]) for first, stop in merged(sections)}
        changed.append(sum(tuple(edited[first:stop]) not in before for first, stop in merged(edited)))
    assert max(changed) <= 4
    assert sum(changed) / len(changed) < 1.5
