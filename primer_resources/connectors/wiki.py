"""The wiki connector: a git repository of pages (Markdown, HTML) as a source.

The listing is the tree at the branch's head, and complete by its nature. The feed is the main line of commits. A version's order is the
commit's place on that line, never its date: commits share a second, and clocks go back.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated

from dulwich.objects import ObjectID
from pydantic import AfterValidator, AwareDatetime, BaseModel, ValidationError

from primer_core.failures import PrimerError, SystemFault, Transient
from primer_core.stages import Operation
from primer_resources.connectors.access import AccessRules, load_rules_file
from primer_resources.connectors.base import Change, ChangePage, Cursor, CursorExpired, Decoded, Fetched, ListedItem
from primer_resources.connectors.drive_names import show_name
from primer_resources.connectors.git_mirror import GitMirror
from primer_resources.connectors.kind import Names, SourceSettings
from primer_resources.connectors.private_copy import write_copy
from primer_resources.connectors.wiki_pages import Place, WikiListing, WikiPages
from primer_resources.credentials import Address

PAGE_CHANGES = 100
"""Changed pages a piece of the feed: what a crash may read again."""


def _check_template(template: str) -> str:
    try:
        shown = template.format(url="u", branch="b", path="p")
    except (KeyError, IndexError, ValueError) as error:
        raise ValueError("only {url}, {branch} and {path} are filled in") from error
    if "p" not in shown or "{path}" not in template:
        raise ValueError("it has no {path}, so all pages would have one address")
    return template


def _check_folder(folder: str) -> str:
    return folder.strip("/")


class WikiSettings(SourceSettings):
    """Settings of one wiki."""

    url: Address
    """The repository: https://…, ssh://…, or the path of one on this machine."""
    branch: str = ""
    """Empty is the one that the repository shows first."""
    folder: Annotated[str, AfterValidator(_check_folder)] = ""
    """Only pages below this folder of the repository; empty is all."""
    suffixes: Names = (".md", ".markdown", ".html", ".htm", ".txt")
    """What is a page, by the end of its name; "*" is every file."""
    uri: Annotated[str, AfterValidator(_check_template)] = "{url}/{path}"
    """Address of a page for people, from {url}, {branch} and {path}, such as {url}/blob/{branch}/{path}."""


class _PushedCommit(BaseModel):
    id: str
    timestamp: AwareDatetime
    added: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


class _Push(BaseModel):
    ref: str
    commits: tuple[_PushedCommit, ...] = ()


