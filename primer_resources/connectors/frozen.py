"""A source as it was shown once: its listing or its feed, recorded and shown again; bytes come from the source itself."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from json import dumps, loads
from pathlib import Path
from typing import Any, TextIO

from primer_core.failures import Reason, SystemFault
from primer_resources.connectors.base import Access, Change, ChangePage, Connector, Cursor, Decoded, Fetched, ListedItem, Listing


def to_line(item: ListedItem) -> str:
    """An item as a line of a spool."""
    return dumps(asdict(item)) + "\n"


def unspool(spool: TextIO) -> Iterator[ListedItem]:
    """The items of a spool."""
    for line in spool:
        values: dict[str, Any] = loads(line)
        access = values.pop("access")
        fault = values.pop("fault")
        item = ListedItem(access=Access(**(access | {"groups": tuple(access["groups"])})), **values)
        yield replace(item, fault=None if fault is None else Reason(fault))


@dataclass(slots=True)
class _Recorded:
    """The listing: recorded the first time that it is read, shown from the record after that."""

    path: Path
    listing: Listing | None
    problems: tuple[str, ...] = ("not read to its end",)
    cursor: Cursor | None = None
    notices: tuple[str, ...] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)
    digest: str | None = None

    def __iter__(self) -> Iterator[ListedItem]:
        if self.listing is None:
            with self.path.open(encoding="utf-8") as spool:
                yield from unspool(spool)
            return
        sha = sha256()
        with self.path.open("w", encoding="utf-8") as spool:
            for item in self.listing:
                line = to_line(item)
                sha.update(line.encode("utf-8", "surrogatepass"))
                spool.write(line)
                yield item
        self.digest = sha.hexdigest()
        done = self.listing
        self.problems, self.cursor, self.notices, self.skipped = done.problems, done.cursor, done.notices, done.skipped
        self.listing = None


class FrozenSource:
    """A connector that asks its source once for what is there. `folder` takes the record."""

    def __init__(self, connector: Connector, folder: Path) -> None:
        self._connector = connector
        self._path = folder / "listing.jsonl"
        self._recorded: _Recorded | None = None
        self._changes: list[Change] = []
        self._last: Cursor | None = None
        self._told: ChangePage | None = None

    @property
    def listing_digest(self) -> str | None:
        """Of all that the listing showed; None where there was none that was read to its end."""
        return None if self._recorded is None else self._recorded.digest

    def list(self, cursor: Cursor | None = None) -> Listing:
        """The listing; one that was read before is shown again."""
        if self._recorded is None:
            listing = self._connector.list(cursor)
            if listing is None:
                raise SystemFault("the connector gave no listing at all; nothing is known of its source's documents")
            self._recorded = _Recorded(self._path, listing)
        return self._recorded

    def changes(self, cursor: Cursor) -> ChangePage | None:
        """The feed since the cursor; once it was told to its end, all of it in one piece."""
        if self._told is not None:
            return self._told
        page = self._connector.changes(cursor)
        if page is not None:
            self._changes.extend(page.changes)
            self._last = page.cursor
        return page

    def tell_again(self) -> None:
        """From now on the feed is that which was told so far."""
        if self._last is not None:
            self._told = ChangePage(tuple(self._changes), self._last, more=False)

    def look(self, path: str, cursor: Cursor | None = None) -> ListedItem | None:
        """The item as it stands now, from the source."""
        return self._connector.look(path, cursor)

    def fetch(self, item: ListedItem, target: Path) -> Fetched:
        """The item's bytes, from the source."""
        return self._connector.fetch(item, target)

    def decode(self, headers: Mapping[str, str], body: bytes) -> Decoded | None:
        """As the source does."""
        return self._connector.decode(headers, body)

    def close(self) -> None:
        """Give back connections."""
        self._connector.close()
