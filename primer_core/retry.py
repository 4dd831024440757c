"""Retry policy: how often, and how long to wait. The random source is passed in."""

from dataclasses import dataclass
from datetime import timedelta
from random import Random


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential backoff with full jitter in its upper half, capped. The last attempt that fails is a dead letter."""

    max_attempts: int = 5
    base: timedelta = timedelta(seconds=5)
    cap: timedelta = timedelta(minutes=10)


def is_exhausted(policy: RetryPolicy, attempts: int) -> bool:
    """Whether `attempts` failed attempts (this one counted) are the end."""
    return attempts >= policy.max_attempts


def compute_backoff(policy: RetryPolicy, attempts: int, random: Random) -> timedelta:
    """How long to wait after the `attempts`-th failure: between half and all of base · 2^(attempts−1), at most the cap.

    The jitter keeps documents that failed together from coming back together.
    """
    doublings = min(attempts - 1, 30)
    longest = min(policy.cap, policy.base * (1 << doublings))
    return longest * (0.5 + random.random() / 2)
