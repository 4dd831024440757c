"""The pages of a wiki's repository: which files are pages, and how trees and differences of trees become items and changes.

| met in a tree | what becomes of it |
|---|---|
| a file whose name ends as a page's | an item |
| any other file, a link, a submodule | left out and counted |
"""

import stat
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from urllib.parse import quote_from_bytes

from dulwich.diff_tree import RenameDetector, TreeChange, tree_changes
from dulwich.objects import Commit, ObjectID, Tree, TreeEntry

from primer_core.source_time import from_ns
from primer_core.stages import Operation
from primer_resources.connectors.access import AccessRules
from primer_resources.connectors.base import ORDER_STEP, Change, Cursor, ListedItem
from primer_resources.connectors.drive_names import show_name, unshow_name
from primer_resources.connectors.drive_walk import NOT_READ_TO_THE_END
from primer_resources.connectors.git_mirror import GitMirror

ERA = 10**9
"""Places of one era: more commits than any main line has."""
MOST_COMMITS = 20_000
"""How far back a listing looks for a page's last change. Older pages get the oldest commit looked at; each commit costs about 1 ms."""


@dataclass(frozen=True, slots=True)
class Place:
    """A commit's place: how often the history was rewritten before it, and its number on the main line since."""

    era: int
    position: int

    @property
    def order(self) -> int:
        """The same as an order of versions."""
        return (self.era * ERA + self.position) * ORDER_STEP

    def next(self) -> "Place":
        """The place of the commit after it."""
        return Place(self.era, self.position + 1)

    def back(self, steps: int) -> "Place":
        """The place of the commit so many steps before it."""
        return Place(self.era, max(0, self.position - steps))


@dataclass(slots=True)
class WikiPages:
    """Reads pages under one set of access rules."""

    mirror: GitMirror
    url: str
    branch: str
    folder: str
    suffixes: Collection[str]
    uri: str
    rules: AccessRules

    def is_wanted(self, path: str) -> bool:
        """Whether the path is a page's."""
        inside = not self.folder or path.startswith(f"{self.folder}/")
        return inside and ("*" in self.suffixes or path.lower().endswith(tuple(self.suffixes)))

    def is_page(self, entry: TreeEntry | None) -> bool:
        """Whether an entry of a tree is a page."""
        return entry is not None and entry.mode is not None and stat.S_ISREG(entry.mode) and self.is_wanted(_path(entry))

    def entries(self, head: ObjectID) -> Iterator[TreeEntry]:
        """All files at a commit, by the bytes of their paths."""
        store = self.mirror.repo.object_store
        return iter(store.iter_tree_contents(self.mirror.commit(head).tree))

    def item(self, entry: TreeEntry, commit: Commit, place: Place) -> ListedItem:
        """A page as a commit left it."""
        path = _path(entry)
        blob = (entry.sha or b"").decode()
        raw = entry.path or b""
        uri = self.uri.format(url=self._url(), branch=quote_from_bytes(self.branch.encode()), path=quote_from_bytes(raw))
        return ListedItem(
            path=path,
            native_path=blob,
            uri=uri,
            title=path.rpartition("/")[2],
            fingerprint=blob,
            modified_ns=commit.commit_time * 10**9,
            size=0,
            access=self.rules.find(path.rpartition("/")[0]),
            version=commit.id.decode()[:12],
            order=place.order,
        )

    def last_changes(self, head: ObjectID, place: Place, paths: set[bytes]) -> dict[bytes, tuple[Commit, Place]]:
        """path → the commit that gave it its content, and that commit's place."""
        found: dict[bytes, tuple[Commit, Place]] = {}
        line = self.mirror.main_line(head)
        commit, steps = self.mirror.commit(next(line)), 0
        for before_id in line:
            if steps == MOST_COMMITS or not paths:
                break
            before = self.mirror.commit(before_id)
            for change in tree_changes(self.mirror.repo.object_store, before.tree, commit.tree):
                if change.new is not None and change.new.path in paths:
                    paths.discard(change.new.path)
                    found[change.new.path] = (commit, place.back(steps))
            commit, steps = before, steps + 1
        found.update({path: (commit, place.back(steps)) for path in paths})
        return found

    def look(self, head: ObjectID, place: Place, path: str) -> ListedItem | None:
        """The page under a path at a commit; None where there is none."""
        native = unshow_name(path)
        if native is None or not self.is_wanted(path):
            return None
        raw = native.encode("utf-8", "surrogateescape")
        found = self._entry(self.mirror.commit(head), raw)
        if found is None or not stat.S_ISREG(found[0]):
            return None
        commit, steps = self.mirror.commit(head), 0
        for before_id in islice(self.mirror.main_line(head), 1, MOST_COMMITS + 1):
            before = self.mirror.commit(before_id)
            if self._entry(before, raw) != found:
                break
            commit, steps = before, steps + 1
        return self.item(TreeEntry(raw, *found), commit, place.back(steps))

    def _entry(self, commit: Commit, path: bytes) -> tuple[int, ObjectID] | None:
        """Mode and id of what stands under a path at a commit. Raises KeyError where the mirror lost a part of it."""
        mode, sha = stat.S_IFDIR, commit.tree
        for part in path.split(b"/"):
            tree = self.mirror.repo.object_store[sha] if stat.S_ISDIR(mode) else None
            if not isinstance(tree, Tree) or part not in tree:
                return None
            mode, sha = tree[part]
        return mode, sha

    def changes(self, base: ObjectID, commit_id: ObjectID, place: Place) -> list[Change]:
        """What a commit did to pages since another, in the order of their paths' bytes; always the same for the same two."""
        commit = self.mirror.commit(commit_id)
        store = self.mirror.repo.object_store
        # A page that was rewritten under its name stays that page: splitting it would pair its parts with other names.
        detector = RenameDetector(store, rewrite_threshold=None)
        found = tree_changes(store, self.mirror.commit(base).tree, commit.tree, rename_detector=detector)
        return [told for each in found for told in self._told(each, commit, place)]

    def _told(self, change: TreeChange, commit: Commit, place: Place) -> Iterator[Change]:
        old, new = change.old, change.new
        version, at = commit.id.decode()[:12], from_ns(commit.commit_time * 10**9)
        was_page = self.is_page(old) and change.type != "copy"
        if new is not None and self.is_page(new):
            old_path = _path(old) if old is not None and was_page and old.path != new.path else None
            yield Change(Operation.UPSERT, _path(new), version, place.order, at, self.item(new, commit, place), old_path)
        elif old is not None and was_page:
            yield Change(Operation.DELETE, _path(old), version, place.order, at)

    def _url(self) -> str:
        url = self.url.rstrip("/").removesuffix(".git")
        return url if "://" in url else "file://" + quote_from_bytes(url.encode("utf-8", "surrogateescape"))


