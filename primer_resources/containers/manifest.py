"""What a worker hands back of a container: the files in the task's directory, and a list of them. Light: both sides import it."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

MANIFEST = "members.json"


@dataclass(frozen=True, slots=True)
class Member:
    """A file inside a container: its path below the container, unique there, and where its bytes are for the moment."""

    path: str
    file: Path


@dataclass(frozen=True, slots=True)
class Unpacked:
    """How it ended: a reason of failures.Reason and its words, or None: the manifest lies in the task's directory."""

    reason: str | None = None
    message: str = ""


def write_manifest(directory: Path, members: Sequence[Member]) -> None:
    """Write the list of members."""
    rows = [(member.path, member.file.name) for member in members]
    (directory / MANIFEST).write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")


def read_manifest(directory: Path) -> Iterator[Member]:
    """The members, in the order in which the container has them."""
    for path, file in json.loads((directory / MANIFEST).read_text(encoding="utf-8")):
        yield Member(path, directory / Path(file).name)
