"""Whether a source is in step: well, being read, waiting for its turn, or stalled. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from primer_core.freshness import Severity, in_words
from primer_core.lanes import Lane

LONG_TURN = timedelta(seconds=60)
"""A sync that took longer makes its source a slow one: few of these run at once, so that the quick ones always have a place."""
POLLS_MISSED = 3
"""A source that is polled seldom is late only when so many of its polls brought nothing."""


class Health(StrEnum):
    """How a source stands. `waiting` is nobody's fault but the machine's: it was not tried. `stalled` was tried and does not get on."""

    GOOD = "good"
    SYNCING = "syncing"
    WAITING = "waiting"
    FAILING = "failing"
    STALLED = "stalled"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """What the catalog knows of a source's syncs. `good_at` is when the last one ended without a problem, `tried_at` when the newest one
    began, `ended_at` when the last one ended however it went, `error` what was wrong then, `progressed_at` when the newest one last
    committed something, `under_way` whether it still holds the source."""

    source_id: str
    poll_interval: timedelta
    is_polled: bool
    good_at: datetime | None
    tried_at: datetime | None
    ended_at: datetime | None
    progressed_at: datetime | None
    error: str | None
    under_way: bool


@dataclass(frozen=True, slots=True)
class StallLimits:
    """Without a good sync for `warn` a source is stalled, for `error` it is an error."""

    warn: timedelta
    error: timedelta


@dataclass(frozen=True, slots=True)
class PulseLimits:
    """When a lane is late and a source stalled."""

    lanes: Mapping[Lane, timedelta]
    stalled: StallLimits


@dataclass(frozen=True, slots=True)
class SourceHealth:
    """The verdict on a source. `silent` is the time since its last good sync, None where there was none yet."""

    source_id: str
    health: Health
    severity: Severity
    reason: str
    silent: timedelta | None


def judge_source(facts: SourceFacts, limits: StallLimits, now: datetime) -> SourceHealth:
    """How a source stands at `now`.

    What is late is told apart by what was tried since the last good sync: nothing (it waits for its turn), a sync that is under way and
    gets on, one that commits nothing, or ones that end with an error.
    """
    silent = None if facts.good_at is None else now - facts.good_at
    late_from = max(limits.warn, facts.poll_interval * POLLS_MISSED)
    if facts.under_way:
        return _under_way(facts, late_from, silent, limits, now)
    error = facts.error or ("its run was ended half-way" if _was_cut_off(facts) else None)
    if error is not None:
        since = facts.good_at or facts.tried_at or now
        stalled = now - since > late_from
        when = "no good sync yet" if silent is None else f"no good sync for {in_words(silent.total_seconds())}"
        severity = _severity(now - since, late_from, limits) if stalled else Severity.WARN
        return SourceHealth(
            facts.source_id, Health.STALLED if stalled else Health.FAILING, severity, f"{when}; the last one: {error}", silent
        )
    if silent is None:
        words = "it was not read yet; the sensors or `primer sync` do it"
        return SourceHealth(facts.source_id, Health.NEVER, Severity.OK, words, silent)
    if facts.is_polled and silent > late_from:
        words = f"it waits for its turn for {in_words((silent - facts.poll_interval).total_seconds())}: nothing tried to read it. "
        words += "See that the daemon runs, that source_sync_sensor is on, and which runs hold the places"
        return SourceHealth(facts.source_id, Health.WAITING, Severity.WARN, words, silent)
    return SourceHealth(facts.source_id, Health.GOOD, Severity.OK, "in step", silent)


def _was_cut_off(facts: SourceFacts) -> bool:
    """Whether the newest sync neither holds the source nor came to an end."""
    ended = facts.ended_at or facts.good_at
    return facts.tried_at is not None and (ended is None or facts.tried_at > ended)


def _under_way(facts: SourceFacts, late_from: timedelta, silent: timedelta | None, limits: StallLimits, now: datetime) -> SourceHealth:
    began, moved = facts.tried_at or now, facts.progressed_at or facts.tried_at or now
    if now - moved > late_from:
        words = f"a sync is under way for {in_words((now - began).total_seconds())} and committed nothing for "
        words += f"{in_words((now - moved).total_seconds())}: the source may hang; end its run and look at the source"
        return SourceHealth(facts.source_id, Health.STALLED, _severity(now - moved, late_from, limits), words, silent)
    words = f"being read for {in_words((now - began).total_seconds())}"
    return SourceHealth(facts.source_id, Health.SYNCING, Severity.OK, words, silent)


def _severity(late: timedelta, late_from: timedelta, limits: StallLimits) -> Severity:
    return Severity.ERROR if late > max(limits.error, late_from) else Severity.WARN


def is_slow(facts: SourceFacts, now: datetime) -> bool:
    """Whether a source is one of the slow: it failed last, was never read well, or its newest sync took long, or has so far."""
    if facts.under_way:
        return facts.tried_at is not None and now - facts.tried_at > LONG_TURN
    if facts.good_at is None or facts.error is not None:
        return True
    return facts.tried_at is not None and facts.ended_at is not None and facts.ended_at - facts.tried_at > LONG_TURN
