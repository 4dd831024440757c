"""Times without a zone are refused, and items that share a second are neither lost nor repeated."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primer_core.source_time import EPOCH, from_ns, parse_time, to_ns
from primer_core.time_cursor import SETTLED, TimeCursor

NOON = datetime(2026, 3, 29, 12, tzinfo=UTC)


def test_a_time_without_a_zone_is_refused_wherever_it_comes_in() -> None:
    naive = datetime(2026, 3, 29, 12)  # noqa: DTZ001 - the very thing
    for make in (lambda: parse_time("2026-03-29T12:00:00"), lambda: TimeCursor(naive), lambda: to_ns(naive)):
        with pytest.raises(ValueError, match="has no zone"):
            make()
    with pytest.raises(ValueError, match="no ISO 8601 time"):
        parse_time("yesterday")


def test_a_zone_of_half_hours_is_the_same_moment_in_utc() -> None:
    assert parse_time("2026-03-29T17:30:00+05:30") == NOON
    assert parse_time("2026-03-29T12:00:00Z").utcoffset() == timedelta(0)


@given(st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=30))]), min_value=datetime(1970, 1, 2)))  # noqa: DTZ001
def test_nanoseconds_keep_a_moment(moment: datetime) -> None:
    assert from_ns(to_ns(moment)) == moment


def test_a_cursor_survives_the_catalog() -> None:
    cursor = TimeCursor(NOON, {"a": "1"})
    assert TimeCursor.from_json(cursor.to_json()) == cursor


def test_an_item_whose_second_may_not_be_over_is_read_again() -> None:
    fresh = TimeCursor(EPOCH).after("a", "1", NOON, now=NOON + timedelta(seconds=1))
    assert not fresh.has_seen("a", "1", NOON)
    settled = TimeCursor(EPOCH).after("a", "1", NOON, now=NOON + SETTLED)
    assert settled.has_seen("a", "1", NOON)
    assert not settled.has_seen("a", "2", NOON)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=30), st.integers(1, 4))
def test_items_that_come_late_within_a_second_are_each_taken_once(arrivals: Sequence[tuple[int, int]], page: int) -> None:
    """Items arrive in order of their second; after each round the feed is read from its cursor, closed at the start."""
    rows: list[tuple[datetime, str]] = []
    taken: list[str] = []
    cursor = TimeCursor(EPOCH)
    for number, (second, _) in enumerate(sorted(arrivals)):
        rows.append((NOON + timedelta(seconds=second), f"item-{number}"))
        if number % page and number < len(arrivals) - 1:
            continue
        for at, item in [row for row in rows if row[0] >= cursor.since and not cursor.has_seen(row[1], "", row[0])]:
            taken.append(item)
            cursor = cursor.after(item, "", at, now=at + timedelta(hours=1))
    assert taken == [item for _, item in rows]
