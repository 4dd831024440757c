"""A MediaWiki over real HTTP: the modules of api.php that a connector asks, with their continuations, errors and habits.

Its habits are those of MediaWiki 1.39, seen on one: a move makes a revision, logs it under the old title and leaves a redirect that no
recent change tells of; deleting a page drops the recent changes of its edits, and a restored page has its old revisions and its old id;
a protection makes a revision; errors have status 200.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from html import escape
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.json_server import JsonHandler, serving

NAMESPACES = {0: "", 1: "Talk", 4: "Project", 12: "Help"}
PATH = "/w/api.php"
Row = dict[str, Any]


class ApiError(Exception):
    """An error in the body of an answer."""

    def __init__(self, code: str, info: str = "") -> None:
        super().__init__(code)
        self.code, self.info = code, info or code


@dataclass
class Revision:
    id: int
    at: datetime
    text: str


@dataclass
class Page:
    id: int
    title: str
    revisions: list[Revision]

    @property
    def ns(self) -> int:
        return namespace_of(self.title)

    @property
    def newest(self) -> Revision:
        return self.revisions[-1]

    @property
    def is_redirect(self) -> bool:
        return self.newest.text.startswith("#REDIRECT")


def namespace_of(title: str) -> int:
    prefix, colon, _ = title.partition(":")
    return next((number for number, name in NAMESPACES.items() if colon and name == prefix), 0)


@dataclass
class Wiki:
    """What the wiki holds and how it answers. `answers` are (status, headers) and `errors` (code, headers) given to the next requests
    instead of the truth; `before` is called with the parameters of each request, `before_page` before a part of the titles is told."""

    base: str = ""
    pages: dict[str, Page] = field(default_factory=dict)
    deleted: dict[str, Page] = field(default_factory=dict)
    changes: list[Row] = field(default_factory=list)
    clock: datetime = datetime(2026, 6, 1, 12, tzinfo=UTC)
    bots: dict[str, str] = field(default_factory=dict)
    tokens: set[str] = field(default_factory=set)
    sessions: dict[str, str] = field(default_factory=dict)
    login_wait: int = 0
    is_private: bool = False
    answers: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    errors: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    hidden: dict[int, str] = field(default_factory=dict)
    lags: dict[int, int] = field(default_factory=dict)
    before: Callable[[dict[str, str]], None] = lambda params: None
    before_page: Callable[[int], None] = lambda number: None
    suffix: str = "Z"
    stuck: bool = False
    requests: list[dict[str, str]] = field(default_factory=list)
    most: int = 500
    revision: int = 0
    page_id: int = 0
    change_id: int = 0
    made: int = 0

    @property
    def url(self) -> str:
        return f"{self.base}{PATH}"

    def put(self, title: str, text: str) -> Page:
        """Create a page or edit it."""
        page = self.pages.get(title)
        kind = "edit" if page is not None else "new"
        if page is None:
            page = self.pages[title] = Page(self._next_page(), title, [])
        page.revisions.append(self._revision(text))
        self._change(kind, title, page.id, page.newest.id)
        return page

    def move(self, old: str, new: str, leaves_redirect: bool = True) -> None:
        page = self.pages.pop(old)
        over = self.pages.pop(new, None)
        if over is not None:
            assert over.is_redirect
            self._drop_changes(over)
            self._log("delete", "delete_redir", new, over.id)
        page.title = new
        page.revisions.append(self._revision(page.newest.text))
        self.pages[new] = page
        params = {"target_ns": page.ns, "target_title": new, "suppressredirect": not leaves_redirect}
        self._log("move", "move_redir" if over is not None else "move", old, page.id, page.newest.id, params)
        if leaves_redirect:
            self.pages[old] = Page(self._next_page(), old, [self._revision(f"#REDIRECT [[{new}]]")])

    def remove(self, title: str) -> None:
        page = self.deleted[title] = self.pages.pop(title)
        self._drop_changes(page)
        self._log("delete", "delete", title, page.id)

    def restore(self, title: str) -> None:
        page = self.pages[title] = self.deleted.pop(title)
        self._log("delete", "restore", title, page.id, params={"count": {"revisions": len(page.revisions), "files": 0}})

    def protect(self, title: str) -> None:
        page = self.pages[title]
        page.revisions.append(self._revision(page.newest.text))
        self._log("protect", "protect", title, page.id, page.newest.id)

    def merge(self, source: str, target: str) -> None:
        """Merge a history into another page's; the source is gone."""
        page = self.pages.pop(source)
        self._log("merge", "merge", source, 0, params={"dest_ns": 0, "dest_title": target})
        self._drop_changes(page)

    def purge(self, before: datetime) -> None:
        """Forget recent changes."""
        self.changes = [row for row in self.changes if row["timestamp"] >= before]

    def _revision(self, text: str) -> Revision:
        self.revision += 1
        return Revision(self.revision, self.clock, text)

    def _next_page(self) -> int:
        self.page_id += 1
        return self.page_id

    def _drop_changes(self, page: Page) -> None:
        self.changes = [row for row in self.changes if row["pageid"] != page.id or row["type"] == "log"]

    def _change(self, kind: str, title: str, page_id: int, revision: int, **fields: Any) -> Row:
        self.change_id += 1
        row = {"type": kind, "ns": namespace_of(title), "title": title, "pageid": page_id, "revid": revision, "old_revid": 0,
               "rcid": self.change_id, "timestamp": self.clock, **fields}  # fmt: skip
        self.changes.append(row)
        return row

    def _log(self, kind: str, action: str, title: str, page_id: int, revision: int = 0, params: Row | None = None) -> None:
        self._change("log", title, page_id, revision, logid=self.change_id, logtype=kind, logaction=action, logparams=params or {})

    def answer(self, params: dict[str, str], session: str, bearer: str) -> Row:
        """The content of an answer."""
        if params.get("action") == "login":
            return {"login": self._login(params, session)}
        user = self.sessions.get(session, "") if not bearer else bearer if bearer in self.tokens else ""
        if bearer and not user:
            raise ApiError("mwoauth-invalid-authorization", "The authorization headers in your request are not valid")
        if params.get("meta") == "tokens":
            return {"batchcomplete": True, "query": {"tokens": {"logintoken": f"{session}+\\"}}}
        if params.get("assert") == "user" and not user:
            raise ApiError("assertuserfailed", "You are no longer logged in, so the action could not be completed.")
        if self.is_private and not user:
            raise ApiError("readapidenied", "You need read permission to use this module.")
        if params["action"] == "parse":
            return {"parse": self._parse(int(params["oldid"]))}
        told: Row = {"batchcomplete": True}
        if "curtimestamp" in params:
            told["curtimestamp"] = self._written(self.clock)
        told |= self._query(params)
        return told

    def _login(self, params: dict[str, str], session: str) -> Row:
        if self.login_wait:
            wait, self.login_wait = self.login_wait, 0
            return {"result": "Throttled", "wait": wait}
        if params["lgtoken"] != f"{session}+\\" or not session:
            return {"result": "Failed", "reason": "Unable to continue login. Your session most likely timed out."}
        if self.bots.get(params["lgname"]) != params["lgpassword"]:
            return {"result": "Failed", "reason": "Incorrect username or password entered. Please try again."}
        self.sessions[session] = params["lgname"]
        return {"result": "Success", "lgusername": params["lgname"]}

    def _parse(self, revision_id: int) -> Row:
        if revision_id in self.hidden:
            raise ApiError(self.hidden[revision_id], "You don't have permission to view this.")
        for page in self.pages.values():
            for revision in page.revisions:
                if revision.id == revision_id:
                    paragraphs = "".join(f"<p>{escape(part)}\n</p>" for part in revision.text.split("\n\n"))
                    html = f"{paragraphs}\n<!-- Saved in parser cache at {self.clock.isoformat()} -->"
                    return {"title": page.title, "pageid": page.id, "revid": self.lags.get(revision_id, revision_id), "text": html}
        raise ApiError("nosuchrevid", f"There is no revision with ID {revision_id}.")

    def _query(self, params: dict[str, str]) -> Row:
        if params.get("meta") == "siteinfo":
            return {"query": {"general": {"server": self.base, "articlepath": "/wiki/$1", "generator": "MediaWiki 1.39.17"}}}
        if params.get("list") == "recentchanges":
            return self._recent(params)
        if params.get("generator") == "allpages":
            return self._all(params)
        if "pageids" in params:
            by_id = {page.id: page for page in self.pages.values()}
            wanted = [int(each) for each in params["pageids"].split("|")]
            return {
                "query": {"pages": [self._shown(by_id[each]) if each in by_id else {"pageid": each, "missing": True} for each in wanted]}
            }
        if "titles" in params:
            return self._by_title(params["titles"])
        return {}

    def _by_title(self, written: str) -> Row:
        parts = written.split("/")
        if not written or "." in parts or ".." in parts or re.search(r"[#<>\[\]{}|\x00-\x1f]", written):
            return {"query": {"pages": [{"title": written, "invalidreason": "not a title", "invalid": True}]}}
        title = written.replace("_", " ").strip()
        title = title[:1].upper() + title[1:]
        told: Row = {} if title == written else {"normalized": [{"from": written, "to": title}]}
        page = self.pages.get(title)
        missing = {"ns": namespace_of(title), "title": title, "missing": True}
        return {"query": {**told, "pages": [missing if page is None else self._shown(page)]}}

    def _shown(self, page: Page, with_revision: bool = True) -> Row:
        row: Row = {"pageid": page.id, "ns": page.ns, "title": page.title, "lastrevid": page.newest.id}
        if page.is_redirect:
            row["redirect"] = True
        if with_revision:
            row["revisions"] = [{"revid": page.newest.id, "parentid": 0, "timestamp": self._written(page.newest.at)}]
        return row

    def _all(self, params: dict[str, str]) -> Row:
        """Pages of a namespace by title; the revisions of every second page come in a part of their own, as those of a large page do."""
        size = min(int(params["gaplimit"]), self.most)
        number, begin = int(params["gapnamespace"]), params.get("gapcontinue", "")
        titles = sorted(title.replace(" ", "_") for title, page in self.pages.items() if page.ns == number)
        titles = [title for title in titles if title >= begin]
        shown = [self.pages[title.replace("_", " ")] for title in titles[:size]]
        first = "rvcontinue" not in params
        rows = [self._shown(page, with_revision=first is (place % 2 == 0)) for place, page in enumerate(shown)]
        told: Row = {"query": {"pages": rows}} if rows else {}
        here = {"gapcontinue": begin} if begin else {}
        if first and len(rows) > 1:
            return {**told, "continue": {**here, "rvcontinue": "1", "continue": "||info"}, "batchcomplete": False}
        if len(titles) > size:
            told["continue"] = {"gapcontinue": begin if self.stuck else titles[size], "continue": "gapcontinue||"}
        return told

    def _recent(self, params: dict[str, str]) -> Row:
        since = datetime.fromisoformat(params["rcstart"])
        kinds, size = params["rctype"].split("|"), min(int(params["rclimit"]), self.most)
        rows = [row for row in self.changes if row["timestamp"] >= since and row["type"] in kinds]
        rows.sort(key=lambda row: (row["timestamp"], row["rcid"]))
        if "rccontinue" in params:
            at, change_id = params["rccontinue"].split("|")
            moment = datetime.strptime(at, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
            rows = [row for row in rows if (row["timestamp"], row["rcid"]) >= (moment, int(change_id))]
        told: Row = {"query": {"recentchanges": [{**row, "timestamp": self._written(row["timestamp"])} for row in rows[:size]]}}
        if len(rows) > size:
            following = rows[0] if self.stuck else rows[size]
            told["continue"] = {"rccontinue": f"{following['timestamp']:%Y%m%d%H%M%S}|{following['rcid']}", "continue": "-||"}
        return told

    def _written(self, moment: datetime) -> str:
        return moment.strftime("%Y-%m-%dT%H:%M:%S") + self.suffix


def _handler(wiki: Wiki) -> type[JsonHandler]:
    class Handler(JsonHandler, BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 1 << 16  # Head and body in one write: two of them wait 40 ms for each other.

        def do_GET(self) -> None:
            self._answer(urlsplit(self.path).query)

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers["Content-Length"])).decode())

        def _answer(self, written: str) -> None:
            params = {name: values[0] for name, values in parse_qs(written, keep_blank_values=True).items()}
            wiki.before(params)
            if params.get("generator") == "allpages" and "rvcontinue" not in params:
                wiki.before_page(0)
            wiki.requests.append(params)
            if wiki.answers:
                status, headers = wiki.answers.pop(0)
                return self._send(status, {}, headers)
            if urlsplit(self.path).path != PATH:
                return self._send(404, {}, {})
            found = re.search(r"session=(\w+)", self.headers.get("Cookie", ""))
            session, headers = found[1] if found else "", {}
            if not session and params.get("meta") == "tokens":
                wiki.made += 1
                session = f"s{wiki.made}"
                headers["Set-Cookie"] = f"session={session}; path=/; HttpOnly"
            try:
                if wiki.errors:
                    code, headers = wiki.errors.pop(0)
                    raise ApiError(code)
                content = wiki.answer(params, session, self.headers.get("Authorization", "").removeprefix("Bearer "))
            except ApiError as error:
                content = {"error": {"code": error.code, "info": error.info}}
                headers["MediaWiki-API-Error"] = error.code
            return self._send(200, {name: value for name, value in content.items() if value is not False}, headers)

        def _send(self, status: int, content: Any, headers: dict[str, str]) -> None:
            self.send_json(status, content, headers, wiki.clock)

    return Handler


@contextmanager
def mediawiki_server() -> Iterator[Wiki]:
    """A wiki that answers on the loopback until the end of the block."""
    wiki = Wiki()
    with serving(_handler(wiki)) as wiki.base:
        yield wiki


def later(wiki: Wiki, seconds: float) -> datetime:
    """Move the wiki's clock on."""
    wiki.clock += timedelta(seconds=seconds)
    return wiki.clock
