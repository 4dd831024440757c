"""Turns of sources: who hangs or fails slows nobody, and everybody gets a turn."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from primer_core.source_health import LONG_TURN, SourceFacts, is_slow
from primer_sensors.source_turns import choose_sources

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def quick(name: str, ended_s: int = 30) -> SourceFacts:
    """A source that was read well in a second."""
    ended = NOW - ended_s * SECOND
    return SourceFacts(name, 20 * SECOND, True, ended, ended - SECOND, ended, ended, None, under_way=False)


def failing(name: str) -> SourceFacts:
    """A source whose last sync failed."""
    return replace(quick(name), good_at=NOW - timedelta(hours=1), error="connection refused")


def hanging(name: str) -> SourceFacts:
    """A quick source whose sync has been under way for minutes."""
    return replace(quick(name, 600), tried_at=NOW - timedelta(minutes=5), under_way=True)


def test_one_that_hangs_leaves_the_places_to_twenty_quick_ones_and_each_gets_its_turn() -> None:
    waiting = {f"quick-{n:02}": quick(f"quick-{n:02}", 100 - n) for n in range(20)}
    served: list[str] = []
    while waiting:
        launched = choose_sources(list(waiting.values()), [hanging("slow")], NOW, places=4)
        assert len(launched) == 3
        assert launched == sorted(waiting, key=lambda name: waiting[name].ended_at or NOW)[:3]
        served += launched
        for name in launched:
            del waiting[name]
        if len(waiting) < 3:
            break
    assert served == [f"quick-{n:02}" for n in range(len(served))]
    assert len(served) >= 18


def test_those_that_fail_or_were_never_read_share_half_of_the_places() -> None:
    never = [replace(quick(f"new-{n}"), good_at=None, tried_at=None, ended_at=None) for n in range(5)]
    due = [*never, *(failing(f"bad-{n}") for n in range(5)), *(quick(f"quick-{n}") for n in range(5))]
    assert choose_sources(due, [], NOW, places=4) == ["new-0", "new-1", "quick-0", "quick-1"]


def test_quick_ones_go_on_while_all_places_hang_and_not_without_end() -> None:
    due = [quick(f"quick-{n}") for n in range(9)]
    assert choose_sources(due, [hanging(f"hang-{n}") for n in range(4)], NOW, places=4) == ["quick-0", "quick-1"]
    assert choose_sources(due, [hanging(f"hang-{n}") for n in range(8)], NOW, places=4) == []
    assert choose_sources([failing("bad")], [hanging(f"hang-{n}") for n in range(2)], NOW, places=4) == []


def test_a_long_turn_makes_a_source_slow_until_a_short_one() -> None:
    long = replace(quick("big"), tried_at=NOW - LONG_TURN * 2)
    assert is_slow(long, NOW)
    assert not is_slow(quick("big"), NOW)


KINDS = st.sampled_from([quick, failing, hanging])


@given(due=st.lists(KINDS, max_size=12), busy=st.lists(KINDS, max_size=12), places=st.integers(2, 6))
def test_the_slow_never_take_a_quick_ones_place(due: list, busy: list, places: int) -> None:  # type: ignore[type-arg]
    waiting = [make(f"due-{n}") for n, make in enumerate(due)]
    running = [make(f"busy-{n}") for n, make in enumerate(busy)]
    by_id = {facts.source_id: facts for facts in waiting}
    chosen = choose_sources(waiting, running, NOW, places)
    slow = [name for name in chosen if is_slow(by_id[name], NOW)]
    assert len(slow) <= places // 2
    assert len(running) + len(chosen) <= max(len(running), places * 2)
    quick_busy = sum(not is_slow(facts, NOW) for facts in running)
    if any(not is_slow(facts, NOW) for facts in waiting) and quick_busy < places - places // 2 and len(running) < places:
        assert len(chosen) > len(slow), "a quick one that is due has a place"
