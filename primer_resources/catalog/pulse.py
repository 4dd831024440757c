"""The pulse of a deployment: freshness, queue and sources as the catalog shows them now. Every query is over what waits, over the jobs
that finished within a window, or over the sources, never over the corpus. What `primer status`, the asset checks and /metrics show."""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import func, select

from primer_core.freshness import Lateness, Severity, Spread, judge_lanes, worst
from primer_core.lanes import Lane
from primer_core.source_health import PulseLimits, SourceFacts, SourceHealth, StallLimits, judge_source
from primer_core.stages import State
from primer_resources.catalog.database import Database
from primer_resources.catalog.schema import LIVE_STATES, in_states, jobs
from primer_resources.catalog.sources import Source, Sources

HISTORY = timedelta(days=3)
"""How long finished jobs are kept: no window can be longer."""
PAGE = 10_000


@dataclass(frozen=True, slots=True)
class Freshness:
    """How long the changes of a source in a lane took, in seconds: from the event to the flip (`to_rows`), and, in the source's own words,
    from the time that it gave the event (`by_source_clock`, which is years for an old file that was moved in)."""

    source_id: str
    lane: Lane
    to_rows: Spread
    by_source_clock: Spread


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """How many jobs of a lane stand in a state, and from when the oldest of them counts."""

    lane: Lane
    state: State
    jobs: int
    oldest: datetime


@dataclass(frozen=True, slots=True)
class Pulse:
    """All figures at one moment. `lanes` are over all sources: spread and the verdict of each."""

    at: datetime
    index_version: str
    window: timedelta
    freshness: tuple[Freshness, ...]
    spreads: Mapping[Lane, Spread]
    queue: tuple[QueueDepth, ...]
    lanes: tuple[Lateness, ...]
    sources: tuple[SourceHealth, ...]

    @property
    def lateness(self) -> Severity:
        """The worst lane."""
        return worst(lane.severity for lane in self.lanes)

    @property
    def stalling(self) -> Severity:
        """The worst source."""
        return worst(source.severity for source in self.sources)

    def to_json(self) -> dict[str, Any]:
        """The figures with stable names; durations in seconds."""
        return {
            "at": self.at.isoformat(),
            "index_version": self.index_version,
            "window_s": self.window.total_seconds(),
            "freshness": [
                {
                    "source": row.source_id,
                    "lane": row.lane.value,
                    "changes": row.to_rows.changes,
                    "p50_s": round(row.to_rows.p50, 2),
                    "p95_s": round(row.to_rows.p95, 2),
                    "longest_s": round(row.to_rows.longest, 2),
                    "p50_by_source_clock_s": round(row.by_source_clock.p50, 2),
                    "p95_by_source_clock_s": round(row.by_source_clock.p95, 2),
                }
                for row in self.freshness
            ],
            "queue": [
                {
                    "lane": row.lane.value,
                    "state": row.state.value,
                    "jobs": row.jobs,
                    "oldest_s": round((self.at - row.oldest).total_seconds(), 2),
                }
                for row in self.queue
            ],
            "lanes": [{"lane": lane.lane.value, "severity": lane.severity.value, "reason": lane.words} for lane in self.lanes],
            "sources": sources_to_json(self.sources),
        }


def sources_to_json(sources: Iterable[SourceHealth]) -> list[dict[str, Any]]:
    """How sources stand, with stable names; `silent_s` is null before the first good sync."""
    return [
        {
            "source": source.source_id,
            "health": source.health.value,
            "severity": source.severity.value,
            "reason": source.reason,
            "silent_s": None if source.silent is None else round(source.silent.total_seconds(), 2),
        }
        for source in sources
    ]


class Pulses:
    """Takes the pulse."""

    def __init__(self, database: Database, sources: Sources) -> None:
        self._db = database
        self._sources = sources

    def take(self, index_version: str, window: timedelta, limits: PulseLimits) -> Pulse:
        """The pulse of an index version now; freshness is of the jobs that ended within the window (at most HISTORY)."""
        now = self._db.now()
        freshness, spreads = self._freshness(index_version, now - min(window, HISTORY))
        queue = self._queue(index_version)
        oldest: dict[Lane, datetime | None] = {
            lane: min((row.oldest for row in queue if row.lane is lane), default=None) for lane in limits.lanes
        }
        lanes = judge_lanes(limits.lanes, spreads, oldest, now)
        return Pulse(now, index_version, window, freshness, spreads, queue, lanes, self.sources(limits.stalled))

    def sources(self, limits: StallLimits) -> tuple[SourceHealth, ...]:
        """How every source of an active tenant stands, by name: nobody reads the others."""
        now = self._db.now()
        return tuple(judge_source(facts_of(source, now), limits, now) for source in self._sources.active())

    def _freshness(self, index_version: str, since: datetime) -> tuple[tuple[Freshness, ...], dict[Lane, Spread]]:
        rows: dict[tuple[str, Lane], array[float]] = defaultdict(lambda: array("d"))
        told: dict[tuple[str, Lane], array[float]] = defaultdict(lambda: array("d"))
        statement = select(jobs.c.source_id, jobs.c.lane, jobs.c.event_time, jobs.c.changed_at, jobs.c.finished_at).where(
            jobs.c.index_version == index_version,
            jobs.c.finished_at >= since,
            in_states(jobs.c.state, [State.INDEXED]),
            jobs.c.changed_at.is_not(None),
        )
        with self._db.read() as connection:
            for row in connection.execution_options(yield_per=PAGE).execute(statement):
                key = (row.source_id, Lane(row.lane))
                rows[key].append((row.finished_at - row.changed_at).total_seconds())
                told[key].append((row.finished_at - row.event_time).total_seconds())
        found = []
        by_lane: dict[Lane, array[float]] = defaultdict(lambda: array("d"))
        for key in sorted(rows):
            by_lane[key[1]].extend(rows[key])
            to_rows, by_clock = Spread.of(rows[key]), Spread.of(told[key])
            if to_rows is not None and by_clock is not None:
                found.append(Freshness(*key, to_rows, by_clock))
        spreads = {lane: spread for lane, seconds in by_lane.items() if (spread := Spread.of(seconds)) is not None}
        return tuple(found), spreads

    def _queue(self, index_version: str) -> tuple[QueueDepth, ...]:
        counts = func.coalesce(jobs.c.changed_at, jobs.c.created_at)
        statement = (
            select(jobs.c.lane, jobs.c.state, func.count().label("n"), func.min(counts, type_=jobs.c.created_at.type).label("oldest"))
            .where(jobs.c.index_version == index_version, in_states(jobs.c.state, LIVE_STATES))
            .group_by(jobs.c.lane, jobs.c.state)
        )
        with self._db.read() as connection:
            found = [QueueDepth(Lane(row.lane), State(row.state), row.n, row.oldest) for row in connection.execute(statement)]
        order = {state: place for place, state in enumerate(State)}
        return tuple(sorted(found, key=lambda row: (row.lane, order[row.state])))


def facts_of(source: Source, now: datetime) -> SourceFacts:
    """What the catalog's row of a source says of its syncs."""
    return SourceFacts(
        source_id=source.source_id,
        poll_interval=timedelta(seconds=source.poll_interval_s),
        is_polled=source.sync == "poll",
        good_at=source.last_good_at,
        tried_at=source.turn_began_at,
        ended_at=source.last_synced_at,
        progressed_at=source.progressed_at,
        error=source.last_error,
        under_way=source.lease_until is not None and source.lease_until >= now,
    )