class WikiConnector:
    """A repository of pages as a source of documents."""

    def __init__(self, settings: WikiSettings, credentials_ref: str | None, work: Path) -> None:
        self.settings = settings
        self._mirror = GitMirror(work / "mirror.git", settings.url, settings.branch, credentials_ref)

    def list(self, cursor: Cursor | None = None) -> WikiListing:
        """The pages at the branch's head as it is now."""
        rules = self._rules()
        head = self._mirror.update()
        pages = self._pages(rules)
        place = None if head is None else self._place_of(head, cursor)
        next_cursor = None if head is None or place is None else _cursor(head, place, rules)
        return WikiListing(pages, head, place, next_cursor)

    def changes(self, cursor: Cursor) -> ChangePage | None:
        """The commits since the cursor's, oldest first; one whose pages are too many for a piece goes on in the next."""
        rules = self._rules()
        if cursor["rules"] != rules.digest:
            raise CursorExpired(f"who may read which folder of {self.settings.url} was changed")
        head = self._mirror.update()
        if head is None:
            raise CursorExpired(f"repository {self.settings.url} has no commit any more")
        base, place, skip = ObjectID(cursor["commit"].encode()), Place(cursor["era"], cursor["position"]), int(cursor["skip"])
        commits = self._since(base, head)
        if skip and (not commits or commits[0] != _reached(cursor)):
            part_read = cursor["reading"][:12]
            raise CursorExpired(f"the history of {self.settings.url} was rewritten, or led past {part_read}, while that was being read")
        pages = self._pages(rules)
        changes: list[Change] = []
        for commit in commits:
            new = pages.changes(base, commit, place.next())[skip:]
            room = PAGE_CHANGES - len(changes)
            if len(new) > room:
                taken = new[:room]
                return ChangePage((*changes, *taken), _cursor(base, place, rules, commit.decode(), skip + len(taken)), more=True)
            changes.extend(new)
            base, place, skip = commit, place.next(), 0
        return ChangePage(tuple(changes), _cursor(base, place, rules), more=False)

    def look(self, path: str, cursor: Cursor | None = None) -> ListedItem | None:
        """The page at the branch's head as it is now. Raises Transient or SystemFault where the repository does not answer."""
        head = self._mirror.update()
        if head is None:
            return None
        try:
            return self._pages(self._rules()).look(head, self._place_of(head, cursor), path)
        except KeyError as error:
            raise SystemFault(f"the mirror of {self.settings.url} lost object {error}; remove its folder, and it is made again") from error

    def fetch(self, item: ListedItem, target: Path) -> Fetched:
        """Write the page's bytes, from the mirror. Raises DocumentFault (too_large), Transient (the mirror lost it) or SystemFault."""
        try:
            data = self._mirror.read(item.native_path)
        except KeyError as error:
            raise Transient(f"{item.path} is not in the mirror any more; the next sync tells what became of it") from error
        return write_copy(item, data, target, self.settings.max_bytes)

    def decode(self, headers: Mapping[str, str], body: bytes) -> Decoded:
        """The pages that a push tells of, as GitHub, GitLab and Gitea send it. Their order is 0: only the feed knows a commit's place."""
        try:
            push = _Push.model_validate_json(body)
        except ValidationError as error:
            first = error.errors()[0]
            name = ".".join(str(part) for part in first["loc"])
            raise PrimerError(f"webhook of {self.settings.url}: {name or 'its body'} is not that of a push ({first['msg']})") from error
        if self.settings.branch and push.ref != f"refs/heads/{self.settings.branch}":
            return Decoded(ignored=(f"{push.ref} is not {self.settings.branch}, which this source reads",))
        pages = self._pages(AccessRules((), {}))
        told: list[Change] = []
        left_out = 0
        for commit in push.commits:
            kinds = ((Operation.UPSERT, (*commit.added, *commit.modified)), (Operation.DELETE, commit.removed))
            for operation, paths in kinds:
                wanted = [path for path in paths if pages.is_wanted(path)]
                left_out += len(paths) - len(wanted)
                told.extend(_told(operation, show_name(path), commit.id, commit.timestamp) for path in wanted)
        return Decoded(tuple(told), (f"{left_out} files are no pages",) if left_out else ())

    def close(self) -> None:
        """Close the mirror."""
        self._mirror.close()

    def _pages(self, rules: AccessRules) -> WikiPages:
        return WikiPages(self._mirror, self.settings.url, self.settings.branch, self.settings.folder, self.settings.suffixes,
                         self.settings.uri, rules)  # fmt: skip

    def _rules(self) -> AccessRules:
        return load_rules_file(self.settings.access_file, self.settings.groups)

    def _since(self, base: ObjectID, head: ObjectID) -> Sequence[ObjectID]:
        """The commits after `base` up to the head, oldest first. Where `base` came in from the side, the head is one step from it."""
        commits: deque[ObjectID] = deque()
        for commit in self._mirror.main_line(head):
            if commit == base:
                return commits
            commits.appendleft(commit)
        if self._mirror.is_ancestor(base, head):
            return [head]
        raise CursorExpired(f"the history of {self.settings.url} was rewritten: {base.decode()[:12]} is not behind its head any more")

    def _place_of(self, head: ObjectID, cursor: Cursor | None) -> Place:
        """Where the head stands: on from the commit that was read last, or in a new era where that one is not behind it any more."""
        line = list(self._mirror.main_line(head))
        if cursor is None:
            return Place(0, len(line))
        base = _reached(cursor)
        position = cursor["position"] + (1 if cursor["skip"] else 0)
        if base in line:
            return Place(cursor["era"], position + line.index(base))
        if self._mirror.is_ancestor(base, head):
            return Place(cursor["era"], position + 1)
        return Place(cursor["era"] + 1, len(line))


def _told(operation: Operation, path: str, commit: str, at: datetime) -> Change:
    return Change(operation, path, commit[:12], 0, at)


def _cursor(commit: ObjectID, place: Place, rules: AccessRules, reading: str = "", skip: int = 0) -> Cursor:
    """All up to `commit`, which stands at `place`, and of the one after it, `reading`, the first `skip` changes."""
    return {
        "commit": commit.decode(), "era": place.era, "position": place.position, "reading": reading, "skip": skip,
        "rules": rules.digest,
    }  # fmt: skip


def _reached(cursor: Cursor) -> ObjectID:
    """The last commit that any change was told of."""
    return ObjectID((cursor["reading"] if cursor["skip"] else cursor["commit"]).encode())
