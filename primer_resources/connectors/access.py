"""The access file: who may read which folder of a source.

Plain folders carry no groups that a search could use, so they are written beside the folder, in `<folder>.access.yaml`:

    groups: [everyone]        # whatever no folder below names
    folders:
      HR: [hr]
      HR/Private: [board]     # the nearest listed folder up the path wins
      Drafts: []              # nobody

A file that is there and cannot be used opens nothing: every document's permissions count as unreadable, so none is shown.
"""

import hashlib
import json
import os
import reprlib
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, StrictStr, StringConstraints, ValidationError

from primer_resources.connectors.base import Access
from primer_resources.strict_yaml import StrictYamlError, load_strict_yaml

SUFFIX = ".access.yaml"
MAX_BYTES = 4_000_000
"""Some 50,000 folders. A larger file is no access file, and YAML of that size takes minutes to read."""

Group = Annotated[StrictStr, StringConstraints(min_length=1, strip_whitespace=True)]


class AccessFile(BaseModel):
    """What the file may hold. `groups` left out means the source's own default groups."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    groups: tuple[Group, ...] = ()
    folders: dict[StrictStr, tuple[Group, ...]] = {}


class AccessFileError(Exception):
    """The file cannot be used: the text names the key and the fix."""


@dataclass(frozen=True, slots=True)
class AccessRules:
    """The rules of one drive, as of one reading. `folders` maps a folder's path ("HR/Private", NFC) to its groups.

    With `error` set nothing is readable.
    """

    default: tuple[str, ...]
    folders: Mapping[str, tuple[str, ...]]
    error: str = ""

    @property
    def digest(self) -> str:
        """What changes when any of the rules does."""
        values = [list(self.default), {place: list(groups) for place, groups in sorted(self.folders.items())}, self.error]
        return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:16]

    def find(self, folder: str) -> Access:
        """Access of the documents in a folder ("" is the root, "/" between parts): the nearest listed folder up the path decides."""
        if self.error:
            return Access(scope="", groups=(), readable=False, error=self.error)
        place = unicodedata.normalize("NFC", folder)
        while place:
            groups = self.folders.get(place)
            if groups is not None:
                return Access(scope=place, groups=groups)
            place = place.rpartition("/")[0]
        return Access(scope="", groups=self.default)


def _normalise(key: str) -> str:
    """The folder path that a key names, NFC. Raises AccessFileError for what is no path below the root."""
    place = unicodedata.normalize("NFC", key).rstrip("/")
    parts = place.split("/")
    if key.startswith("/") or any(part in ("", ".", "..") for part in parts):
        raise AccessFileError(f"folders: {key!r} is no folder below the root; write it like HR/Private (the root itself has `groups`)")
    return place


def _show(value: Any) -> str:
    """A value of the file in an error: short, and never spelling out nested aliases, which may stand for more than memory holds."""
    return f"a {type(value).__name__}" if isinstance(value, (list, dict)) else reprlib.repr(value)


def _parse(text: str) -> AccessFile:
    try:
        content = load_strict_yaml(text)
    except StrictYamlError as error:
        raise AccessFileError(str(error)) from error
    if not isinstance(content, dict):
        raise AccessFileError(f"it holds {type(content).__name__}, not a mapping; write `groups: [...]` and `folders: {{HR: [hr]}}`")
    try:
        return AccessFile.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        unknown = first["type"] == "extra_forbidden"
        fix = "only `groups` and `folders` are known" if unknown else "write a list of group names, [] for nobody"
        raise AccessFileError(f"{key} = {_show(first['input'])} is not valid ({first['msg']}); {fix}") from error


def _rules(parsed: AccessFile, default: tuple[str, ...]) -> AccessRules:
    folders: dict[str, tuple[str, ...]] = {}
    for key, groups in parsed.folders.items():
        place = _normalise(key)
        if place in folders:
            raise AccessFileError(f"folders: {key!r} names a folder that stands there already; keep one of them")
        folders[place] = _distinct(groups)
    return AccessRules(_distinct(parsed.groups if "groups" in parsed.model_fields_set else default), folders)


def _distinct(groups: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(groups)))


def absolute_path(path: Path) -> Path:
    """The absolute form of a path as people wrote it: "." and ".." taken out, links left in."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - Path.resolve would replace links by what they lead to


def access_file_beside(root: Path) -> Path:
    """Where the access file of a folder is looked for: beside it, `<folder>.access.yaml`."""
    place = absolute_path(root)
    return place.parent / (place.name + SUFFIX)


def load_rules_file(access_file: Path | None, default: tuple[str, ...]) -> AccessRules:
    """The rules of a source that is no folder, so that no file stands beside it: those of the file named, or `default` for all."""
    return AccessRules(_distinct(default), {}) if access_file is None else load_rules(access_file.parent, access_file, default)


def load_rules(root: Path, access_file: Path | None, default: tuple[str, ...]) -> AccessRules:
    """The rules of the drive at `root`. `access_file` None looks beside the folder, and there no file means `default` for all.

    Never raises: a file that is present and unusable, or named in the settings and absent, gives rules that open nothing and say why.
    """
    path = access_file or access_file_beside(root)
    try:
        if path.exists() and not path.is_file():
            # Asked before it is opened: opening a named pipe would wait for ever.
            raise AccessFileError("it is no regular file; write one")
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise AccessFileError(f"it is larger than {MAX_BYTES} bytes; list folders, not documents")
        return _rules(_parse(raw.decode("utf-8-sig")), default)
    except FileNotFoundError:
        # A dangling link is present: only a name that is not there at all means that nobody wrote rules.
        if access_file is None and not path.is_symlink():
            return AccessRules(_distinct(default), {})
        problem = "it is not there; create it, or take `access_file` out of the source's settings"
    except OSError as error:
        problem = f"it cannot be read ({error.strerror}); let Primer read it"
    except UnicodeDecodeError as error:
        problem = f"it is not UTF-8 (byte {error.start}); save it as UTF-8"
    except AccessFileError as error:
        problem = str(error)
    return AccessRules((), {}, f"access file {path}: {problem}")
