"""A source in memory whose listing and feed do what a test tells them to. Its feed is the log of what happened, one change a step."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from primer_core.failures import DocumentFault, Reason, SystemFault, Transient
from primer_core.source_time import to_ns
from primer_core.stages import Operation
from primer_resources.connectors.base import ORDER_STEP, Access, Change, ChangePage, Cursor, CursorExpired, Fetched, ListedItem

BEGAN = datetime(2025, 12, 1, tzinfo=UTC)
"""Long before the clock of the test world, so that nothing was changed a moment ago."""


@dataclass
class ScriptedListing:
    """A listing that may break off after some items."""

    source: "ScriptedSource"
    cursor: Cursor | None
    problems: tuple[str, ...] = ("not read to its end",)
    notices: tuple[str, ...] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)

    def __iter__(self) -> Iterator[ListedItem]:
        shown = sorted(self.source.items) if self.source.shows is None else self.source.shows
        for count, path in enumerate(shown):
            if count == self.source.breaks_after:
                self.problems = ("page 3 answered 503",)
                return
            yield self.source.item(path)
        self.problems = ()


@dataclass
class ScriptedSource:
    """What the source holds, and its connector at once."""

    items: dict[str, bytes] = field(default_factory=dict)
    orders: dict[str, int] = field(default_factory=dict)
    access: dict[str, Access] = field(default_factory=dict)
    log: list[Change] = field(default_factory=list)
    page_size: int = 2
    tick: int = 0
    expired_before: int = 0
    next_cursor: Callable[[int], int] = lambda place: place
    shows: Sequence[str] | None = None
    breaks_after: int | None = None
    fetched: list[str] = field(default_factory=list)
    unreadable: set[str] = field(default_factory=set)
    has_feed: bool = True
    looked: list[str] = field(default_factory=list)
    stale: dict[str, ListedItem | None] = field(default_factory=dict)
    mute: dict[str, Exception] = field(default_factory=dict)
    listings: int = 0

    def item(self, path: str) -> ListedItem:
        """The item as it stands."""
        data, order = self.items[path], self.orders[path]
        folder = path.rpartition("/")[0]
        access = self.access.get(folder, Access(folder, ("everyone",)))
        return ListedItem(
            path, path, f"memory:///{path}", path, hashlib.sha256(data).hexdigest(), to_ns(self.at(order)), len(data), access,
            version=f"r{order // ORDER_STEP}", order=order,
        )  # fmt: skip

    def at(self, order: int) -> datetime:
        """When a step happened: a minute a step."""
        return BEGAN + timedelta(minutes=order // ORDER_STEP)

    def happen(self, operation: Operation, path: str, old_path: str | None = None) -> Change:
        """Log one more step."""
        self.tick += ORDER_STEP
        if operation is not Operation.DELETE:
            self.orders[path] = self.tick
        item = None if operation is Operation.DELETE else self.item(path)
        self.log.append(Change(operation, path, f"r{self.tick // ORDER_STEP}", self.tick, self.at(self.tick), item, old_path))
        return self.log[-1]

    def put(self, path: str, data: bytes) -> Change:
        self.items[path] = data
        return self.happen(Operation.UPSERT, path)

    def remove(self, path: str) -> Change:
        del self.items[path]
        return self.happen(Operation.DELETE, path)

    def rename(self, old: str, new: str) -> Change:
        self.items[new] = self.items.pop(old)
        return self.happen(Operation.UPSERT, new, old)

    def share(self, folder: str, *groups: str) -> None:
        """Re-share a folder: an event for each document in it."""
        self.access[folder] = Access(folder, groups)
        for path in [path for path in self.items if path.rpartition("/")[0] == folder]:
            self.happen(Operation.ACL, path)

    def list(self, cursor: Cursor | None = None) -> ScriptedListing:
        self.listings += 1
        return ScriptedListing(self, {"at": len(self.log)} if self.has_feed else None)

    def look(self, path: str, cursor: Cursor | None = None) -> ListedItem | None:
        """The item as it stands, or as a replica that lags shows it (`stale`); `mute` are paths that fail."""
        self.looked.append(path)
        if path in self.mute:
            raise self.mute[path]
        if path in self.stale:
            return self.stale[path]
        return self.item(path) if path in self.items else None

    def changes(self, cursor: Cursor) -> ChangePage | None:
        place = int(cursor["at"])
        if place < self.expired_before:
            raise CursorExpired("410 Gone: the feed forgot this cursor")
        end = min(place + self.page_size, len(self.log))
        return ChangePage(tuple(self.log[place:end]), {"at": self.next_cursor(end)}, more=end < len(self.log))

    def fetch(self, item: ListedItem, target: Path) -> Fetched:
        self.fetched.append(item.path)
        if item.path in self.unreadable:
            raise DocumentFault(Reason.UNREADABLE, f"{item.path}: 403")
        if item.path not in self.items:
            raise Transient(f"{item.path} is gone")
        data = self.items[item.path]
        try:
            target.write_bytes(data)
        except OSError as error:
            raise SystemFault(str(error)) from error
        current = self.item(item.path)
        return Fetched(hashlib.sha256(data).hexdigest(), len(data), current.fingerprint, current.modified_ns)

    def decode(self, headers: Mapping[str, str], body: bytes) -> None:
        """No webhooks."""

    def close(self) -> None:
        """Nothing is held."""

    def replay(self, *changes: Change) -> None:
        """Tell of changes again, in this order, as they were."""
        self.log.extend(replace(change) for change in changes)
