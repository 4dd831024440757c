"""A real git repository that a test writes commit by commit, and the corpus's edit histories as such repositories."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from dulwich.index import commit_tree
from dulwich.objects import Blob, Commit, ObjectID
from dulwich.refs import Ref
from dulwich.repo import Repo

BRANCH = Ref(b"refs/heads/main")


@dataclass
class HistoryRepo:
    """A bare repository, made where it is missing, whose files are kept as path → blob id."""

    folder: Path
    files: dict[bytes, ObjectID] = field(default_factory=dict)
    repo: Repo = field(init=False)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        if (self.folder / "HEAD").is_file():
            self.repo = Repo(str(self.folder))
            return
        self.repo = Repo.init_bare(str(self.folder))
        self.repo.refs.set_symbolic_ref(Ref(b"HEAD"), BRANCH)

    def put(self, path: str | bytes, data: bytes) -> None:
        """Change a file; it is committed by `commit`."""
        blob = Blob.from_string(data)
        self.repo.object_store.add_object(blob)
        self.files[path if isinstance(path, bytes) else path.encode()] = blob.id

    def remove(self, path: str) -> None:
        del self.files[path.encode()]

    def rename(self, old: str, new: str) -> None:
        self.files[new.encode()] = self.files.pop(old.encode())

    def commit(self, at: int = 1_700_000_000, parents: list[ObjectID] | None = None, move: bool = True) -> ObjectID:
        """Commit what stands, at a time in seconds. `parents` default to the branch's head."""
        made = Commit()
        made.tree = commit_tree(self.repo.object_store, [(path, blob, 0o100644) for path, blob in self.files.items()])
        head = self.head
        made.parents = ([] if head is None else [head]) if parents is None else parents
        made.author = made.committer = b"A Writer <writer@example.org>"
        made.author_time = made.commit_time = at
        made.author_timezone = made.commit_timezone = 0
        made.message = b"edit"
        self.repo.object_store.add_object(made)
        if move:
            self.repo.refs[BRANCH] = made.id
        return made.id

    @property
    def head(self) -> ObjectID | None:
        return self.repo.refs[BRANCH] if BRANCH in self.repo.refs.allkeys() else None

    def reset(self, commit: ObjectID) -> None:
        """Move the branch, as a forced push does."""
        self.repo.refs[BRANCH] = commit

    def contents(self) -> dict[str, bytes]:
        """path → bytes of what stands."""
        return {path.decode(): self.repo.object_store.get_raw(blob)[1] for path, blob in self.files.items()}


@dataclass
class EditHistory:
    """One of the corpus's histories. `first` and `last` cut it to a range of events (1-based, both in); with `touched_only` pages that no
    event of the range touches are left out."""

    folder: Path
    first: int = 1
    last: int = 10**9
    touched_only: bool = False

    def __post_init__(self) -> None:
        self._blobs = ZipFile(self.folder / "blobs.zip")

    def _rows(self, name: str) -> Iterator[dict[str, Any]]:
        with (self.folder / name).open(encoding="utf-8") as file:
            yield from map(json.loads, file)

    def data(self, blob: str) -> bytes:
        return self._blobs.read(blob)

    def start(self, repo: HistoryRepo) -> None:
        """Write what stood before the first event of the range, as one commit."""
        for row in self._rows("base.jsonl"):
            repo.put(row["path"], self.data(row["blob"]))
        for row in self._rows("events.jsonl"):
            if row["seq"] < self.first:
                self._apply(repo, row)
        if self.touched_only:
            touched = {row.get(key) for row in self._wanted() for key in ("path", "old_path")}
            repo.files = {path: blob for path, blob in repo.files.items() if path.decode() in touched}
        repo.commit(at=1_600_000_000)

    def commits(self, repo: HistoryRepo) -> Iterator[list[dict[str, Any]]]:
        """Write the events of the range, one commit of the history at a time. Yields the events of each after it was written."""
        for _, group in groupby(self._wanted(), key=lambda row: row["commit"]):
            rows = list(group)
            for row in rows:
                self._apply(repo, row)
            repo.commit(at=int(datetime.fromisoformat(rows[0]["time"]).timestamp()))
            yield rows

    def _wanted(self) -> list[dict[str, Any]]:
        return [row for row in self._rows("events.jsonl") if self.first <= row["seq"] <= self.last]

    def _apply(self, repo: HistoryRepo, row: Mapping[str, Any]) -> None:
        if row["op"] == "delete":
            repo.remove(row["path"])
            return
        if row["op"] == "rename":
            repo.remove(row["old_path"])
        repo.put(row["path"], self.data(row["after"]))
