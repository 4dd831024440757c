"""Sources: what to read from where, when it was last read, and who is reading it now."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row, case, false, literal, or_, select, update

from primer_core.failures import LeaseLost, PrimerError
from primer_resources.catalog.database import Database
from primer_resources.catalog.schema import accounts, sources
from primer_resources.catalog.upsert import insert_or_update

POLL, WEBHOOK = "poll", "webhook"


@dataclass(frozen=True, slots=True)
class Source:
    """A source as it was configured, and how its last sync went. `held_digest` names the deletes that were held back then;
    `last_began_at` is when the last sync that went well began, `last_reconciled_at` when the last complete listing did.
    `last_good_at` is when the last one ended that met no problem at all; `turn_began_at`, `progressed_at` and `lease_until` are of the
    newest sync: when it took the source, when it last committed something, and until when it holds it. `cursor` is where the source's
    change feed goes on; `credentials_ref` and `webhook_secret_ref` are where its secrets are (never the secrets). `asked_at` is when
    somebody asked for a sync, until one that began later went well. `sync` is "poll", or "webhook" where events tell of changes and only
    the full listing has a time of its own."""

    source_id: str
    tenant_id: str
    library: str
    type: str
    settings: Mapping[str, Any]
    sync: str
    poll_interval_s: int
    scan: int = 0
    held_digest: str | None = None
    held_count: int = 0
    held_at: datetime | None = None
    last_synced_at: datetime | None = None
    last_began_at: datetime | None = None
    last_error: str | None = None
    removed_at: datetime | None = None
    credentials_ref: str | None = None
    cursor: Mapping[str, Any] | None = None
    last_reconciled_at: datetime | None = None
    last_good_at: datetime | None = None
    turn_began_at: datetime | None = None
    progressed_at: datetime | None = None
    lease_until: datetime | None = None
    webhook_secret_ref: str | None = None
    asked_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Listed:
    """What a full listing gave: the deletes that it held back (digest, count), whether it was complete, and where the feed goes on."""

    held_digest: str | None
    held_count: int
    is_complete: bool
    cursor: Mapping[str, Any] | None


_COLUMNS = [sources.c[field.name] for field in fields(Source)]


def _source(row: Row[Any]) -> Source:
    return Source(**row._mapping)


def _identity(source: Source) -> tuple[object, ...]:
    return (source.type, dict(source.settings), source.credentials_ref, source.webhook_secret_ref, source.sync)


def is_due(source: Source, now: datetime, listing_interval: timedelta, held_wait: timedelta) -> bool:
    """Whether the source is to be read, whatever events wait for it: somebody asked, or its poll interval has passed, or, where it tells of
    changes by webhook, a full listing is due (`listing_interval`), or one that confirms deletes held for `held_wait`. Between two tries
    the poll interval passes in any case."""
    if source.last_synced_at is None or (source.asked_at is not None and source.asked_at > source.last_synced_at):
        return True
    if now < source.last_synced_at + timedelta(seconds=source.poll_interval_s):
        return False
    if source.sync == POLL or source.asked_at is not None:
        return True
    if source.last_reconciled_at is None or now >= source.last_reconciled_at + listing_interval:
        return True
    return source.held_at is not None and now >= source.held_at + held_wait


def rests(source: Source, now: datetime) -> bool:
    """Whether the last sync met a problem less than a poll interval ago: events alone do not start the next one before that."""
    if source.last_error is None or source.last_synced_at is None:
        return False
    return now < source.last_synced_at + timedelta(seconds=source.poll_interval_s)


class Sources:
    """Adds, finds and removes sources, and leases one to the run that syncs it."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def add(self, source: Source) -> bool:
        """Add a source, or bring a removed one back with new settings. Returns False where the very same one is there already.

        Raises PrimerError where the name stands for another one.
        """
        values = {field.name: getattr(source, field.name) for field in fields(Source)} | {"settings": dict(source.settings)}
        changed = (
            *("library", "type", "settings", "credentials_ref", "webhook_secret_ref", "sync", "poll_interval_s", "removed_at"),
            *("last_synced_at", "last_began_at", "last_reconciled_at", "last_error"),
            *("last_good_at", "turn_began_at", "progressed_at"),
        )
        statement = insert_or_update(self._db, sources, changed, where=sources.c.removed_at.is_not(None)).values(**values)
        with self._db.begin() as connection:
            if connection.execute(statement.returning(sources.c.source_id)).one_or_none() is not None:
                return True
        present = self.get(source.source_id)
        if _identity(present) == _identity(source):
            return False
        raise PrimerError(f"source {source.source_id!r} exists already with other settings; remove it first, or choose another --name")

    def change(self, source: Source) -> None:
        """Give a source other settings; its documents stay, and its next sync is due at once and is a full listing."""
        names = ("library", "settings", "credentials_ref", "webhook_secret_ref", "sync", "poll_interval_s")
        values = {name: getattr(source, name) for name in names} | {"settings": dict(source.settings)}
        values |= {"last_synced_at": None, "last_reconciled_at": None, "last_error": None}
        with self._db.begin() as connection:
            connection.execute(update(sources).where(sources.c.source_id == source.source_id).values(**values))

    def make_due(self, connection: Connection, source_id: str, in_full: bool) -> datetime:
        """Inside a transaction: the source's next sync is due at once, as a full listing if so asked. Returns when that was asked."""
        asked_at = self._db.now()
        values = {"asked_at": asked_at, **({"last_reconciled_at": None} if in_full else {})}
        connection.execute(update(sources).where(sources.c.source_id == source_id).values(**values))
        return asked_at

    def list_next(self, source_ids: Collection[str]) -> None:
        """Make the next sync of these sources a full listing: a feed does not tell again of documents that could not be read."""
        with self._db.begin() as connection:
            connection.execute(update(sources).where(sources.c.source_id.in_(sorted(source_ids))).values(last_reconciled_at=None))

    def find(self, source_id: str) -> Source | None:
        """The source, removed or not; None where there never was one."""
        with self._db.read() as connection:
            row = connection.execute(select(*_COLUMNS).where(sources.c.source_id == source_id)).one_or_none()
        return None if row is None else _source(row)

    def get(self, source_id: str) -> Source:
        """The source. Raises PrimerError where there is none of that name."""
        source = self.find(source_id)
        if source is None or source.removed_at is not None:
            known = ", ".join(each.source_id for each in self.all()) or "none"
            raise PrimerError(f"source {source_id!r} is unknown; known sources: {known}. Add one with `primer source add PATH`")
        return source

    def all(self) -> list[Source]:
        """All sources that are not removed, by name."""
        with self._db.read() as connection:
            rows = connection.execute(select(*_COLUMNS).where(sources.c.removed_at.is_(None)).order_by(sources.c.source_id)).all()
        return [_source(row) for row in rows]

    def of_tenant(self, tenant_id: str) -> list[Source]:
        """All sources of a tenant, those that were removed too, by name."""
        statement = select(*_COLUMNS).where(sources.c.tenant_id == tenant_id).order_by(sources.c.source_id)
        with self._db.read() as connection:
            return [_source(row) for row in connection.execute(statement)]

    def active(self) -> list[Source]:
        """The sources that are read: those that are not removed and whose tenant is active, by name."""
        statement = select(*_COLUMNS).join(accounts).where(sources.c.removed_at.is_(None), accounts.c.active)
        with self._db.read() as connection:
            return [_source(row) for row in connection.execute(statement.order_by(sources.c.source_id))]

    def remove(self, source_id: str) -> None:
        """Mark a source as removed; its documents are tombstoned by the caller."""
        with self._db.begin() as connection:
            connection.execute(update(sources).where(sources.c.source_id == source_id).values(removed_at=self._db.clock.now()))

    def acquire(self, source_id: str, owner: str, lease: timedelta) -> tuple[int, int] | None:
        """Lease the source to one run and count its scan up. Returns (scan, epoch), or None where another run holds it."""
        now = self._db.now()
        statement = (
            update(sources)
            .where(sources.c.source_id == source_id)
            .where(or_(sources.c.lease_owner.is_(None), sources.c.lease_until < now, sources.c.lease_owner == owner))
            .values(lease_owner=owner, lease_until=now + lease, lease_epoch=sources.c.lease_epoch + 1, scan=sources.c.scan + 1)
            .values(turn_began_at=now, progressed_at=now)
            .returning(sources.c.scan, sources.c.lease_epoch)
        )
        with self._db.begin() as connection:
            row = connection.execute(statement).one_or_none()
        return None if row is None else (row.scan, row.lease_epoch)

    def renew(self, owner: str, lease: timedelta) -> int:
        """Hold the owner's sources for another lease. Returns how many it still holds."""
        now = self._db.now()
        statement = update(sources).where(sources.c.lease_owner == owner, sources.c.lease_until >= now).values(lease_until=now + lease)
        with self._db.begin() as connection:
            return connection.execute(statement).rowcount

    def release(self, owner: str) -> None:
        """Give the owner's sources back where its sync stops half-way."""
        with self._db.begin() as connection:
            connection.execute(update(sources).where(sources.c.lease_owner == owner).values(lease_owner=None, lease_until=None))

    def give_back(self, owner: str) -> None:
        """Give the owner's sources back where it took no turn: its newest sync is still the one before."""
        values = {"lease_owner": None, "lease_until": None, "turn_began_at": sources.c.last_synced_at}
        with self._db.begin() as connection:
            connection.execute(update(sources).where(sources.c.lease_owner == owner).values(**values))

    def check(self, connection: Connection, source_id: str, epoch: int) -> None:
        """Inside a transaction: make sure that the sync still holds its source, and note that it gets on. Raises LeaseLost, which rolls
        the transaction back."""
        held = connection.execute(
            update(sources).where(sources.c.source_id == source_id, sources.c.lease_epoch == epoch).values(progressed_at=self._db.moment())
        )
        if held.rowcount != 1:
            raise LeaseLost(f"source {source_id}: another run has taken over its sync")

    def save_cursor(self, connection: Connection, source_id: str, cursor: Mapping[str, Any]) -> None:
        """Where the feed goes on, inside the transaction of what it told so far; `check` has fenced that transaction."""
        connection.execute(update(sources).where(sources.c.source_id == source_id).values(cursor=dict(cursor)))

    def save_held(self, connection: Connection, source_id: str, count: int) -> None:
        """A person decided on the held deletes, inside a fenced transaction: no listing is awaited, and so many are still held."""
        values = {"held_digest": None, "held_count": count, "held_at": None}
        connection.execute(update(sources).where(sources.c.source_id == source_id).values(**values))

    def finish(
        self,
        source_id: str,
        epoch: int,
        began_at: datetime | None,
        error: str | None,
        listed: Listed | None = None,
        is_whole: bool = True,
    ) -> None:
        """End a sync: give the source back and say how it went. `began_at` is when it began, None where it failed;
        `listed` is what a full listing gave; where there was none, or an incomplete one, what is held stays as it is. `is_whole` False
        means that only documents of events were looked at: the next sync of all of it is due when it was."""
        now = self._db.now()
        values: dict[str, Any] = {"lease_owner": None, "lease_until": None}
        if is_whole:
            values |= {"last_error": error, "last_synced_at": now}
        else:
            values["turn_began_at"] = sources.c.last_synced_at
        # A sync that is asked for while one runs is not lost in it.
        asked_since = false() if began_at is None else sources.c.asked_at > began_at
        if is_whole and began_at is not None:
            values |= {"last_good_at": now} if error is None else {}
            values |= {"last_began_at": began_at, "asked_at": case((asked_since, sources.c.asked_at), else_=None)}
        if listed is not None and listed.is_complete:
            same = sources.c.held_digest == listed.held_digest
            held_at = None if listed.held_digest is None else case((same, sources.c.held_at), else_=now)
            values |= {"held_digest": listed.held_digest, "held_count": listed.held_count, "held_at": held_at}
            reconciled = literal(began_at, sources.c.last_reconciled_at.type)
            values["last_reconciled_at"] = case((asked_since, None), else_=reconciled)
            if listed.cursor is not None:
                values |= {"cursor": dict(listed.cursor)}
        with self._db.begin() as connection:
            connection.execute(update(sources).where(sources.c.source_id == source_id, sources.c.lease_epoch == epoch).values(**values))
