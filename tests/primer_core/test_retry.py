from datetime import timedelta
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from primer_core.retry import RetryPolicy, compute_backoff, is_exhausted

POLICY = RetryPolicy(max_attempts=5, base=timedelta(seconds=5), cap=timedelta(minutes=10))


class Fixed(Random):
    """Always rolls the same."""

    def __init__(self, value: float) -> None:
        super().__init__(0)
        self._value = value

    def random(self) -> float:
        return self._value


@given(st.integers(1, 10_000), st.integers())
def test_a_wait_lies_between_half_and_all_of_the_doubled_base_and_never_above_the_cap(attempts: int, seed: int) -> None:
    longest = min(POLICY.cap, POLICY.base * 2 ** min(attempts - 1, 30))
    assert longest / 2 <= compute_backoff(POLICY, attempts, Random(seed)) <= longest


def test_waits_double_until_the_cap() -> None:
    assert [compute_backoff(POLICY, n, Fixed(1.0)).total_seconds() for n in range(1, 10)] == [5, 10, 20, 40, 80, 160, 320, 600, 600]
    assert compute_backoff(POLICY, 1, Fixed(0.0)) == timedelta(seconds=2.5)


def test_documents_that_failed_together_come_back_apart() -> None:
    random = Random(1)
    assert len({compute_backoff(POLICY, 3, random) for _ in range(50)}) == 50


def test_the_fifth_failure_is_the_last() -> None:
    assert [is_exhausted(POLICY, attempts) for attempts in (1, 4, 5, 6)] == [False, False, True, True]
