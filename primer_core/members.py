"""Members: how a file inside a mail or an archive is named as a document of its own. Pure."""

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

MOST_NAME = 180
"""Longest part of a member's path, in characters: a file system's 255 bytes with room for what is put behind it."""
UNNAMED = "unnamed"

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_RESOURCE_FORKS = re.compile(r"(?:^|/)(?:__MACOSX/|\._|\.DS_Store$|Thumbs\.db$)")


def is_litter(name: str) -> bool:
    """Whether a member is what an operating system leaves in archives, and no file of a person's."""
    return bool(_RESOURCE_FORKS.search(name))


def member_path(name: str) -> str:
    """A member's name as a relative path: no way up, no root, no drive, no control characters, no part that is too long."""
    parts = [part.strip() for part in _CONTROL.sub("_", name).replace("\\", "/").split("/")]
    kept = [_shorten(part) for part in parts if part not in ("", ".", "..") and not re.fullmatch(r"[A-Za-z]:", part)]
    return "/".join(kept) or UNNAMED


def unique_paths(names: Iterable[str]) -> Iterator[str]:
    """A path for each name, in order; one that was given before gets a number, so that no member hides another."""
    given: set[str] = set()
    for name in names:
        wanted = path = member_path(name)
        number = 2
        while path in given:
            place = PurePosixPath(wanted)
            path = str(place.with_name(f"{place.stem} ({number}){place.suffix}"))
            number += 1
        given.add(path)
        yield path


def _shorten(part: str) -> str:
    if len(part) <= MOST_NAME:
        return part
    suffix = PurePosixPath(part).suffix[:20]
    return part[: MOST_NAME - len(suffix)] + suffix
