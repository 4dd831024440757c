"""The change feed of a MediaWiki: its recent changes, by time, each told once, with the page as it stands now.

| recent change | what is told |
|---|---|
| an edit, a new page, a log entry that made a revision (such as a protection) | the page, or its delete where it is a redirect now |
| a move | the page under its new title, with the old one; a delete where it left the namespaces that are read, or is a redirect now |
| a delete | a delete |
| a restore, a merge of histories or an import without a revision of its own | the page as it stands, if there is one |
| anything else | nothing |

The wiki drops the entries of a page's edits when it deletes the page, and the ids of entries are not in the order of their times: so a
place in the feed is a time, and what was told lately is remembered by id. An entry may be committed some seconds after the time that it
bears; until LATE has passed the feed comes back to that time.

The order of a version is its revision's id, which the whole wiki counts. A delete has no revision: it stands at the newest revision told
before it, and all that is told after it stands behind it (`floor`), also a page restored with the old revision that it had.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from pydantic import AwareDatetime, BaseModel, Field

from primer_core.source_time import check_aware, parse_time
from primer_core.stages import Operation
from primer_core.time_cursor import TimeCursor
from primer_resources.connectors.base import ORDER_STEP, Change, ChangePage, Cursor, CursorExpired
from primer_resources.connectors.mediawiki_pages import Page, Pages, parse

LATE = timedelta(seconds=30)
"""How long after the time that it bears an entry may appear: an edit takes its time at its beginning and is saved seconds later."""
CHANGES = 100
"""Entries a piece of the feed: what a crash may read again."""
IDLE = timedelta(hours=1)
"""A quiet wiki's cursor moves on after this, so that it does not grow older than what the wiki keeps."""


class _LogParams(BaseModel):
    target_ns: int = 0
    target_title: str = ""


class Entry(BaseModel):
    """A recent change."""

    type: str
    ns: int
    title: str
    pageid: int
    revid: int
    rcid: int
    timestamp: AwareDatetime
    logtype: str = ""
    logaction: str = ""
    logparams: _LogParams | list[Any] = Field(default_factory=_LogParams)

    @property
    def kind(self) -> str:
        """What it means for a page: "page", "move", "delete", "restore", or "" for nothing."""
        if self.logtype == "move":
            return "move"
        if self.logtype == "delete":
            return {"delete": "delete", "restore": "restore"}.get(self.logaction, "")
        if self.type in ("edit", "new") or self.revid:
            return "page"
        return "restore" if self.logtype in ("merge", "import") else ""


@dataclass(slots=True)
class FeedPlace:
    """Where a feed stands: the time up to which all was told, the entries told since (id → time), the token of the next part; the newest
    revision told, and the order that all versions told from now on have at least."""

    time: TimeCursor
    recent: dict[str, str] = field(default_factory=dict)
    token: str = ""
    newest: int = 0
    floor: int = 0

    @classmethod
    def from_json(cls, values: Cursor) -> "FeedPlace":
        """From the catalog."""
        time = TimeCursor.from_json(values["time"])
        return cls(time, dict(values["recent"]), values["token"], values["newest"], values["floor"])

    def to_json(self, access: str) -> Cursor:
        """For the catalog; `access` is what changes when who may read changes."""
        return {
            "access": access, "time": self.time.to_json(), "recent": self.recent, "token": self.token, "newest": self.newest,
            "floor": self.floor,
        }  # fmt: skip

    def take(self, entries: Iterable[Entry], now: datetime) -> list[Entry]:
        """Those entries that were not told before. The place is behind them afterwards."""
        taken = []
        for entry in entries:
            entry_id, at = str(entry.rcid), check_aware(entry.timestamp)
            if not self.time.has_seen(entry_id, "", at) and entry_id not in self.recent:
                taken.append(entry)
            if at <= now - LATE:
                self.time = self.time.after(entry_id, "", at, now)
            else:
                self.recent[entry_id] = at.isoformat()
        place = self.time
        self.recent = {each: at for each, at in self.recent.items() if each not in place.seen and parse_time(at) >= place.since}
        return taken

    def rest(self, now: datetime) -> None:
        """Nothing more follows now."""
        self.token = ""
        if self.time.since < now - IDLE:
            self.time = TimeCursor(now - LATE)

    def order_of(self, revision: int) -> int:
        """The order of a version that a revision made."""
        self.newest = max(self.newest, revision)
        return max(revision, self.floor)

    def order_of_delete(self) -> int:
        """The order of a delete; what follows stands behind it."""
        order = max(self.newest, self.floor)
        self.floor = order + 1
        return order

    def order_of_return(self, revision: int) -> int:
        """The order of a page that came back with a revision that it had before."""
        self.floor = max(self.newest, self.floor, revision) + 1
        return self.floor


