"""How long an item waits for company, and that none is lost on the way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primer_core.micro_batch import MicroBatcher

GAPS = st.lists(st.floats(0, 0.5, allow_nan=False), max_size=80)


@given(GAPS, st.integers(1, 10))
def test_items_come_out_once_in_order_never_more_than_a_batch_and_never_late(gaps: list[float], size: int) -> None:
    batcher: MicroBatcher[int] = MicroBatcher(size, wait=0.2)
    now = 0.0
    arrived: list[float] = []
    out: list[int] = []

    def take(items: list[int], at: float) -> None:
        assert len(items) <= size
        assert all(at - arrived[item] <= 0.2 + 1e-9 for item in items)
        out.extend(items)

    for item, gap in enumerate(gaps):
        now += gap
        while (deadline := batcher.deadline) is not None and deadline <= now:
            take(batcher.take_due(deadline), deadline)
        arrived.append(now)
        take(batcher.add(item, now), now)
    take(batcher.flush(), now)
    assert out == list(range(len(gaps)))
    assert len(batcher) == 0


def test_a_full_batch_does_not_wait() -> None:
    batcher: MicroBatcher[str] = MicroBatcher(2, wait=10)
    assert batcher.add("a", 0.0) == []
    assert batcher.add("b", 0.0) == ["a", "b"]
    assert batcher.deadline is None


def test_nothing_is_due_before_the_oldest_has_waited() -> None:
    batcher: MicroBatcher[str] = MicroBatcher(64, wait=0.2)
    batcher.add("old", 1.0)
    batcher.add("new", 1.15)
    assert batcher.take_due(1.19) == []
    assert batcher.take_due(1.2) == ["old", "new"]


@pytest.mark.parametrize(("size", "wait"), [(0, 1.0), (4, -0.1)])
def test_a_batch_that_can_never_fill_is_refused(size: int, wait: float) -> None:
    with pytest.raises(ValueError, match="micro-batch"):
        MicroBatcher(size, wait)
