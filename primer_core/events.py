"""Events: what a source, or someone who watches it, tells of a document. An event is a hint with a least version, never content: the source
is asked, and this says whether what it shows is as new as what was told."""

import re
from datetime import datetime, timedelta
from enum import StrEnum

from primer_core.source_time import check_aware, parse_time

SLACK = timedelta(seconds=2)
"""Sources keep whole seconds (FAT two), so a state may look that much older than the event that told of it."""
_NUMBERED = re.compile(r"(\D*)(\d{1,18})")


class EventState(StrEnum):
    """Where an event stands. `done` and `dead` are terminal; a dead one leaves by an operator's retry."""

    WAITING = "waiting"
    DONE = "done"
    DEAD = "dead"


class Shown(StrEnum):
    """How the state that a source shows compares with the one that an event told of. `doubtful` is older by its time alone, which a
    slow clock or a file put back with its old time explains as well as a source that lags."""

    CURRENT = "current"
    DOUBTFUL = "doubtful"
    OLDER = "older"


def compare_shown(told_version: str, told_at: datetime, version: str, modified: datetime, was_deleted: bool = False) -> Shown:
    """Compare what is shown (its label, "" where the source gives none, and its time) with what was told. Labels decide where they can.
    Where a delete was told, what is shown must be newer: it was made again."""
    order = compare_labels(version, told_version)
    if order is not None:
        return Shown.CURRENT if order >= (1 if was_deleted else 0) else Shown.OLDER
    least = check_aware(told_at) if was_deleted else check_aware(told_at) - SLACK
    return Shown.CURRENT if check_aware(modified) >= least else Shown.DOUBTFUL


def compare_labels(left: str, right: str) -> int | None:
    """Below, at or above zero as `left` labels an older, the same or a newer version. None where they do not tell: only equal labels do,
    and two times, and two numbers under one prefix ("v7", "v8")."""
    if not left or not right:
        return None
    if left == right:
        return 0
    before, after = _NUMBERED.fullmatch(left), _NUMBERED.fullmatch(right)
    if before is not None and after is not None:
        return int(before[2]) - int(after[2]) if before[1] == after[1] else None
    try:
        earlier, later = parse_time(left), parse_time(right)
    except ValueError:
        return None
    return (earlier > later) - (earlier < later)


def check_path(path: str) -> str:
    """The path of a document in its source. Raises ValueError for one that is not relative, leaves the source, or is not valid UTF-8."""
    if not path or path.startswith("/") or "\0" in path or any(part in ("", ".", "..") for part in path.split("/")):
        raise ValueError(f"{path!r} is no path of a document in its source; write it like folder/page.md")
    try:
        path.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(f"{path!r} is not valid UTF-8") from error
    return path
