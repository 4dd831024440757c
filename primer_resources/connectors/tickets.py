"""The tickets connector: an issue tracker with GitHub's REST API of issues as a source. A ticket is a document, its comments are sections.

Both the listing and the feed read the tickets by the time of their last change, from a moment on that is closed at its start, and never
by page number over a moving order: a ticket that is edited while the pages are read moves to the end, where it is met again. The feed
tells of no deletes; the listing does.
"""

import hashlib
import json
import re
import reprlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from primer_core.failures import Deferred, DocumentFault, PrimerError, Reason, SystemFault, Transient
from primer_core.source_time import EPOCH, check_aware, to_ns
from primer_core.stages import Operation
from primer_core.time_cursor import SETTLED, TimeCursor
from primer_resources.connectors.base import Access, Change, ChangePage, Cursor, CursorExpired, Decoded, Fetched, ListedItem
from primer_resources.connectors.drive_walk import NOT_READ_TO_THE_END
from primer_resources.connectors.kind import SourceSettings
from primer_resources.connectors.private_copy import write_copy
from primer_resources.connectors.rest import Answer, RestClient
from primer_resources.connectors.service import Refused
from primer_resources.connectors.ticket_page import Comment, Ticket, render_ticket
from primer_resources.credentials import Address
from primer_resources.settings import Duration

MOST_PASSES = 5
"""Readings of one second's tickets, where they fill more than a page and change while they are read."""
MOST_PAGES = 1000
"""Pages of tickets that share a second, of a ticket's comments, of teams. A tracker that names more names them for ever."""
_GONE = (404, 410)
_NUMBER = re.compile(r"[1-9][0-9]{0,18}")


class TicketsSettings(SourceSettings):
    """Settings of one tracker."""

    url: Annotated[Address, Field(pattern=r"^https?://")]
    """The repository in the API, such as https://api.github.com/repos/OWNER/NAME."""
    permissions: Literal["groups", "teams"] = "groups"
    """Who may read: the groups of the source, or the teams that the tracker gives access, each a group of that name."""
    page_size: Annotated[int, Field(ge=1, le=100)] = 100
    throttle_quota: Duration = timedelta(seconds=60)
    """How long one sync may wait because the tracker asks it to."""


@dataclass(frozen=True, slots=True)
class _Page:
    """Tickets of a page in order, whether more follow, and the tracker's time."""

    tickets: Sequence[Ticket]
    more: bool
    at: datetime


