"""The pages of a MediaWiki: what its API tells of them, as items; who may read them; and their listing.

A page's path is its full title ("Help:Sync/Folders"). A rule of the access file for a title counts for that page and its subpages; one
for a namespace is written with its colon ("Help:") and counts where no rule for a title does.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote, urljoin

from pydantic import AwareDatetime, BaseModel, ValidationError

from primer_core.failures import Deferred, Reason, SystemFault, Transient
from primer_core.source_time import to_ns
from primer_resources.connectors.access import AccessRules
from primer_resources.connectors.base import ORDER_STEP, Access, Cursor, ListedItem
from primer_resources.connectors.drive_walk import NOT_READ_TO_THE_END
from primer_resources.connectors.mediawiki_api import Answer, MediaWikiApi
from primer_resources.connectors.service import Refused

IDS_A_REQUEST = 50
"""Pages that the API takes by id in one request, from those without special rights."""
_PROPERTIES: Mapping[str, str | int] = {"action": "query", "prop": "info|revisions", "rvprop": "ids|timestamp"}

M = TypeVar("M", bound=BaseModel)
CursorOf = Callable[[str, int], Cursor]
"""The wiki's time when a listing began, the newest revision that it showed → where the feed goes on."""


class Revision(BaseModel):
    """A page's newest revision. Times need a zone."""

    revid: int
    timestamp: AwareDatetime


class Page(BaseModel):
    """A page as it stands now. `pageid` 0: there is none of that title."""

    pageid: int = 0
    ns: int = 0
    title: str
    redirect: bool = False
    revisions: tuple[Revision, ...] = ()


class _General(BaseModel):
    server: str
    articlepath: str


def parse(model: type[M], content: Any, url: str) -> M:
    """What a part of an answer tells. Raises SystemFault that names the field."""
    try:
        return model.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        shown = repr(first["input"])[:100]
        raise SystemFault(f"{url}: {name} = {shown} of a {model.__name__.lower()} is not valid ({first['msg']})") from error


@dataclass(slots=True)
class Pages:
    """Reads pages under one set of access rules."""

    api: MediaWikiApi
    namespaces: tuple[int, ...]
    page_size: int
    rules: AccessRules
    _general: _General | None = None

    def in_namespace(self, number: int) -> Iterator[tuple[list[Page], Answer]]:
        """All pages of a namespace by title, redirects too, with the answer that completed each part."""
        parts: dict[int, dict[str, Any]] = {}
        for answer in self.api.pages(**_PROPERTIES, generator="allpages", gapnamespace=number, gaplimit=self.page_size):
            for told in answer.get("query", {}).get("pages", ()):
                parts.setdefault(told.get("pageid", 0), {}).update(told)
            if answer.get("batchcomplete"):
                yield [parse(Page, each, self.api.url) for each in parts.values()], answer
                parts = {}
        if parts:
            raise Transient(f"{self.api.url} ended its list of pages in the middle of a part")

    def by_id(self, page_ids: Iterable[int]) -> dict[int, Page]:
        """Page id → the page, of those that there are."""
        wanted = sorted(set(page_ids))
        found: dict[int, Page] = {}
        for start in range(0, len(wanted), IDS_A_REQUEST):
            ids = "|".join(str(each) for each in wanted[start : start + IDS_A_REQUEST])
            parts: dict[int, dict[str, Any]] = {}
            for answer in self.api.pages(**_PROPERTIES, pageids=ids):
                for told in answer.get("query", {}).get("pages", ()):
                    parts.setdefault(told.get("pageid", 0), {}).update(told)
            pages = (parse(Page, each, self.api.url) for each in parts.values() if not each.get("missing"))
            found |= {page.pageid: page for page in pages}
        return found

    def by_title(self, title: str) -> Page | None:
        """The page of exactly that title; None where there is none, or no title is written like that."""
        told = self.api.get(**_PROPERTIES, titles=title).get("query", {}).get("pages", ())
        page = next((each for each in told if each.get("title") == title), None)
        bad = page is None or any(page.get(mark) for mark in ("missing", "invalid", "special"))
        return None if bad else parse(Page, page, self.api.url)

    def is_wanted(self, page: Page) -> bool:
        """Whether a listing shows it: it is no redirect, and in a namespace that is read."""
        return not page.redirect and page.ns in self.namespaces

    def item(self, page: Page, title: str = "", order: int = 0) -> ListedItem:
        """A page as an item; under another title where the feed is not yet where the page moved. `order` is in ORDER_STEPs."""
        path = title or page.title
        newest = page.revisions[0] if page.revisions else None
        revision = str(newest.revid) if newest is not None else ""
        return ListedItem(
            path=path,
            native_path=revision,
            uri=self._address(path),
            title=path,
            fingerprint=f"{revision}:{hashlib.sha256(path.encode()).hexdigest()[:12]}",  # The title stands in the document.
            modified_ns=0 if newest is None else to_ns(newest.timestamp),
            size=0,
            access=access_to(self.rules, path, page.ns),
            fault=Reason.UNREADABLE if newest is None else None,
            error="the wiki tells of no revision of it" if newest is None else "",
            version=revision,
            order=(order or (0 if newest is None else newest.revid)) * ORDER_STEP,
        )

    def _address(self, title: str) -> str:
        if self._general is None:
            told = self.api.get(action="query", meta="siteinfo", siprop="general").get("query", {}).get("general", {})
            self._general = parse(_General, told, self.api.url)
        path = self._general.articlepath.replace("$1", quote(title.replace(" ", "_"), safe="/:"))
        return urljoin(self.api.url, self._general.server + path)