def _path(entry: TreeEntry) -> str:
    return show_name((entry.path or b"").decode("utf-8", "surrogateescape"))


class WikiListing:
    """The pages at one commit. `head` None is a repository without any commit: a complete listing of nothing."""

    def __init__(self, pages: WikiPages, head: ObjectID | None, place: Place | None, cursor: Cursor | None) -> None:
        self._pages, self._head, self._place, self._cursor = pages, head, place, cursor
        self._finished = False
        self._skipped: Counter[str] = Counter()
        self._folders: set[str] = set()

    @property
    def cursor(self) -> Cursor | None:
        """The feed goes on after this very commit."""
        return self._cursor

    @property
    def problems(self) -> tuple[str, ...]:
        """A tree is all there or not at all: only one that was not read to its end is no evidence."""
        return () if self._finished else (NOT_READ_TO_THE_END,)

    @property
    def notices(self) -> tuple[str, ...]:
        """Folders that the access file names and the wiki does not have: a misspelt name protects nothing."""
        known = self._folders if self._finished else set(self._pages.rules.folders)
        return tuple(
            f"the access file names folder {place!r}, which has no page in the wiki: misspelt, or gone"
            for place in sorted(set(self._pages.rules.folders) - known)
        )

    @property
    def skipped(self) -> Mapping[str, int]:
        """Files that are no pages."""
        return dict(self._skipped)

    def __iter__(self) -> Iterator[ListedItem]:
        self._finished, self._skipped, self._folders = False, Counter(), set()
        if self._head is not None and self._place is not None:
            paths = {entry.path for entry in self._pages.entries(self._head) if self._pages.is_page(entry) and entry.path is not None}
            changed = self._pages.last_changes(self._head, self._place, paths)
            for entry in self._pages.entries(self._head):
                if entry.path not in changed or entry.path is None:
                    self._skipped["not a page"] += 1
                    continue
                item = self._pages.item(entry, *changed[entry.path])
                folder = item.path.rpartition("/")[0]
                while folder:
                    self._folders.add(folder)
                    folder = folder.rpartition("/")[0]
                yield item
        self._finished = True
