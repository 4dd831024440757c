"""A tracker over real HTTP: the part of GitHub's REST API of issues that a connector reads, with its order, pages, dates and refusals."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.json_server import JsonHandler, serving


@dataclass
class Tracker:
    """What the tracker holds and how it answers. `answers` are (status, headers) given to the next requests instead of the truth;
    `before_page` is called with the number of each page of tickets before it is cut; `refused` are beginnings of paths, and
    `refused_pages` pages of them, with the status that they get."""

    base: str = ""
    tickets: dict[int, dict[str, Any]] = field(default_factory=dict)
    comments: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    teams: list[str] = field(default_factory=list)
    token: str | None = None
    clock: datetime = datetime(2026, 6, 1, 12, tzinfo=UTC)
    answers: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    before_page: Callable[[int], None] = lambda number: None
    refused: dict[str, int] = field(default_factory=dict)
    refused_pages: dict[tuple[str, int], int] = field(default_factory=dict)
    loops: bool = False
    """Whether every page names a next one."""
    requests: list[str] = field(default_factory=list)
    suffix: str = "Z"
    """What the tracker writes behind its times; "" is a time without a zone."""
    zone: tzinfo | None = None
    """Where the tracker's clock hangs: it writes local times with their offset."""

    def put(self, number: int, body: str, title: str | None = None, at: datetime | None = None, **fields: Any) -> None:
        """Open a ticket or change it, now or at another time."""
        moment = at or self.clock
        old = self.tickets.get(number, {"created_at": moment, "comments": len(self.comments.get(number, ()))})
        self.tickets[number] = {
            "number": number, "title": title or old.get("title") or f"Ticket {number}", "state": "open", "user": {"login": "ada"},
            "labels": [], "html_url": f"{self.base}/issues/{number}", **old, "body": body, "updated_at": moment, **fields,
        }  # fmt: skip
        if title is not None:
            self.tickets[number]["title"] = title

    def comment(self, number: int, body: str, at: datetime | None = None) -> None:
        """Comment on a ticket, which changes it."""
        moment = at or self.clock
        made = self.comments.setdefault(number, [])
        made.append({"id": len(made) + 1, "user": {"login": "bob"}, "created_at": moment, "updated_at": moment, "body": body})
        self.tickets[number] |= {"comments": len(made), "updated_at": moment}

    def remove(self, number: int) -> None:
        del self.tickets[number]

    def load(self, folder: Path) -> None:
        """Take in a folder of the corpus's tickets."""
        for file in sorted(folder.glob("*.json")):
            row = json.loads(file.read_text(encoding="utf-8"))
            number = row["number"]
            self.comments[number] = [
                {"id": n, "user": {"login": each["author"]}, "body": each["body"],
                 "created_at": datetime.fromisoformat(each["created_at"]), "updated_at": datetime.fromisoformat(each["updated_at"])}
                for n, each in enumerate(row["comments"])
            ]  # fmt: skip
            self.put(number, row["body"], row["title"], datetime.fromisoformat(row["updated_at"]), state=row["state"],
                     user={"login": row["author"]}, labels=[{"name": name} for name in row["labels"]],
                     created_at=datetime.fromisoformat(row["created_at"]), comments=len(row["comments"]))  # fmt: skip

    def _written(self, value: Any) -> Any:
        if isinstance(value, datetime):
            return value.strftime("%Y-%m-%dT%H:%M:%S") + self.suffix if self.zone is None else value.astimezone(self.zone).isoformat()
        if isinstance(value, dict):
            return {name: self._written(each) for name, each in value.items()}
        return [self._written(each) for each in value] if isinstance(value, list) else value

    def answer(self, path: str, query: dict[str, str]) -> tuple[int, Any, str | None]:
        """(status, content, query of the next page) for a request."""
        parts = path.strip("/").split("/")
        if parts == ["issues"]:
            number = int(query.get("page", 1))
            self.before_page(number)
            since = datetime.fromisoformat(query["since"]) if "since" in query else datetime.min.replace(tzinfo=UTC)
            rows = [row for row in self.tickets.values() if row["updated_at"].replace(microsecond=0) >= since]
            rows.sort(key=lambda row: (row["updated_at"], row["number"]))
            return self._page(rows, query)
        if parts == ["teams"]:
            return self._page([{"slug": name} for name in self.teams], query)
        ticket = int(parts[1])
        if ticket not in self.tickets:
            return 404, {"message": "Not Found"}, None
        if parts[2:] == ["comments"]:
            return self._page(self.comments.get(ticket, []), query)
        return 200, self._written(self.tickets[ticket]), None

    def _page(self, rows: list[Any], query: dict[str, str]) -> tuple[int, Any, str | None]:
        number, size = int(query.get("page", 1)), int(query.get("per_page", 30))
        more = len(rows) > number * size
        following = "&".join(f"{name}={value}" for name, value in {**query, "page": str(number + 1)}.items())
        return 200, self._written(rows[(number - 1) * size : number * size]), following if more or self.loops else None


def _handler(tracker: Tracker) -> type[JsonHandler]:
    class Handler(JsonHandler, BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            split = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(split.query).items()}
            tracker.requests.append(self.path)
            if tracker.answers:
                status, headers = tracker.answers.pop(0)
                return self._send(status, {}, headers)
            if tracker.token is not None and self.headers.get("Authorization") != f"Bearer {tracker.token}":
                return self._send(401, {"message": "Bad credentials"}, {})
            for start, status in tracker.refused.items():
                if split.path.startswith(start):
                    return self._send(status, {}, {})
            if (split.path, int(query.get("page", 1))) in tracker.refused_pages:
                return self._send(tracker.refused_pages[split.path, int(query.get("page", 1))], {}, {})
            status, content, following = tracker.answer(split.path, query)
            link = {"Link": f'<{tracker.base}{split.path}?{following}>; rel="next"'} if following else {}
            return self._send(status, content, link)

        def _send(self, status: int, content: Any, headers: dict[str, str]) -> None:
            self.send_json(status, content, headers, tracker.clock)

    return Handler


@contextmanager
def ticket_server() -> Iterator[Tracker]:
    """A tracker that answers on the loopback until the end of the block."""
    tracker = Tracker()
    with serving(_handler(tracker)) as tracker.base:
        yield tracker


def later(tracker: Tracker, seconds: float) -> datetime:
    """Move the tracker's clock on."""
    tracker.clock += timedelta(seconds=seconds)
    return tracker.clock
