"""Index versions: what they may be called, where they stand, and when one may become the live one. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from primer_core.failures import PrimerError

NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")
"""A name is a folder, a table and half of a partition key, where "|", "," and "..." have meanings of their own."""


class VersionState(StrEnum):
    """Where an index version stands. Changes are written to every version but the retired."""

    BUILDING = "building"
    LIVE = "live"
    RETIRING = "retiring"
    RETIRED = "retired"


def check_name(name: str) -> None:
    """Raise PrimerError for a name that no index version may have."""
    if not NAME.fullmatch(name):
        raise PrimerError(
            f"index version {name!r} cannot be called so; write a lower-case letter and up to 31 letters, digits, - and _, as in v2"
        )


class Gate(StrEnum):
    """The checks that an index version must have passed before it becomes the live one."""

    INDEXES_AGREE = "indexes_agree"
    DOCUMENTS_AGREE = "documents_agree"
    ROWS_INDEXED = "rows_indexed"
    INDEX_SIZE = "index_size"
    GOLDEN_RECALL = "golden_recall"
    CANARIES = "canaries"


REQUIRED = tuple(gate.value for gate in Gate)


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one check found of an index version; `figures` are its numbers, `measured_at` when it began to look."""

    name: str
    passed: bool
    words: str
    figures: Mapping[str, Any]
    measured_at: datetime


@dataclass(frozen=True, slots=True)
class Standing:
    """What a promotion rests on, all of one moment: the state of the version, when its backfill was finished (None: it was not), from when
    the oldest change counts that waits for it (None: none does), and the newest result of each check."""

    name: str
    state: VersionState
    backfilled_at: datetime | None
    oldest_waiting: datetime | None
    results: Sequence[CheckResult]


def refusals(standing: Standing, required: Sequence[str], lag: timedelta, now: datetime) -> list[str]:
    """Why a version must not become the live one now, in words for people; nothing where it may.

    A result counts that was measured after the backfill was finished: one of a half-built version says nothing of the whole.
    """
    name = standing.name
    if standing.state is VersionState.RETIRED:
        return [f"index version {name} is retired, and its rows are gone"]
    if standing.state is VersionState.RETIRING:
        return [f"index version {name} was live before; `primer rollback` goes back to it"]
    if standing.state is VersionState.LIVE:
        return [f"index version {name} is live already"]
    if standing.backfilled_at is None:
        return [f"the backfill of {name} is not finished; see `primer backfill status`"]
    found = []
    if standing.oldest_waiting is not None and now - standing.oldest_waiting > lag:
        waited = (now - standing.oldest_waiting).total_seconds()
        found.append(f"a change has waited {waited:.0f} s for {name}, more than {lag.total_seconds():.0f} s (PRIMER_PROMOTE_LAG)")
    results = {result.name: result for result in standing.results}
    for check in (*required, *sorted(results.keys() - set(required))):
        result = results.get(check)
        if result is None or result.measured_at < standing.backfilled_at:
            if check in required:
                found.append(f"check {check} was not made since the backfill was finished; `primer version check {name}` makes it")
        elif not result.passed:
            found.append(f"check {check} failed: {result.words}")
    return found
