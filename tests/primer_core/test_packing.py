"""Which neighbours share a passage, and that an edit moves only the cuts beside it."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from primer_core.packing import Level, Unit, pack, rank_of

UNITS = st.lists(st.builds(Unit, size=st.integers(1, 400), level=st.sampled_from(Level), rank=st.integers(0, 2**32 - 1)), max_size=60)


@given(UNITS, st.integers(1, 400), st.integers(0, 150))
def test_every_unit_is_in_one_range_and_only_a_single_unit_is_over_the_limit(units: list[Unit], limit: int, least: int) -> None:
    ranges = pack(units, limit, least)
    assert [n for first, stop in ranges for n in range(first, stop)] == list(range(len(units)))
    assert all(first < stop for first, stop in ranges)
    assert all(stop - first == 1 or sum(unit.size for unit in units[first:stop]) <= limit for first, stop in ranges)


@given(UNITS)
def test_a_run_that_fits_is_one_passage(units: list[Unit]) -> None:
    limit = max(sum(unit.size for unit in units), 1)
    assert pack(units, limit, 30) == ([(0, len(units))] if units else [])


@given(UNITS, st.integers(50, 400))
def test_a_measure_over_the_limit_cuts_further(units: list[Unit], limit: int) -> None:
    def measure(first: int, stop: int) -> int:
        return sum(unit.size for unit in units[first:stop]) + 10 * (stop - first - 1)

    assert all(stop - first == 1 or measure(first, stop) <= limit for first, stop in pack(units, limit, 30, measure))


def test_blocks_are_cut_before_lines_and_lines_before_sentences() -> None:
    units = [Unit(60, Level.BLOCK, 9), Unit(60, Level.SENTENCE, 1), Unit(60, Level.BLOCK, 8), Unit(60, Level.LINE, 2)]
    assert pack(units, 120, 0) == [(0, 2), (2, 4)]


def test_many_equal_lines_are_cut_evenly_and_soon() -> None:
    ranges = pack([Unit(10, Level.LINE, 7)] * 20_000, 300, 90)
    assert max(stop - first for first, stop in ranges) <= 30
    assert len(ranges) <= 2 * 20_000 * 10 / 300


def test_a_unit_put_in_anywhere_makes_at_most_three_new_passages() -> None:
    random = Random(5)
    worst = 0
    for _ in range(300):
        units = [Unit(random.randint(5, 150), Level.BLOCK, random.getrandbits(32)) for _ in range(200)]
        place = random.choice([0, 1, random.randrange(200)])
        edited = [*units[:place], Unit(random.randint(5, 150), Level.BLOCK, random.getrandbits(32)), *units[place:]]
        before = {tuple(units[first:stop]) for first, stop in pack(units, 340, 100)}
        worst = max(worst, sum(tuple(edited[first:stop]) not in before for first, stop in pack(edited, 340, 100)))
    assert worst <= 3


def test_the_rank_hangs_on_the_first_words_only() -> None:
    assert rank_of("One two three four five and more") == rank_of("one two, three FOUR five but other")
    assert rank_of("One two three four five") != rank_of("Zero two three four five")
    assert rank_of("***") != rank_of("---")
