"""Figures for a monitor: what waits, what died, how old the oldest is. Each is read from an index of what waits, whatever the corpus."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select

from primer_core.events import EventState
from primer_core.stages import State
from primer_resources.catalog.database import Database
from primer_resources.catalog.schema import LIVE_STATES, events, in_states, jobs


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """`jobs`: (state, lane) → unfinished jobs; `oldest_event_time`: lane → event_time of the oldest of them; `dead`: reason → dead letters;
    `events`: source → (events that wait, when the oldest of them came, events that are dead)."""

    jobs: dict[tuple[str, str], int]
    oldest_event_time: dict[str, datetime]
    dead: dict[str, int]
    events: dict[str, tuple[int, datetime | None, int]]


class Figures:
    """Reads figures of some sources."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def queue(self, source_ids: Collection[str]) -> QueueFigures:
        """What waits and what died of these sources, from one snapshot."""
        mine = jobs.c.source_id.in_(sorted(source_ids))
        told = events.c.source_id.in_(sorted(source_ids))
        unfinished = (
            select(jobs.c.state, jobs.c.lane, func.count(), func.min(jobs.c.event_time))
            .where(in_states(jobs.c.state, LIVE_STATES), mine)
            .group_by(jobs.c.state, jobs.c.lane)
        )
        dead = select(jobs.c.reason, func.count()).where(in_states(jobs.c.state, [State.DEAD]), mine).group_by(jobs.c.reason)
        waiting = (
            select(events.c.source_id, func.count(), func.min(events.c.received_at))
            .where(in_states(events.c.state, [EventState.WAITING]), told)
            .group_by(events.c.source_id)
        )
        buried = (
            select(events.c.source_id, func.count()).where(in_states(events.c.state, [EventState.DEAD]), told).group_by(events.c.source_id)
        )
        counts: dict[tuple[str, str], int] = {}
        oldest: dict[str, datetime] = {}
        with self._db.read() as connection:
            for state, lane, count, since in connection.execute(unfinished):
                counts[(state, lane)] = count
                oldest[lane] = min(since, oldest.get(lane, since))
            reasons = {row[0] or "": row[1] for row in connection.execute(dead)}
            waits = {row[0]: (row[1], row[2]) for row in connection.execute(waiting)}
            ended = {row[0]: row[1] for row in connection.execute(buried)}
        by_source = {name: (*waits.get(name, (0, None)), ended.get(name, 0)) for name in sorted(source_ids)}
        return QueueFigures(counts, oldest, reasons, by_source)
