"""A directory in a file, YAML or (by its suffix) JSON, read again whenever it changes:

people:
  ana: [hr]
  ben: [staff, board]
groups:                  # groups that stand in others: who is in hr is in staff too
  hr: [staff]
  staff: [everyone]
"""

import json
import os
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, StrictStr, StringConstraints, ValidationError

from primer_resources.directory.base import DirectoryUnreadable, UnknownPerson
from primer_resources.strict_yaml import StrictYamlError, load_strict_yaml

MAX_BYTES = 64_000_000
"""Some 500,000 people. YAML of more than a few MB takes minutes to read; JSON does not."""

Name = Annotated[StrictStr, StringConstraints(pattern=r"\S")]


class DirectoryFile(BaseModel):
    """What the file may hold."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    people: dict[Name, tuple[Name, ...]]
    groups: dict[Name, tuple[Name, ...]] = {}


@dataclass(frozen=True, slots=True)
class _Read:
    """The file as it was read. `stamp` changes when the file does."""

    stamp: tuple[int, ...]
    people: Mapping[str, frozenset[str]]


class FileDirectory:
    """The directory that stands in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last: _Read | None = None

    def groups_of(self, person: str) -> frozenset[str]:
        """The groups of a person, those that contain his groups included. Raises UnknownPerson or DirectoryUnreadable."""
        groups = self._read().people.get(_name(person))
        if groups is None:
            raise UnknownPerson(f"person {person!r} is not in the directory {self._path}; write the name as it stands there, or add it")
        return groups

    def people_in(self, groups: Collection[str]) -> tuple[str, ...]:
        """The people who are in any of the groups, by name. Raises DirectoryUnreadable."""
        wanted = set(groups)
        return tuple(sorted(person for person, own in self._read().people.items() if not wanted.isdisjoint(own)))

    def _read(self) -> _Read:
        """The file as it is now. One that changed and cannot be read is never answered from what was read before."""
        try:
            with self._path.open("rb") as file:
                facts = os.fstat(file.fileno())
                stamp = (facts.st_ino, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_size)
                if self._last is not None and self._last.stamp == stamp:
                    return self._last
                raw = file.read(MAX_BYTES + 1)
            self._last = _Read(stamp, self._people(raw))
        except OSError as error:
            raise self._unreadable(f"{error.strerror}; let Primer read it") from error
        return self._last

    def _people(self, raw: bytes) -> dict[str, frozenset[str]]:
        """person → all of his groups."""
        if len(raw) > MAX_BYTES:
            raise self._unreadable(f"it is larger than {MAX_BYTES} bytes; leave out people who do not search")
        try:
            text = raw.decode("utf-8-sig")
            content = json.loads(text, object_pairs_hook=_unique) if self._path.suffix == ".json" else load_strict_yaml(text)
            parsed = DirectoryFile.model_validate(content)
        except UnicodeDecodeError as error:
            raise self._unreadable(f"it is not UTF-8 (byte {error.start}); save it as UTF-8") from error
        except json.JSONDecodeError as error:
            raise self._unreadable(f"it is no valid JSON (line {error.lineno}): {error.msg}; mend that line") from error
        except (StrictYamlError, RecursionError) as error:
            raise self._unreadable(str(error)) from error
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "it"
            raise self._unreadable(
                f"{where} is not valid ({first['msg']}); write `people: {{ana: [hr]}}` and `groups: {{hr: [staff]}}`"
            ) from error
        above = {_name(group): tuple(_name(each) for each in parents) for group, parents in parsed.groups.items()}
        people: dict[str, frozenset[str]] = {}
        for person, groups in parsed.people.items():
            if _name(person) in people:
                raise self._unreadable(f"person {person!r} stands twice; keep one of them")
            people[_name(person)] = _with_parents((_name(group) for group in groups), above)
        return people

    def _unreadable(self, problem: str) -> DirectoryUnreadable:
        return DirectoryUnreadable(f"directory {self._path} cannot be read, so nobody's groups are known: {problem}")


def _name(text: str) -> str:
    return unicodedata.normalize("NFC", text.strip())


def _with_parents(groups: Iterable[str], above: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    """The groups and all that they stand in. Groups that stand in each other end the walk and are all included."""
    found: set[str] = set()
    waiting = list(groups)
    while waiting:
        group = waiting.pop()
        if group not in found:
            found.add(group)
            waiting.extend(above.get(group, ()))
    return frozenset(found)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        twice = next(key for key, _ in pairs if sum(other == key for other, _ in pairs) > 1)
        raise StrictYamlError(f"key {twice!r} stands twice; keep one of them")
    return values