def read_changes(pages: Pages, place: FeedPlace, kept: timedelta, access: str) -> ChangePage:
    """A piece of the feed. Raises CursorExpired where the wiki may have dropped what happened since."""
    token = place.token
    answer, entries = _ask(pages, place.time.since, token, "edit|new|log")
    now = parse_time(str(answer["curtimestamp"]))
    if place.time.since < now - kept:
        raise CursorExpired(f"{pages.api.url} keeps its recent changes for {kept.days} days, and the last sync is longer ago")
    place.token = str(answer.get("continue", {}).get("rccontinue", ""))
    if place.token and place.token == token:
        raise CursorExpired(f"{pages.api.url}: its recent changes go round in a circle at {token}")
    taken = [entry for entry in place.take(entries, now) if entry.kind]
    standing = pages.by_id(entry.pageid for entry in taken if entry.pageid and entry.kind != "delete")
    changes = [change for entry in taken for change in _tell(pages, place, entry, standing.get(entry.pageid))]
    more = bool(place.token)
    if not more:
        place.rest(now)
    return ChangePage(tuple(changes), place.to_json(access), more)


def moved_since(pages: Pages, began: str) -> list[Page]:
    """The pages that were moved since a time of the wiki, as they stand now."""
    since, token, moved = parse_time(began) - LATE, "", set[int]()
    while True:
        answer, entries = _ask(pages, since, token, "log")
        moved.update(entry.pageid for entry in entries if entry.kind == "move" and entry.pageid)
        following = str(answer.get("continue", {}).get("rccontinue", ""))
        if not following or following == token:
            return list(pages.by_id(moved).values())
        token = following


def _ask(pages: Pages, since: datetime, token: str, types: str) -> tuple[Mapping[str, Any], list[Entry]]:
    params: dict[str, str | int] = {"rccontinue": token} if token else {}
    answer = pages.api.get(
        action="query", list="recentchanges", rcdir="newer", rcstart=since.strftime("%Y-%m-%dT%H:%M:%SZ"), rctype=types,
        rcprop="ids|title|timestamp|loginfo", rclimit=min(CHANGES, pages.page_size), **params,
    )  # fmt: skip
    told = answer.get("query", {}).get("recentchanges", ())
    return answer, [parse(Entry, each, pages.api.url) for each in told]


def _tell(pages: Pages, place: FeedPlace, entry: Entry, page: Page | None) -> Iterator[Change]:
    """What an entry means; `page` is as it stands now, None for one that is gone since."""
    was_wanted = entry.ns in pages.namespaces
    if entry.kind == "delete":
        if was_wanted:
            yield _delete(place, entry)
        return
    if entry.kind == "move":
        target, ns = entry.logparams, entry.ns
        if isinstance(target, _LogParams):
            ns, title = target.target_ns, target.target_title
        if page is not None and not page.redirect and isinstance(target, _LogParams) and ns in pages.namespaces:
            old = entry.title if was_wanted else None
            order = place.order_of(entry.revid or page.revisions[0].revid)
            yield _upsert(pages, entry, page.model_copy(update={"ns": ns}), title, order, old)
        elif was_wanted:
            yield _delete(place, entry)
        return
    if not was_wanted:
        return
    if page is None:
        if entry.kind == "restore":
            yield _delete(place, entry)
    elif page.redirect:
        yield _delete(place, entry)
    elif page.revisions:
        newest = page.revisions[0].revid
        order = place.order_of_return(newest) if entry.kind == "restore" else place.order_of(entry.revid or newest)
        yield _upsert(pages, entry, page.model_copy(update={"ns": entry.ns}), entry.title, order)


def _upsert(pages: Pages, entry: Entry, page: Page, title: str, order: int, old: str | None = None) -> Change:
    item = pages.item(page, title, order)
    return Change(Operation.UPSERT, title, item.version, item.order, entry.timestamp, item, old)


def _delete(place: FeedPlace, entry: Entry) -> Change:
    return Change(Operation.DELETE, entry.title, f"log-{entry.rcid}", place.order_of_delete() * ORDER_STEP, entry.timestamp)
