"""The listing of a drive over WebDAV: every collection is asked for its members, whatever its own time says, and all must answer whole.

| met on the way | what the listing does |
|---|---|
| a file | an item; with fault NAME_NOT_UTF8 where its name is not UTF-8, UNREADABLE where it has neither a time nor an entity tag |
| a junk or hidden name | left out and counted (rules in drive_names) |
| a collection | entered at its own place in the order of names, up to DEEPEST levels |
| a collection that does not answer, not wholly, or no more | a problem; the walk goes on, up to GIVE_UP such answers |
| a resource whose status is bad, an address that is not directly inside | a problem |
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from primer_core.failures import Deferred, Reason, SystemFault, Transient
from primer_resources.connectors.access import AccessRules
from primer_resources.connectors.base import ListedItem
from primer_resources.connectors.dav_client import DavClient
from primer_resources.connectors.dav_paths import decode, shown
from primer_resources.connectors.dav_xml import Resource
from primer_resources.connectors.drive_names import find_junk, is_utf8, show_name
from primer_resources.connectors.drive_walk import NOT_READ_TO_THE_END, PROBLEMS_SHOWN
from primer_resources.connectors.service import Refused

DEEPEST = 100
"""Levels of folders. A server that shows a folder inside itself has no end."""
GIVE_UP = 3
"""Collections that do not answer, each asked several times, before the walk ends."""


@dataclass(frozen=True, slots=True)
class _Folder:
    """A collection under way: its place, its path as people see it, and its members that were not yet looked at, in order."""

    place: str
    path: str
    members: Iterator[tuple[str, str, Resource]]


class DavListing:
    """One listing. Memory holds the members of the collections on the way down, so the widest is what counts."""

    def __init__(self, client: DavClient, rules: AccessRules, include_hidden: bool) -> None:
        self._client, self._rules, self._include_hidden = client, rules, include_hidden
        self._begin()

    def _begin(self) -> None:
        self._finished, self._unanswered, self._more_problems = False, 0, 0
        self._problems: list[str] = []
        self._skipped: Counter[str] = Counter()
        self._scopes: set[str] = set()

    @property
    def cursor(self) -> None:
        """WebDAV has no feed that every server keeps."""

    @property
    def problems(self) -> tuple[str, ...]:
        """What could not be listed. Empty only after a listing that was read to its end and saw everything."""
        more = (f"and {self._more_problems} more",) if self._more_problems else ()
        return (*self._problems, *more, *(() if self._finished else (NOT_READ_TO_THE_END,)))

    @property
    def skipped(self) -> Mapping[str, int]:
        """What was left out on purpose: rule → number of names."""
        return dict(self._skipped)

    @property
    def notices(self) -> tuple[str, ...]:
        """Folders that the access file names and the server does not have: a misspelt name protects nothing."""
        missing = sorted(set(self._rules.folders) - self._scopes) if not self.problems else []
        return tuple(f"the access file names folder {place!r}, which is not on the drive: misspelt, or gone" for place in missing)

    def __iter__(self) -> Iterator[ListedItem]:
        """Walk from the root, in the order of names, a folder's contents at its own place.

        Raises SystemFault where the root is no collection, Transient or Deferred where it does not answer, PrimerError for credentials
        that are refused.
        """
        self._begin()
        try:
            stack = [self._enter("", "")]
        except Refused as refused:
            raise SystemFault(f"drive {self._client.root} cannot be listed: {refused}") from refused
        while stack:
            folder = stack[-1]
            name, seen, resource = next(folder.members, ("", "", None))
            if resource is None:
                stack.pop()
                continue
            place = f"{folder.place}/{name}" if folder.place else name
            path = f"{folder.path}/{seen}" if folder.path else seen
            if not resource.is_collection:
                yield self.item(place, path, resource)
                continue
            entered = self._try_to_enter(place, path, len(stack))
            if entered is not None:
                stack.append(entered)
            elif self._unanswered == GIVE_UP:
                return
        self._finished = True

    def item(self, place: str, path: str, resource: Resource) -> ListedItem:
        """A file as an item."""
        fault, error = None, ""
        if not is_utf8(decode(place)):
            fault, error = Reason.NAME_NOT_UTF8, "a name in the path is not UTF-8; the bytes are shown as \\xNN"
        elif not resource.fingerprint:
            fault, error = Reason.UNREADABLE, "the server tells neither its time nor an entity tag, so nobody would see it change"
        return ListedItem(
            path=path,
            native_path=place,
            uri=self._client.address(place),
            title=path.rpartition("/")[2],
            fingerprint=resource.fingerprint,
            modified_ns=resource.modified_ns,
            size=resource.size or 0,
            access=self._rules.find(path.rpartition("/")[0]),
            fault=fault,
            error=error,
            version=resource.etag.strip('"') if resource.is_strong else "",
        )

    def find(self, path: str) -> ListedItem | None:
        """The item that a listing shows under this path now: the collections on its way are asked for their members.

        Raises Transient where one of them does not tell, SystemFault where the root is gone.
        """
        self._begin()
        place, at, (*folders, name) = "", "", path.split("/")
        for part in folders:
            found = self._find_in(place, at, part)
            if found is None or not found[1].is_collection:
                return None
            place, at = found[0], f"{at}/{part}" if at else part
        found = self._find_in(place, at, name)
        if found is None or found[1].is_collection:
            return None
        try:
            self._client.look(found[0])
        except Refused as refused:
            raise Transient(f"{path} is not shown by itself: {refused}") from refused
        return self.item(found[0], path, found[1])

    def _find_in(self, place: str, path: str, name: str) -> tuple[str, Resource] | None:
        """(place, resource) of what a listing shows under a name in a collection."""
        try:
            members = self._enter(place, path).members
        except Refused as refused:
            if refused.status == 404 and not place:
                raise SystemFault(f"drive {self._client.root} is gone: {refused}") from refused
            raise Transient(f"{path or self._client.root} cannot be looked into: {refused}") from refused
        found = next(((f"{place}/{each}" if place else each, resource) for each, seen, resource in members if seen == name), None)
        if found is None and self._problems:
            raise Transient(f"{name} was not found, and its folder was not told wholly ({self._problems[0]})")
        return found

    def _try_to_enter(self, place: str, path: str, depth: int) -> _Folder | None:
        if depth > DEEPEST:
            self._problem(f"{path}: folders stand more than {DEEPEST} levels deep; perhaps one stands in itself")
            return None
        try:
            return self._enter(place, path)
        except Refused as refused:
            self._problem(f"{path}: {refused}")
        except (Transient, Deferred) as error:
            self._unanswered = GIVE_UP if isinstance(error, Deferred) else self._unanswered + 1
            self._problem(f"the listing broke off at {path}: {error}")
        return None

    def _enter(self, place: str, path: str) -> _Folder:
        members = self._client.members(place)
        for problem in members.problems:
            self._problem(problem)
        self._scopes.add(self._rules.find(path).scope)
        return _Folder(place, path, iter(sorted(self._named(members.resources), key=lambda member: member[1].encode())))

    def _named(self, resources: Mapping[str, Resource]) -> Iterator[tuple[str, str, Resource]]:
        """(encoded name, name as people see it, resource) of what is listed. Two names that differ in normal form alone stay apart."""
        names = Counter(shown(name) for name in resources)
        for name, resource in resources.items():
            junk = find_junk(decode(name), self._include_hidden)
            if junk is not None:
                self._skipped[junk] += 1
                continue
            yield name, shown(name) if names[shown(name)] == 1 else show_name(decode(name)), resource

    def _problem(self, text: str) -> None:
        if len(self._problems) < PROBLEMS_SHOWN:
            self._problems.append(text)
        else:
            self._more_problems += 1
