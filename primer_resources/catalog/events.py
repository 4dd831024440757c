"""The inbox of events: what was told of documents, kept until their source was asked. Telling the same event again changes nothing."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from random import Random
from typing import Any

from sqlalchemy import Connection, Row, and_, case, delete, select, update

from primer_core.events import EventState
from primer_core.retry import RetryPolicy, compute_backoff
from primer_core.stages import Operation
from primer_resources.catalog.database import Database
from primer_resources.catalog.generations import slices
from primer_resources.catalog.schema import events, in_states, sources
from primer_resources.catalog.upsert import insert_if_absent

UNTIL_KNOWN = timedelta(hours=1)
"""How often to look for a document whose permissions were told before it was known; adding it applies them at once."""


@dataclass(frozen=True, slots=True)
class NewEvent:
    """What was told. `path` is where the document stood then and `doc_id` its id where it was known; `acl_groups` of an acl event are the
    groups that may read it (none is nobody), or None where the document goes back to its source's own rules."""

    source_id: str
    event_id: str
    path: str
    doc_id: str | None
    op: Operation
    source_version: str
    acl_groups: tuple[str, ...] | None
    content_uri: str | None
    event_time: datetime


@dataclass(frozen=True, slots=True)
class Event:
    """An event in the inbox."""

    seq: int
    source_id: str
    event_id: str
    path: str
    doc_id: str | None
    op: Operation
    source_version: str
    acl_groups: tuple[str, ...] | None
    event_time: datetime
    received_at: datetime
    attempts: int
    error: str | None


_COLUMNS = [events.c[field.name] for field in fields(Event)]
_WAITS = in_states(events.c.state, [EventState.WAITING])
_IS_DEAD = in_states(events.c.state, [EventState.DEAD])


def _event(row: Row[Any]) -> Event:
    values = dict(row._mapping)
    groups = values["acl_groups"]
    return Event(**values | {"op": Operation(values["op"]), "acl_groups": None if groups is None else tuple(groups)})


class Events:
    """Takes events in, finds those that are due, and ends them."""

    def __init__(self, database: Database, policy: RetryPolicy, random: Random) -> None:
        self._db = database
        self._policy = policy
        self._random = random

    def receive(self, connection: Connection, told: Sequence[NewEvent]) -> list[Event]:
        """Inside a transaction: keep what was not told before, and return that. In one order, so that two batches with the same events
        do not wait for each other."""
        now = self._db.now()
        fresh = []
        for event in sorted(told, key=lambda event: (event.source_id, event.event_id)):
            groups = None if event.acl_groups is None else list(event.acl_groups)
            values = {field.name: getattr(event, field.name) for field in fields(NewEvent)} | {"op": event.op.value, "acl_groups": groups}
            statement = insert_if_absent(self._db, events, ("source_id", "event_id"))
            values |= {"received_at": now, "not_before": now, "state": EventState.WAITING.value}
            row = connection.execute(statement.values(**values).returning(*_COLUMNS)).one_or_none()
            if row is not None:
                fresh.append(_event(row))
        return fresh

    def due(self, source_id: str, received_until: datetime, after: int, limit: int) -> list[Event]:
        """Events of a source that are due, received until then, in the order they came, from behind `after` (a seq) on."""
        statement = (
            select(*_COLUMNS)
            .where(_WAITS, events.c.source_id == source_id, events.c.not_before <= self._db.now())
            .where(events.c.received_at <= received_until, events.c.seq > after)
            .order_by(events.c.seq)
            .limit(limit)
        )
        with self._db.read() as connection:
            return [_event(row) for row in connection.execute(statement)]

    def due_sources(self) -> list[str]:
        """The sources for which an event is due."""
        statement = (
            select(events.c.source_id)
            .distinct()
            .join(sources, sources.c.source_id == events.c.source_id)
            .where(_WAITS, events.c.not_before <= self._db.now(), sources.c.removed_at.is_(None))
            .order_by(events.c.source_id)
        )
        with self._db.read() as connection:
            return list(connection.execute(statement).scalars())

    def waiting_acls(self, connection: Connection, source_id: str, path: str) -> list[Event]:
        """Inside a transaction: permissions that were told of a path before a document was known there, oldest first."""
        mine = and_(events.c.source_id == source_id, events.c.path == path, events.c.op == Operation.ACL)
        return [
            _event(row) for row in connection.execute(select(*_COLUMNS).where(_WAITS, mine).order_by(events.c.event_time, events.c.seq))
        ]

    def finish(self, connection: Connection, seqs: Collection[int]) -> None:
        """Inside the transaction of what they caused: these events are done."""
        for part in slices(sorted(seqs)):
            connection.execute(
                update(events)
                .where(events.c.seq.in_(part), _WAITS)
                .values(state=EventState.DONE, error=None, finished_at=self._db.clock.now())
            )

    def put_back(self, connection: Connection, event: Event, error: str, last: EventState) -> None:
        """Inside a transaction: an attempt is spent, and the event waits for its next one; after the last it is `last`, dead or done."""
        now = self._db.now()
        wait = compute_backoff(self._policy, event.attempts + 1, self._random)
        over = events.c.attempts + 1 >= self._policy.max_attempts
        connection.execute(
            update(events)
            .where(events.c.seq == event.seq, _WAITS, events.c.attempts == event.attempts)
            .values(
                attempts=events.c.attempts + 1,
                not_before=now + wait,
                error=error,
                state=case((over, last.value), else_=EventState.WAITING.value),
                finished_at=case((over, now), else_=None),
            )
        )

    def bury(self, connection: Connection, seq: int, error: str) -> None:
        """Inside a transaction: the event cannot be followed, however often it is tried."""
        buried = update(events).where(events.c.seq == seq, _WAITS)
        connection.execute(buried.values(state=EventState.DEAD, error=error, finished_at=self._db.clock.now()))

    def put_off(self, connection: Connection, seqs: Collection[int], wait: timedelta, error: str) -> None:
        """Inside a transaction: these events wait, no attempt spent."""
        for part in slices(sorted(seqs)):
            connection.execute(update(events).where(events.c.seq.in_(part), _WAITS).values(not_before=self._db.now() + wait, error=error))

    def dead(self, source_ids: Collection[str], after: int, limit: int) -> list[Event]:
        """Dead events of the sources in order, from behind `after` (a seq) on."""
        chosen = and_(_IS_DEAD, events.c.source_id.in_(sorted(source_ids)), events.c.seq > after)
        with self._db.read() as connection:
            return [_event(row) for row in connection.execute(select(*_COLUMNS).where(chosen).order_by(events.c.seq).limit(limit))]

    def retry(self, seqs: Collection[int]) -> int:
        """An operator's retry of dead events, with fresh attempts. Returns how many."""
        retried = update(events).where(events.c.seq.in_(sorted(seqs)), _IS_DEAD)
        values = {"state": EventState.WAITING, "attempts": 0, "not_before": self._db.now(), "error": None, "finished_at": None}
        with self._db.begin() as connection:
            return connection.execute(retried.values(**values)).rowcount

    def prune(self, older_than: datetime, limit: int) -> int:
        """Delete up to `limit` events that were done before a time; one that is told again then is looked at again. Returns how many."""
        done = in_states(events.c.state, [EventState.DONE])
        chosen = select(events.c.seq).where(done, events.c.finished_at < older_than).limit(limit)
        with self._db.begin() as connection:
            return connection.execute(delete(events).where(events.c.seq.in_(chosen))).rowcount
