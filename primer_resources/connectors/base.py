"""The connector port: what every kind of source must be able to do.

A source tells of changes in three ways: a full listing, a change feed with a cursor, and webhooks. The listing is the one that every
kind has, and the only one that proves absence. The other two make it rare.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, overload

from primer_core.failures import PrimerError, Reason
from primer_core.source_time import check_aware
from primer_core.stages import Operation

Cursor = Mapping[str, Any]
"""Where a feed goes on: JSON that only its connector reads."""

ORDER_STEP = 1000
"""Orders of two versions that the source can tell apart differ by this much, which leaves room for versions that it cannot (two edits in
one second). A time in nanoseconds, cut to microseconds, keeps it."""


class CursorExpired(PrimerError):
    """The feed cannot go on from this cursor (the source forgot it, or its history was rewritten): only a full listing can."""


@dataclass(frozen=True, slots=True)
class Access:
    """Who may see a document: the scope that grants it (a folder, a space) and the groups granted.

    `readable` False means the permissions could not be read, which is never the same as an empty list.
    """

    scope: str
    groups: tuple[str, ...]
    readable: bool = True
    error: str = ""


@dataclass(frozen=True, slots=True)
class ListedItem:
    """One document in a listing.

    `path` is where the source shows it now, unique in the source, valid UTF-8, "/" between parts. `fingerprint` changes whenever the
    content may have changed and costs no read (size and mtime on a drive); `modified_ns` is the source's time, nanoseconds since the
    epoch UTC.
    `fault` says why the item cannot be fetched, with `error` for people; such an item is still listed, so it counts.
    `native_path` is what `fetch` opens (may hold bytes that are not UTF-8, by surrogateescape).
    `container` is the path of the item that this one is a member of; connectors list no members.
    `version` is the source's own label of the state ("" where it has none) and `order` that state's place among the document's versions,
    in ORDER_STEPs (0: its time is its order).
    """

    path: str
    native_path: str
    uri: str
    title: str
    fingerprint: str
    modified_ns: int
    size: int
    access: Access
    fault: Reason | None = None
    error: str = ""
    container: str | None = None
    version: str = ""
    order: int = 0


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that happened in a source.

    `order` is its place among the versions of the document, in ORDER_STEPs: one that is older than what is known changes nothing.
    `event_time` is when it happened by the source's clock, aware UTC. `item` is the document as it stands after it; None for a delete,
    and for an event of a webhook, which tells of a change and does not show it. `old_path` is where a renamed document stood before.
    Raises ValueError for a time without a zone.
    """

    operation: Operation
    path: str
    source_version: str
    order: int
    event_time: datetime
    item: ListedItem | None = None
    old_path: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "event_time", check_aware(self.event_time))


@dataclass(frozen=True, slots=True)
class ChangePage:
    """A piece of a feed, oldest change first. `cursor` is where the next piece begins, `more` whether it can be asked for at once."""

    changes: tuple[Change, ...]
    cursor: Cursor
    more: bool


@dataclass(frozen=True, slots=True)
class Decoded(Sequence[Change]):
    """The changes that a webhook's request told of, and why the rest of it is not this source's, for people."""

    changes: tuple[Change, ...] = ()
    ignored: tuple[str, ...] = ()

    @overload
    def __getitem__(self, index: int) -> Change: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Change, ...]: ...
    def __getitem__(self, index: int | slice) -> Change | tuple[Change, ...]:
        return self.changes[index]

    def __len__(self) -> int:
        return len(self.changes)


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a fetch gave: the SHA-256 of the bytes copied, their number, and the fingerprint that held before and after the read."""

    content_hash: str
    size: int
    fingerprint: str
    modified_ns: int


class Listing(Protocol):
    """A listing under way. Iterate it to the end, then ask whether it is evidence."""

    def __iter__(self) -> Iterator[ListedItem]:
        """The items, in a stable order, streamed. Raises SystemFault when the source itself is gone."""
        ...

    @property
    def problems(self) -> tuple[str, ...]:
        """What could not be listed (unreadable folders). Empty after the end: the listing is complete and proves absence."""
        ...

    @property
    def cursor(self) -> Cursor | None:
        """Where a feed goes on once this listing was settled: a moment before it began. None for a source without a feed."""
        ...

    @property
    def notices(self) -> tuple[str, ...]:
        """What a person should know of the listing and need not act on at once, such as an access rule that fits nothing."""
        ...

    @property
    def skipped(self) -> Mapping[str, int]:
        """What was left out on purpose: rule → how many names."""
        ...


class Connector(Protocol):
    """A source of documents. A sync opens one and uses it from one thread."""

    def list(self, cursor: Cursor | None = None) -> Listing:
        """A full listing. `cursor` is the one saved last, expired or not: orders of versions go on from it."""
        ...

    def changes(self, cursor: Cursor) -> ChangePage | None:
        """What happened since the cursor; None where this source has no feed.

        Raises CursorExpired where only a full listing can tell, Transient or Deferred where the source does not answer now,
        SystemFault where it is gone.
        """
        ...

    def look(self, path: str, cursor: Cursor | None = None) -> ListedItem | None:
        """The item as it stands under this path now, as a listing from `cursor` would show it; None where the source says that there is
        none, or that a listing leaves it out.

        `cursor` is the one saved last, as for `list`. Raises Transient, Deferred or SystemFault where it cannot tell (never None for an
        error), PrimerError for credentials that are refused.
        """
        ...

    def fetch(self, item: ListedItem, target: Path) -> Fetched:
        """Copy the item's bytes to `target`, hashing while streaming.

        Raises DocumentFault (unreadable, too_large, …), Transient (it changed while it was read) or SystemFault (the source is gone).
        """
        ...

    def decode(self, headers: Mapping[str, str], body: bytes) -> Decoded | None:
        """The events that a webhook's request tells of, without asking the source; None where this source sends no webhooks.

        What is told of other branches, buckets or folders is left out, with a reason.

        The signature was checked before. Raises PrimerError for a body that is not the source's own form.
        """
        ...

    def close(self) -> None:
        """Give back connections."""
        ...
