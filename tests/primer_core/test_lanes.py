from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primer_core.lanes import MOST_PAGES, FastLane, Lane, SlowTime, lane_at_fetch, lane_of
from primer_core.routing import Format
from primer_core.stages import Operation

FAST = FastLane(file_bytes=1_000, pages=10)
TIME = SlowTime(timedelta(minutes=5), timedelta(seconds=20))


@pytest.mark.parametrize(
    ("format_", "size", "lane"),
    [
        (Format.MD, 1_000, Lane.FAST),
        (Format.MD, 1_001, Lane.SLOW),
        (Format.PDF, 1_000, Lane.FAST),
        (Format.IMAGE, 1, Lane.SLOW),
    ],
)
def test_pictures_and_large_files_are_slow_from_the_start(format_: Format, size: int, lane: Lane) -> None:
    assert lane_at_fetch(format_, size, FAST) is lane


def test_900_pages_get_their_time_and_a_small_file_of_unknown_pages_gets_little() -> None:
    assert TIME.limit(90_000_000, 900) == timedelta(hours=5, minutes=5)
    assert TIME.limit(29_000, None) == TIME.document + TIME.page


@given(st.integers(0, 10**12), st.none() | st.integers(0, 10**9))
def test_no_claim_of_pages_buys_more_than_the_longest_time(size: int, pages: int | None) -> None:
    assert TIME.document <= TIME.limit(size, pages) <= TIME.longest == TIME.document + TIME.page * MOST_PAGES


def test_deletes_and_permissions_have_their_own_lane_and_copies_go_with_their_content() -> None:
    assert {operation: lane_of(operation, Lane.SLOW) for operation in Operation} == {
        Operation.UPSERT: Lane.SLOW,
        Operation.COPY: Lane.SLOW,
        Operation.DELETE: Lane.ACCESS,
        Operation.ACL: Lane.ACCESS,
    }
