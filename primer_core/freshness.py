"""Freshness: how long a change takes from its source into both indexes, and when that is worth an alert. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from math import ceil

from primer_core.lanes import Lane


class Severity(StrEnum):
    """How bad it is: a warning can wait for the morning, an error cannot."""

    OK = "ok"
    WARN = "warn"
    ERROR = "error"


_RANK = (Severity.OK, Severity.WARN, Severity.ERROR)


def worst(severities: Iterable[Severity]) -> Severity:
    """The worst of them; OK where there is none."""
    return max(severities, key=_RANK.index, default=Severity.OK)


def percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` (0 < share ≤ 1) of the ascending values do not pass (nearest rank).

    Raises ValueError for no values or another share.
    """
    if not ordered or not 0 < share <= 1:
        raise ValueError(f"share {share} of {len(ordered)} values: give at least one value, and a share above 0 and at most 1")
    return ordered[max(1, ceil(share * len(ordered))) - 1]


@dataclass(frozen=True, slots=True)
class Spread:
    """How long a number of changes took, in seconds."""

    changes: int
    p50: float
    p95: float
    longest: float

    @staticmethod
    def of(seconds: Iterable[float]) -> "Spread | None":
        """The spread of some durations, in any order; None where there are none."""
        ordered = sorted(seconds)
        return Spread(len(ordered), percentile(ordered, 0.5), percentile(ordered, 0.95), ordered[-1]) if ordered else None


@dataclass(frozen=True, slots=True)
class Lateness:
    """The verdict on one lane, with the words for the person who is alerted."""

    lane: Lane
    severity: Severity
    words: str


def judge_lane(lane: Lane, limit: timedelta, spread: Spread | None, oldest: datetime | None, now: datetime) -> Lateness:
    """Whether a lane keeps up. `oldest` is from when the oldest change counts that still waits, None where nothing does.

    A warning where one change in twenty passed the limit, or one that waits has; an error where every other change passed it, or the
    oldest waits for three times the limit. What waits is looked at too, since a lane that stands still finishes nothing late.
    """
    most, waits = limit.total_seconds(), 0.0 if oldest is None else (now - oldest).total_seconds()
    told = [] if spread is None else [f"p50 {in_words(spread.p50)}, p95 {in_words(spread.p95)} of {spread.changes} changes"]
    if oldest is not None:
        told.append(f"the oldest of what waits has waited {in_words(waits)}")
    severity = Severity.OK
    if (spread is not None and spread.p95 > most) or waits > most:
        severity = Severity.WARN
    if (spread is not None and spread.p50 > most) or waits > 3 * most:
        severity = Severity.ERROR
    return Lateness(lane, severity, f"{lane} lane: {'; '.join(told) or 'nothing changed, nothing waits'} (limit {in_words(most)})")


def judge_lanes(
    limits: Mapping[Lane, timedelta], spreads: Mapping[Lane, Spread | None], oldest: Mapping[Lane, datetime | None], now: datetime
) -> tuple[Lateness, ...]:
    """The verdict on every lane that has a limit, in the order of the limits."""
    return tuple(judge_lane(lane, limit, spreads.get(lane), oldest.get(lane), now) for lane, limit in limits.items())


def in_words(seconds: float) -> str:
    """A duration for people: 0.4 s, 12 s, 4.2 min, 3.0 h, 2.5 days."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    for most, unit, name in ((120, 1, "s"), (2 * 3600, 60, "min"), (2 * 86400, 3600, "h")):
        if seconds < most:
            return f"{seconds:.0f} s" if unit == 1 else f"{seconds / unit:.1f} {name}"
    return f"{seconds / 86400:.1f} days"
