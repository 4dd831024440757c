"""Freshness: percentiles that are right at their edges, and alerts that neither sleep nor cry wolf."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primer_core.freshness import Severity, Spread, in_words, judge_lane, judge_lanes, percentile, worst
from primer_core.lanes import Lane

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LIMIT = timedelta(minutes=5)
MINUTE = timedelta(minutes=1)
SECONDS = st.lists(st.floats(0, 1e9, allow_nan=False), min_size=1, max_size=200)


@given(values=SECONDS, share=st.floats(0.001, 1))
def test_a_percentile_is_the_least_value_that_so_many_do_not_pass(values: list[float], share: float) -> None:
    ordered = sorted(values)
    found = percentile(ordered, share)
    assert found in ordered
    assert sum(value <= found for value in ordered) >= share * len(ordered) - 1e-6
    assert sum(value < found for value in ordered) < share * len(ordered) + 1e-6


@given(values=SECONDS)
def test_a_spread_does_not_depend_on_the_order(values: list[float]) -> None:
    spread = Spread.of(values)
    assert spread == Spread.of(reversed(values))
    assert spread is not None
    assert spread.p50 <= spread.p95 <= spread.longest == max(values)


def test_nineteen_in_twenty_are_in_the_p95_and_the_twentieth_is_not() -> None:
    assert Spread.of([1.0] * 19 + [900.0]) == Spread(20, 1.0, 1.0, 900.0)
    assert Spread.of([1.0] * 18 + [900.0] * 2) == Spread(20, 1.0, 900.0, 900.0)
    assert Spread.of([]) is None
    with pytest.raises(ValueError, match="at least one value"):
        percentile([], 0.5)
    with pytest.raises(ValueError, match="share 0"):
        percentile([1.0], 0)


@pytest.mark.parametrize(
    ("seconds", "waits", "wanted"),
    [
        ([], None, Severity.OK),
        ([300.0] * 20, None, Severity.OK),
        ([1.0] * 18 + [301.0] * 2, None, Severity.WARN),
        ([301.0] * 20, None, Severity.ERROR),
        ([1.0] * 20, MINUTE * 4, Severity.OK),
        ([1.0] * 20, MINUTE * 6, Severity.WARN),
        ([], MINUTE * 16, Severity.ERROR),
    ],
)
def test_a_lane_is_late_by_what_it_finished_and_by_what_it_leaves(seconds: list[float], waits: timedelta | None, wanted: Severity) -> None:
    verdict = judge_lane(Lane.FAST, LIMIT, Spread.of(seconds), None if waits is None else NOW - waits, NOW)
    assert verdict.severity is wanted
    assert "limit 5.0 min" in verdict.words


def test_every_lane_has_its_own_limit() -> None:
    spread = Spread.of([600.0])
    limits = {Lane.FAST: LIMIT, Lane.SLOW: LIMIT * 6}
    verdicts = judge_lanes(limits, {Lane.FAST: spread, Lane.SLOW: spread}, {}, NOW)
    assert [(each.lane, each.severity) for each in verdicts] == [(Lane.FAST, Severity.ERROR), (Lane.SLOW, Severity.OK)]
    assert worst(each.severity for each in verdicts) is Severity.ERROR
    assert worst([]) is Severity.OK


def test_durations_read_well() -> None:
    assert [in_words(s) for s in (0.44, 12, 119, 252, 3 * 3600, 60 * 3600)] == ["0.4 s", "12 s", "119 s", "4.2 min", "3.0 h", "2.5 days"]
