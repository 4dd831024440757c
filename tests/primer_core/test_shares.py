"""A run's share of the embedding work goes to small documents first, and a huge one still gets on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primer_core.shares import LEAST_PART, share_out

SIZES = st.dictionaries(st.integers(), st.integers(0, 5_000), max_size=30)
SHARE = st.integers(1, 2_000)


def test_small_documents_go_before_a_huge_one_that_came_first() -> None:
    assert share_out({"huge": 4_530, "a": 3, "b": 20}, 1_000) == {"a": 3, "b": 20, "huge": 977}


def test_documents_without_work_always_fit() -> None:
    assert share_out({"huge": 10, "known": 0}, 1) == {"known": 0, "huge": 1}


@given(SIZES, SHARE)
def test_no_run_does_more_than_its_share_and_one_least_part(sizes: dict[int, int], share: int) -> None:
    parts = share_out(sizes, share)
    assert sum(parts.values()) <= share + max(1, share // LEAST_PART)
    assert all(0 <= part <= sizes[key] for key, part in parts.items())
    assert sum(part < sizes[key] for key, part in parts.items()) <= 1


@given(SIZES, SHARE)
def test_no_larger_document_is_finished_before_a_smaller_one(sizes: dict[int, int], share: int) -> None:
    parts = share_out(sizes, share)
    finished = [size for key, size in sizes.items() if parts.get(key) == size]
    unfinished = [size for key, size in sizes.items() if key not in parts or parts[key] < size]
    assert max(finished, default=0) <= min(unfinished, default=10**9)


@given(SIZES.filter(lambda sizes: any(sizes.values())), SHARE)
def test_every_run_gets_on(sizes: dict[int, int], share: int) -> None:
    left = dict(sizes)
    for _ in range(sum(sizes.values()) + 1):
        if not any(left.values()):
            return
        parts = share_out(left, share)
        assert any(parts.values())
        left = {key: size - parts.get(key, 0) for key, size in left.items()}
    raise AssertionError(left)


def test_a_share_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        share_out({}, 0)