def access_to(rules: AccessRules, title: str, namespace: int) -> Access:
    """Who may read a page: the rule for its title or the nearest above, else that for its namespace, else the default."""
    found = rules.find(title)
    if found.scope or not found.readable or namespace == 0:
        return found
    return rules.find(f"{title.partition(':')[0]}:")


class MediaWikiListing:
    """All pages of the namespaces, by title. Memory holds two numbers a page.

    A page that is moved while the titles are read may be met twice, or never: each is shown once, and those that the wiki's log says
    were moved since the beginning are looked at in the end.
    """

    def __init__(self, pages: Pages, cursor_of: CursorOf, moved_since: Callable[[str], Iterable[Page]]) -> None:
        self._pages, self._cursor_of, self._moved_since = pages, cursor_of, moved_since
        self._begin()

    def _begin(self) -> None:
        self._problems: tuple[str, ...] = (NOT_READ_TO_THE_END,)
        self._cursor: Cursor | None = None
        self._skipped: Counter[str] = Counter()
        self._met: set[str] = set()
        self._shown: set[int] = set()
        self._titles: set[int] = set()
        self._newest = 0

    @property
    def cursor(self) -> Cursor | None:
        """The feed goes on shortly before this listing began."""
        return self._cursor

    @property
    def problems(self) -> tuple[str, ...]:
        """Why it is no evidence of absence; empty only after all titles of all namespaces were read to the last one."""
        return self._problems

    @property
    def notices(self) -> tuple[str, ...]:
        """Titles and namespaces that the access file names and no page has: a misspelt name protects nothing."""
        missing = sorted(set(self._pages.rules.folders) - self._met) if not self._problems else []
        return tuple(f"the access file names {place!r}, which is no page or namespace read here: misspelt, or gone" for place in missing)

    @property
    def skipped(self) -> Mapping[str, int]:
        """Redirects."""
        return dict(self._skipped)

    def __iter__(self) -> Iterator[ListedItem]:
        self._begin()
        began: str | None = None
        try:
            for number in self._pages.namespaces:
                for pages, answer in self._pages.in_namespace(number):
                    began = began or str(answer.get("curtimestamp", ""))
                    yield from self._show(pages)
            if began is not None:
                yield from self._show(self._moved_since(began))
        except (Transient, Deferred, Refused) as error:
            if not self._shown:
                if isinstance(error, Refused):
                    raise SystemFault(f"the pages of {self._pages.api.url} are not listed: {error}") from error
                raise
            self._problems = (f"the listing broke off after {len(self._shown)} pages: {error}",)
            return
        self._cursor = self._cursor_of(began or "", self._newest)
        self._problems = ()

    def _show(self, pages: Iterable[Page]) -> Iterator[ListedItem]:
        for page in pages:
            if page.pageid in self._shown or hash(page.title) in self._titles:
                continue
            if page.redirect:
                self._skipped["redirect"] += 1
            if not self._pages.is_wanted(page):
                continue
            self._shown.add(page.pageid)
            self._titles.add(hash(page.title))
            self._newest = max(self._newest, page.revisions[0].revid if page.revisions else 0)
            self._met.update(place for place in _places(page) if place in self._pages.rules.folders)
            yield self._pages.item(page)


def _places(page: Page) -> Iterator[str]:
    """What of an access file can count for a page."""
    title = page.title
    while title:
        yield title
        title = title.rpartition("/")[0]
    if page.ns:
        yield f"{page.title.partition(':')[0]}:"
