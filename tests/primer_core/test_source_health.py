"""A source that waits for its turn is told from one that stalls, and a failed listing is never taken for a good one."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primer_core.freshness import Severity
from primer_core.source_health import Health, SourceFacts, StallLimits, judge_source

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)
LIMITS = StallLimits(HOUR, 6 * HOUR)


def synced(ago: timedelta) -> SourceFacts:
    """A source whose last sync, a good one, ended so long ago."""
    ended = NOW - ago
    return SourceFacts("wiki", 20 * SECOND, True, ended, ended - SECOND, ended, ended, None, under_way=False)


def failed(ago: timedelta) -> SourceFacts:
    """A source that was good so long ago, and has failed since, just now too."""
    return replace(synced(ago), tried_at=NOW - 2 * SECOND, ended_at=NOW - SECOND, error="the server answers 503")


@pytest.mark.parametrize(
    ("facts", "health", "severity"),
    [
        (synced(10 * SECOND), Health.GOOD, Severity.OK),
        (failed(10 * SECOND), Health.FAILING, Severity.WARN),
        (failed(2 * HOUR), Health.STALLED, Severity.WARN),
        (failed(7 * HOUR), Health.STALLED, Severity.ERROR),
        (synced(7 * HOUR), Health.WAITING, Severity.WARN),
        (replace(synced(7 * HOUR), is_polled=False), Health.GOOD, Severity.OK),
        (replace(synced(2 * HOUR), poll_interval=HOUR), Health.GOOD, Severity.OK),
        (replace(failed(2 * HOUR), poll_interval=HOUR), Health.FAILING, Severity.WARN),
        (replace(synced(9 * HOUR), under_way=True, tried_at=NOW - 8 * HOUR, progressed_at=NOW - SECOND), Health.SYNCING, Severity.OK),
        (replace(synced(9 * HOUR), under_way=True, tried_at=NOW - 8 * HOUR, progressed_at=NOW - 2 * HOUR), Health.STALLED, Severity.WARN),
        (replace(synced(9 * HOUR), under_way=True, tried_at=NOW - 8 * HOUR, progressed_at=NOW - 7 * HOUR), Health.STALLED, Severity.ERROR),
        (replace(synced(10 * SECOND), tried_at=NOW - SECOND), Health.FAILING, Severity.WARN),
        (SourceFacts("new", 20 * SECOND, True, None, None, None, None, None, False), Health.NEVER, Severity.OK),
        (SourceFacts("new", 20 * SECOND, True, None, NOW - 3 * HOUR, NOW, NOW, "no such host", False), Health.STALLED, Severity.WARN),
    ],
    ids=lambda value: value.value if isinstance(value, Health | Severity) else None,
)
def test_how_a_source_stands(facts: SourceFacts, health: Health, severity: Severity) -> None:
    found = judge_source(facts, LIMITS, NOW)
    assert (found.health, found.severity) == (health, severity)
    assert found.reason


def test_the_reason_says_what_was_wrong_last() -> None:
    found = judge_source(failed(2 * HOUR), LIMITS, NOW)
    assert found.reason == "no good sync for 2.0 h; the last one: the server answers 503"
    assert found.silent == 2 * HOUR
    assert "nothing tried to read it" in judge_source(synced(2 * HOUR), LIMITS, NOW).reason
    assert "ended half-way" in judge_source(replace(synced(SECOND * 10), tried_at=NOW - SECOND), LIMITS, NOW).reason


@given(minutes=st.integers(0, 1000), polls=st.integers(1, 100), error=st.one_of(st.none(), st.just("down")))
def test_nothing_is_stalled_that_was_not_tried(minutes: int, polls: int, error: str | None) -> None:
    facts = replace(synced(timedelta(minutes=minutes)), poll_interval=timedelta(minutes=polls), error=error)
    found = judge_source(facts, LIMITS, NOW)
    assert (found.health is Health.STALLED) <= (error is not None)
    assert (found.severity is Severity.ERROR) <= (found.health is Health.STALLED)
