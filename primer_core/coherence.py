"""Coherence of a drive with the catalog: which objects nobody owns, which owned ones are missing, and the report on both as a value.

A save puts its objects first and commits the manifest that owns them after. So an object without an owner may be one of a save that is
under way: it is an orphan only from a minimum age on, which no save is to need.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from primer_core.freshness import Severity
from primer_core.stored_states import DriveKind

MIN_AGE = timedelta(hours=1)
"""How long an object may stand without an owner, by the store's own time. Less, and objects of a slow save would be taken."""
OLD_LOOK = timedelta(days=2)
"""A newest look older than this says little: one is due every day."""
SAMPLE = 50
"""Keys that a report names; the others are counted."""
PROBES = "probe/"
"""Below it lie the objects with which a drive is tried out."""


class Owner(StrEnum):
    """What the catalog says of an object that it knows: a live row owns it, or its owner let go of it and the purge is to remove it."""

    LIVE = "live"
    FREED = "freed"


class Standing(StrEnum):
    """What an object of a drive is."""

    OWNED = "owned"
    FREED = "freed"
    PROBE = "probe"
    TOO_YOUNG = "too_young"
    ORPHAN = "orphan"


def is_of_age(modified: datetime, now: datetime) -> bool:
    """Whether an object is old enough to be called an orphan; one from the future is not."""
    return now - modified >= MIN_AGE


def judge_object(key: str, modified: datetime, owner: Owner | None, now: datetime) -> Standing:
    """What an object is, of which the store tells `modified` and the catalog the owner (None: it knows none)."""
    if owner is not None:
        return Standing.OWNED if owner is Owner.LIVE else Standing.FREED
    if key.startswith(PROBES):
        return Standing.PROBE
    return Standing.ORPHAN if is_of_age(modified, now) else Standing.TOO_YOUNG


@dataclass(frozen=True, slots=True)
class Tally:
    """Objects of one standing: how many, their bytes, and the first SAMPLE keys."""

    count: int = 0
    bytes: int = 0
    sample: tuple[str, ...] = ()

    def plus(self, objects: Sequence[tuple[str, int]]) -> "Tally":
        """With more objects, as (key, bytes)."""
        more = tuple(key for key, _ in objects[: SAMPLE - len(self.sample)])
        return Tally(self.count + len(objects), self.bytes + sum(size for _, size in objects), self.sample + more)


@dataclass(frozen=True, slots=True)
class MissingObject:
    """An object that a row owns and that is not on its drive. `doc_id` is one of the documents that have the content; None where no
    document has it at the moment."""

    object_key: str
    content_hash: str
    part: str
    sub_key: str
    doc_id: str | None


@dataclass(frozen=True, slots=True)
class DriveCoherence:
    """One look at a drive. `objects` and `bytes` are all that it listed, `checked` the objects that live rows own, of which `missing` (the
    first SAMPLE in `missing_sample`) were not there. `reclaimed` are those of the orphans that were deleted. `fault` says why the drive
    could not be looked at to the end; the figures mean nothing then."""

    tenant_id: str
    kind: DriveKind
    place: str
    checked_at: datetime
    objects: int = 0
    bytes: int = 0
    orphans: Tally = field(default_factory=Tally)
    too_young: Tally = field(default_factory=Tally)
    freed: Tally = field(default_factory=Tally)
    foreign: Tally = field(default_factory=Tally)
    reclaimed: Tally = field(default_factory=Tally)
    checked: int = 0
    missing: int = 0
    missing_sample: tuple[MissingObject, ...] = ()
    fault: str | None = None

    @property
    def orphans_left(self) -> int:
        """Orphans that still stand."""
        return self.orphans.count - self.reclaimed.count

    @property
    def is_coherent(self) -> bool:
        """Whether the drive was looked at, nothing is missing, and no orphan stands."""
        return self.fault is None and not self.missing and not self.orphans_left

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {**asdict(self), "kind": self.kind.value, "checked_at": self.checked_at.isoformat()}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> "DriveCoherence":
        """The value back from its JSON."""
        tallies = {
            name: Tally(data[name]["count"], data[name]["bytes"], tuple(data[name]["sample"]))
            for name in ("orphans", "too_young", "freed", "foreign", "reclaimed")
        }
        sample = tuple(MissingObject(**each) for each in data["missing_sample"])
        at = datetime.fromisoformat(data["checked_at"])
        return DriveCoherence(**{**data, **tallies, "kind": DriveKind(data["kind"]), "checked_at": at, "missing_sample": sample})


def present_share(drives: Iterable[DriveCoherence]) -> float:
    """The share (0 to 1) of the objects owned by rows that were there, over drives that could be looked at; 1 where no row owns any."""
    looked_at = [each for each in drives if each.fault is None]
    checked = sum(each.checked for each in looked_at)
    return 1.0 if not checked else 1 - sum(each.missing for each in looked_at) / checked


def judge_drives(drives: Sequence[DriveCoherence], now: datetime) -> tuple[Severity, tuple[str, ...]]:
    """How bad the newest looks are together, and why. Missing objects and drives that fail are errors; orphans only cost room."""
    errors, warnings = [], []
    for each in drives:
        where = f"{each.kind} drive of {each.tenant_id}"
        if each.fault is not None:
            errors.append(f"{where}: {each.fault}")
        if each.missing:
            errors.append(f"{where}: {each.missing} of {each.checked} objects are missing")
        if each.orphans_left:
            warnings.append(f"{where}: {each.orphans_left} orphans; `primer store reconcile --apply` deletes them")
        if now - each.checked_at > OLD_LOOK:
            warnings.append(f"{where}: nobody has looked since {each.checked_at:%Y-%m-%d %H:%M} UTC; is stored_objects_schedule on?")
    if not drives:
        warnings.append("nobody has looked yet; materialise stored_objects")
    severity = Severity.ERROR if errors else Severity.WARN if warnings else Severity.OK
    return severity, (*errors, *warnings)
