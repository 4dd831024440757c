"""Pages set in columns are read column by column; forms and tables are left to other rules."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from primer_core.layout.columns import column_order
from primer_core.layout.geometry import Box

LONG = 400


def block(left: float, top: float, right: float, bottom: float, letters: int = LONG) -> tuple[Box, int]:
    return Box(left, top, right, bottom), letters


def ordered(blocks: Sequence[tuple[Box, int]]) -> list[int] | None:
    return column_order([box for box, _ in blocks], [letters for _, letters in blocks])


def test_paragraphs_that_stand_row_by_row_in_two_columns_are_read_column_by_column() -> None:
    rows = [block(left, top, left + 200, top + 110) for top in (100, 220, 340) for left in (72, 320)]
    assert ordered(rows) == [0, 2, 4, 1, 3, 5]


def test_a_title_over_both_columns_parts_what_is_above_from_what_is_below() -> None:
    title = block(72, 20, 520, 40, 30)
    middle = block(150, 360, 450, 380, 30)
    above = [block(left, top, left + 200, top + 110) for top in (60, 180) for left in (72, 320)]
    below = [block(left, top, left + 200, top + 110) for top in (400, 520) for left in (72, 320)]
    blocks = [title, *above, middle, *below]
    assert ordered(blocks) == [0, 1, 3, 2, 4, 5, 6, 8, 7, 9]


def test_three_columns() -> None:
    rows = [block(left, top, left + 150, top + 110) for top in (100, 220) for left in (50, 220, 390)]
    assert ordered(rows) == [0, 3, 1, 4, 2, 5]


def test_labels_and_values_are_no_columns() -> None:
    rows = [block(left, top, left + 120, top + 12, 14) for top in range(100, 400, 20) for left in (72, 320)]
    assert ordered(rows) is None


def test_one_column_is_left_alone() -> None:
    assert ordered([block(72, top, 520, top + 60) for top in (100, 180, 260)]) is None
    assert ordered([]) is None


PLACES = st.integers(0, 60).map(lambda place: place * 10.0)
BLOCKS = st.builds(
    lambda left, top, width, height, letters: (Box(left, top, left + width, top + height), letters),
    PLACES,
    PLACES,
    st.sampled_from([0.0, 40.0, 200.0, 500.0]),
    st.sampled_from([10.0, 60.0]),
    st.sampled_from([5, LONG]),
)


@given(st.lists(BLOCKS, max_size=25))
def test_no_block_is_lost_or_read_twice(blocks: list[tuple[Box, int]]) -> None:
    order = ordered(blocks)
    assert order is None or sorted(order) == list(range(len(blocks)))
