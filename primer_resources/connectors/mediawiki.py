"""The wiki connector for MediaWiki: the pages of its namespaces, read by its action API (api.php).

Settings, and what a connector does; the requests are in mediawiki_api, pages and listing in mediawiki_pages, the feed in mediawiki_feed.
"""

import re
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from html import escape
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field

from primer_core.failures import DocumentFault, Reason, SystemFault, Transient
from primer_core.source_time import parse_time
from primer_core.time_cursor import TimeCursor
from primer_resources.connectors.access import load_rules_file
from primer_resources.connectors.base import ChangePage, Cursor, CursorExpired, Fetched, ListedItem
from primer_resources.connectors.kind import SourceSettings
from primer_resources.connectors.mediawiki_api import MediaWikiApi
from primer_resources.connectors.mediawiki_feed import LATE, FeedPlace, moved_since, read_changes
from primer_resources.connectors.mediawiki_pages import MediaWikiListing, Pages, parse
from primer_resources.connectors.private_copy import write_copy
from primer_resources.connectors.service import Refused
from primer_resources.credentials import Address
from primer_resources.settings import Duration

MOST_TITLE_BYTES = 511
"""Of a title with its namespace: 255 each, and the colon."""
_NO_TITLE = re.compile(r"[\x00-\x1f\x7f#<>\[\]{}|\ud800-\udfff]")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


def _numbers(value: Any) -> Any:
    return [each.strip() for each in value.split(",") if each.strip()] if isinstance(value, str) else value


class MediaWikiSettings(SourceSettings):
    """Settings of one wiki. The secret is a bot password, USER@BOT:PASSWORD, or an OAuth 2 access token."""

    url: Annotated[Address, Field(pattern=r"^https?://[^?#]+/api\.php$")]
    """The wiki's API, such as https://wiki.example/w/api.php."""
    namespaces: Annotated[tuple[int, ...], BeforeValidator(_numbers), Field(min_length=1)] = (0,)
    """Numbers of the namespaces whose pages are documents; 0 is the articles, 4 the project's pages, 12 help, 14 categories."""
    page_size: Annotated[int, Field(ge=1, le=500)] = 500
    """Pages a request of the listing."""
    changes_kept: Duration = timedelta(days=90)
    """How long the wiki keeps its recent changes ($wgRCMaxAge); a source that was not synced for longer is listed in full."""
    throttle_quota: Duration = timedelta(seconds=60)
    """How long one sync may wait because the wiki asks it to."""


class _Parsed(BaseModel):
    revid: int
    text: str


class MediaWikiConnector:
    """A wiki as a source of documents."""

    def __init__(
        self, settings: MediaWikiSettings, credentials_ref: str | None, _work: Path, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.settings = settings
        self._api = MediaWikiApi(settings.url, credentials_ref, settings.throttle_quota, sleep)

    def list(self, cursor: Cursor | None = None) -> MediaWikiListing:
        """A full listing; the access file is read now, once. Orders of deletes go on from those that `cursor` gave."""
        pages = self._pages()
        before = None if cursor is None else FeedPlace.from_json(cursor)

        def cursor_of(began: str, newest: int) -> Cursor:
            place = FeedPlace(TimeCursor(parse_time(began) - LATE), newest=newest)
            if before is not None:
                place.newest, place.floor = max(newest, before.newest), before.floor
            return place.to_json(pages.rules.digest)

        return MediaWikiListing(pages, cursor_of, lambda began: moved_since(pages, began))

    def changes(self, cursor: Cursor) -> ChangePage | None:
        """The recent changes since, oldest first. Rules of the access file that changed make the cursor expire."""
        pages = self._pages()
        if cursor["access"] != pages.rules.digest:
            raise CursorExpired(f"who may read which page of {self.settings.url} was changed")
        try:
            return read_changes(pages, FeedPlace.from_json(cursor), self.settings.changes_kept, cursor["access"])
        except Refused as refused:
            raise SystemFault(f"the recent changes of {self.settings.url} are not told: {refused}") from refused

    def look(self, path: str, cursor: Cursor | None = None) -> ListedItem | None:
        """The page of that title as it stands. Raises Transient, Deferred or SystemFault where the wiki cannot tell."""
        if not path or _NO_TITLE.search(path) or len(path.encode()) > MOST_TITLE_BYTES:
            return None
        pages = self._pages()
        try:
            page = pages.by_title(path)
        except Refused as refused:
            raise Transient(f"page {path} is not shown ({refused})") from refused
        return None if page is None or not pages.is_wanted(page) else pages.item(page)

    def fetch(self, item: ListedItem, target: Path) -> Fetched:
        """Write the HTML of the revision that was listed, with the page's title as its heading.

        Raises DocumentFault (unreadable, too_large), Transient (gone, or not yet known to the server that answered), Deferred or
        SystemFault (no room at the target).
        """
        if item.fault is not None:
            raise DocumentFault(item.fault, f"{item.path}: {item.error}")
        try:
            answer = self._api.get(
                action="parse", oldid=item.native_path, prop="text|revid", disableeditsection=1, disabletoc=1, disablelimitreport=1,
                wrapoutputclass="",
            )  # fmt: skip
        except Refused as refused:
            if refused.status == 404:
                raise Transient(f"{item.path}: revision {item.native_path} is gone; the next sync tells") from refused
            raise DocumentFault(Reason.UNREADABLE, f"{item.path} cannot be read: {refused}") from refused
        parsed = parse(_Parsed, answer.get("parse"), self.settings.url)
        if parsed.revid < int(item.native_path):
            raise Transient(
                f"{item.path}: the wiki answered with revision {parsed.revid}, older than {item.native_path}; it is tried again"
            )
        return write_copy(item, _document(item.title, parsed.text), target, self.settings.max_bytes)

    def decode(self, headers: Mapping[str, str], body: bytes) -> None:
        """MediaWiki sends no webhooks."""

    def close(self) -> None:
        """Give the connections back."""
        self._api.close()

    def _pages(self) -> Pages:
        rules = load_rules_file(self.settings.access_file, self.settings.groups)
        return Pages(self._api, self.settings.namespaces, self.settings.page_size, rules)


def _document(title: str, html: str) -> bytes:
    """The document, UTF-8. Comments go: some hold the time of the answer, and the same revision is always the same bytes."""
    shown = escape(title)
    head = f'<!DOCTYPE html>\n<html><head><meta charset="utf-8"><title>{shown}</title></head><body>\n<h1>{shown}</h1>\n'
    return f"{head}{_COMMENT.sub('', html).strip()}\n</body></html>\n".encode("utf-8", "backslashreplace")