class TicketsConnector:
    """A tracker as a source of documents."""

    def __init__(
        self, settings: TicketsSettings, credentials_ref: str | None, _work: Path, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.settings = settings
        self._client = RestClient(settings.url, credentials_ref, settings.throttle_quota, sleep)

    def list(self, cursor: Cursor | None = None) -> "TicketListing":
        """A full listing; tickets that change while it is read are shown as they were, and the feed tells of them afterwards."""
        return TicketListing(self)

    def changes(self, cursor: Cursor) -> ChangePage | None:
        """Tickets changed since, oldest change first. Permissions that changed make the cursor expire: they are every ticket's."""
        access = self.access()
        if cursor["access"] != digest_of(access):
            raise CursorExpired(f"who may read the tickets of {self.settings.url} was changed")
        place = TimeCursor.from_json(cursor["time"])
        tickets, place, more, _ = self.read_from(place)
        changes = [self._change(ticket, access) for ticket in tickets]
        return ChangePage(tuple(changes), {"access": cursor["access"], "time": place.to_json()}, more)

    def look(self, path: str, cursor: Cursor | None = None) -> ListedItem | None:
        """The ticket as it stands. A tracker says "not found" of itself too, to those who lost the right to see it: so it is asked
        whether it still shows its tickets before a ticket counts as gone.

        Raises Transient, Deferred or SystemFault where the tracker cannot tell.
        """
        if not _NUMBER.fullmatch(path):
            return None
        try:
            ticket = self._parse(Ticket, self._client.get(f"issues/{path}").content)
        except Refused as refused:
            if refused.status not in _GONE:
                raise Transient(f"ticket {path} is not shown ({refused})") from refused
            try:
                self._read(EPOCH, 1)
            except Refused as hidden:
                raise SystemFault(f"{self.settings.url} does not show its tickets any more ({hidden})") from hidden
            return None
        if ticket.pull_request is not None or str(ticket.number) != path:  # a ticket that moved to another tracker is shown from there
            return None
        return self.item(ticket, self.access())

    def fetch(self, item: ListedItem, target: Path) -> Fetched:
        """Read the ticket with all of its comments and write it as a document.

        Raises DocumentFault (unreadable, too_large), Transient (gone, or changed while it was read), Deferred or SystemFault.
        """
        path = f"issues/{item.native_path}"
        try:
            ticket = self._parse(Ticket, self._client.get(path).content)
            comments = [self._parse(Comment, each) for page in self._pages(f"{path}/comments") for each in page.content]
        except Refused as refused:
            if refused.status in _GONE:
                raise Transient(f"ticket {item.path} is gone; the next listing tells") from refused
            raise DocumentFault(Reason.UNREADABLE, f"ticket {item.path}: {refused}") from refused
        if len(comments) != ticket.comments:
            raise Transient(f"ticket {item.path} changed while it was read ({len(comments)} comments of {ticket.comments})")
        data = render_ticket(ticket, comments)
        return write_copy(item, data, target, self.settings.max_bytes, _state_of(ticket), to_ns(ticket.updated_at))

    def decode(self, headers: Mapping[str, str], body: bytes) -> Decoded:
        """The ticket that an `issues` or `issue_comment` webhook tells of."""
        try:
            content = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise PrimerError(f"webhook of {self.settings.url}: its body is no JSON ({error})") from error
        if not isinstance(content, dict):
            raise PrimerError(f"webhook of {self.settings.url}: its body is no object")
        if "issue" not in content:
            return Decoded(ignored=("it tells of no ticket",))
        try:
            ticket = Ticket.model_validate(content["issue"])
        except ValidationError as error:
            raise PrimerError(f"webhook of {self.settings.url}: {_first_fault(error, 'ticket')}") from error
        kind = next((value for name, value in headers.items() if name.lower() == "x-github-event"), "issues")
        is_gone = kind == "issues" and content.get("action") in ("deleted", "transferred")
        operation = Operation.DELETE if is_gone else Operation.UPSERT
        if ticket.pull_request is not None:
            return Decoded(ignored=(f"{ticket.number} is a pull request",))
        return Decoded((_event(operation, ticket),))

    def close(self) -> None:
        """Give the connections back."""
        self._client.close()

    def access(self) -> Access:
        """Who may read the tickets. A list of teams that cannot be read is not an empty one."""
        if self.settings.permissions == "groups":
            return Access("", tuple(sorted(set(self.settings.groups))))
        try:
            teams = [str(team["slug"]) for page in self._pages("teams") for team in page.content]
        except (Refused, Transient) as error:
            return Access("", (), readable=False, error=f"the teams of {self.settings.url} cannot be read: {error}")
        except (KeyError, TypeError) as error:
            return Access("", (), readable=False, error=f"the teams of {self.settings.url} are no list of teams ({error!r})")
        return Access("", tuple(sorted({*teams, *self.settings.groups})))

    def read_from(self, place: TimeCursor) -> tuple[Sequence[Ticket], TimeCursor, bool, datetime]:
        """The tickets that a read from a cursor takes, the cursor after them, whether more follow, and the tracker's time at the beginning.

        Goes on to further pages only while all of them share the cursor's second, and then until a whole pass shows nothing new: within
        a second pages are not in a stable order.
        """
        taken: dict[int, Ticket] = {}
        passes, began = 0, None
        while True:
            before, passes = len(taken), passes + 1
            number, page = 1, self._read(place.since, 1)
            began = began or page.at
            while True:
                for ticket in page.tickets:
                    if not place.has_seen(str(ticket.number), _state_of(ticket), ticket.updated_at):
                        taken[ticket.number] = ticket
                if not page.more or (page.tickets and page.tickets[-1].updated_at > place.since):
                    break
                if not page.tickets or number == MOST_PAGES:
                    raise Transient(f"{self.settings.url} names page after page without an end at {place.since.isoformat()}")
                number, page = number + 1, self._read(place.since, number + 1)
            if number == 1 or len(taken) == before or passes == MOST_PASSES:
                break
        tickets = sorted(taken.values(), key=lambda ticket: (ticket.updated_at, ticket.number))
        for ticket in tickets:
            place = place.after(str(ticket.number), _state_of(ticket), ticket.updated_at, page.at)
        return [ticket for ticket in tickets if ticket.pull_request is None], place, page.more, began

    def item(self, ticket: Ticket, access: Access) -> ListedItem:
        """A ticket as an item."""
        return ListedItem(
            path=str(ticket.number),
            native_path=str(ticket.number),
            uri=ticket.html_url,
            title=ticket.title,
            fingerprint=_state_of(ticket),
            modified_ns=to_ns(ticket.updated_at),
            size=0,
            access=access,
            version=_version_of(ticket),
            order=to_ns(ticket.updated_at),
        )

    def _change(self, ticket: Ticket, access: Access) -> Change:
        item = self.item(ticket, access)
        return Change(Operation.UPSERT, item.path, item.version, item.order, ticket.updated_at, item)

    def _read(self, since: datetime, number: int) -> _Page:
        params: dict[str, str | int] = {"state": "all", "sort": "updated", "direction": "asc"}
        params |= {"since": since.strftime("%Y-%m-%dT%H:%M:%SZ"), "per_page": self.settings.page_size, "page": number}
        answer = self._client.get("issues", params)
        if not isinstance(answer.content, list):
            raise SystemFault(f"{self.settings.url}/issues answered with no list of tickets; see that `url` is right")
        tickets = [self._parse(Ticket, each) for each in answer.content]
        if any(later.updated_at < earlier.updated_at for earlier, later in pairwise(tickets)):
            raise SystemFault(f"{self.settings.url} does not sort tickets by their last change; it is no tracker that can be read safely")
        return _Page(tickets, answer.next_url is not None, answer.at)

    def _pages(self, path: str) -> Iterator[Answer]:
        answer = self._client.get(path, {"per_page": self.settings.page_size})
        seen = set[str]()
        while True:
            if not isinstance(answer.content, list):
                raise SystemFault(f"{self.settings.url}/{path} answered with no list; see that `url` is right")
            yield answer
            if answer.next_url is None:
                return
            if answer.next_url in seen or not answer.content or len(seen) == MOST_PAGES:
                raise Transient(f"{self.settings.url}/{path}: its pages have no end, at {answer.next_url}")
            seen.add(answer.next_url)
            answer = self._client.get(answer.next_url)

    def _parse(self, model: type[Any], content: Any) -> Any:
        try:
            return TypeAdapter(model).validate_python(content)
        except ValidationError as error:
            raise SystemFault(f"{self.settings.url}: {_first_fault(error, model.__name__.lower())}") from error


def _first_fault(error: ValidationError, what: str) -> str:
    first = error.errors()[0]
    name = ".".join(str(part) for part in first["loc"])
    return f"{name} = {reprlib.repr(first['input'])} of a {what} is not valid ({first['msg']})"


def digest_of(access: Access) -> str:
    """What changes when who may read changes."""
    return hashlib.sha256(json.dumps([list(access.groups), access.readable]).encode()).hexdigest()[:16]


def _state_of(ticket: Ticket) -> str:
    """What changes with every edit that the ticket itself shows, also two in one second."""
    return hashlib.sha256(ticket.model_dump_json(exclude={"pull_request"}).encode("utf-8", "backslashreplace")).hexdigest()[:32]


def _version_of(ticket: Ticket) -> str:
    return check_aware(ticket.updated_at).isoformat()


def _event(operation: Operation, ticket: Ticket) -> Change:
    return Change(operation, str(ticket.number), _version_of(ticket), to_ns(ticket.updated_at), ticket.updated_at)


class TicketListing:
    """All tickets, oldest change first. Memory holds their numbers."""

    def __init__(self, connector: TicketsConnector) -> None:
        self._connector = connector
        self._problems: tuple[str, ...] = (NOT_READ_TO_THE_END,)
        self._cursor: Cursor | None = None

    @property
    def cursor(self) -> Cursor | None:
        """The feed goes on shortly before this listing began."""
        return self._cursor

    @property
    def problems(self) -> tuple[str, ...]:
        """Why it is no evidence of absence; empty only after all pages were read to the last one."""
        return self._problems

    @property
    def notices(self) -> tuple[str, ...]:
        """A tracker gives none."""
        return ()

    @property
    def skipped(self) -> Mapping[str, int]:
        """Pull requests stand among the tickets and are none; they are left out without a count."""
        return {}

    def __iter__(self) -> Iterator[ListedItem]:
        self._problems, self._cursor = (NOT_READ_TO_THE_END,), None
        access = self._connector.access()
        place, more, shown, began = TimeCursor(EPOCH), True, set[int](), None
        while more:
            try:
                tickets, place, more, at = self._connector.read_from(place)
            except (Transient, Deferred) as error:
                if not shown:
                    raise
                self._problems = (f"the listing broke off after {len(shown)} tickets: {error}",)
                return
            began = began or at
            for ticket in tickets:
                if ticket.number not in shown:
                    shown.add(ticket.number)
                    yield self._connector.item(ticket, access)
        self._cursor = {"access": digest_of(access), "time": TimeCursor((began or EPOCH + SETTLED) - SETTLED).to_json()}
        self._problems = ()
