from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primer_core.buckets import MAX_BUCKETS, bucket_names, bucket_of, merge_ranges

NAMES = bucket_names(8)
waiting_sets = st.sets(st.sampled_from(NAMES))


def swept(ranges: list[tuple[str, str]]) -> list[str]:
    return [name for first, last in ranges for name in NAMES if first <= name <= last]


def test_names_are_two_hex_digits_in_order() -> None:
    assert bucket_names(4) == ("00", "01", "02", "03")
    assert bucket_names(MAX_BUCKETS)[-1] == "ff"
    assert list(bucket_names(MAX_BUCKETS)) == sorted(bucket_names(MAX_BUCKETS))


@pytest.mark.parametrize("count", [-1, 0, 257])
def test_a_count_that_two_hex_digits_cannot_name_is_refused(count: int) -> None:
    with pytest.raises(ValueError, match=f"bucket count {count} "):
        bucket_names(count)


def test_a_document_keeps_the_bucket_that_its_first_content_gave_it() -> None:
    # Stored with every document: these two must never change.
    assert bucket_of("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", 8) == "07"
    assert bucket_of("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", 64) == "3f"


@given(st.text("0123456789abcdef", min_size=64, max_size=64), st.integers(1, MAX_BUCKETS))
def test_every_content_has_one_of_the_buckets(content_hash: str, count: int) -> None:
    assert bucket_of(content_hash, count) in bucket_names(count)


@given(waiting_sets, st.integers(1, 5))
def test_ranges_cover_all_that_waits_few_and_apart(waiting: set[str], most: int) -> None:
    ranges = merge_ranges(waiting, NAMES, most)
    covered = swept(ranges)
    assert waiting <= set(covered)
    assert len(covered) == len(set(covered))
    assert len(ranges) <= most
    assert ranges == sorted(ranges)
    assert all(first in waiting and last in waiting for first, last in ranges)


@given(waiting_sets, st.integers(1, 5))
def test_no_other_ranges_would_sweep_fewer_idle_buckets(waiting: set[str], most: int) -> None:
    places = sorted(NAMES.index(name) for name in waiting)
    best = len(NAMES)
    for pieces in range(1, min(most, len(places)) + 1):
        for cuts in combinations(range(1, len(places)), pieces - 1):
            bounds = [0, *cuts, len(places)]
            best = min(best, sum(places[b - 1] - places[a] + 1 for a, b in pairwise(bounds)))
    assert len(swept(merge_ranges(waiting, NAMES, most))) == (best if places else 0)


def test_neighbours_are_one_range_however_many_are_allowed() -> None:
    assert merge_ranges(NAMES, NAMES, 8) == [("00", "07")]


def test_a_name_that_is_no_bucket_is_passed_over() -> None:
    assert merge_ranges(["zz"], NAMES, 2) == []
