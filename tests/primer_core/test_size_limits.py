"""A time limit grows with the file, never falls below what every file may take, and ends somewhere."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from primer_core.size_limits import by_size

TIMES = st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=1))
SIZES = st.integers(min_value=0, max_value=2**62)
SECOND = timedelta(seconds=1)


def test_each_megabyte_begun_adds_its_time() -> None:
    limits = [by_size(60 * SECOND, 2 * SECOND, 100 * SECOND, size) for size in (0, 1, 2**20, 2**20 + 1, 20 * 2**20, 2**40)]
    assert [limit.total_seconds() for limit in limits] == [60, 62, 62, 64, 100, 100]


@given(TIMES, TIMES, TIMES, SIZES, SIZES)
def test_a_larger_file_never_has_less_time(base: timedelta, each: timedelta, longest: timedelta, one: int, other: int) -> None:
    small, large = sorted((one, other))
    first, second = by_size(base, each, longest, small), by_size(base, each, longest, large)
    assert base <= first <= second <= max(base, longest)
