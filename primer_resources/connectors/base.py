"""The connector port: what every kind of source must be able to do."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from primer_core.failures import Reason


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
    def notices(self) -> tuple[str, ...]:
        """What a person should know of the listing and need not act on at once, such as an access rule that fits nothing."""
        ...

    @property
    def skipped(self) -> Mapping[str, int]:
        """What was left out on purpose: rule → how many names."""
        ...


class Connector(Protocol):
    """A source of documents."""

    def list(self) -> Listing:
        """A full listing."""
        ...

    def fetch(self, item: ListedItem, target: Path) -> Fetched:
        """Copy the item's bytes to `target`, hashing while streaming.

        Raises DocumentFault (unreadable, too_large, …), Transient (it changed while it was read) or SystemFault (the source is gone).
        """
        ...
