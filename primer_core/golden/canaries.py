"""Whether the canaries are safe: each found by those who must find it, and by nobody who must not."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from primer_core.golden.questions import Canary


@dataclass(frozen=True, slots=True)
class CanaryOutcome:
    """What searches for one canary gave. `missed_by` are groups that must find it and did not; `seen_by` are groups that must not and
    did, each with the SOURCE/path that it was seen as. `is_known` says whether there is such a document."""

    canary: Canary
    is_known: bool
    missed_by: tuple[str, ...] = ()
    seen_by: tuple[tuple[str, str], ...] = ()

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is not safe; empty where it is. One that nobody finds proves nothing of those who must not find it."""
        if not self.is_known:
            return (f"{self.canary.path}: no source has this document",)
        return (
            *(f"{self.canary.path}: {group} must not find it and does, as {name}" for group, name in self.seen_by),
            *(f"{self.canary.path}: {group} must find it and does not" for group in self.missed_by),
        )


@dataclass(frozen=True, slots=True)
class CanaryReport:
    """All canaries of one index version."""

    index_version: str
    outcomes: tuple[CanaryOutcome, ...]

    @property
    def passes(self) -> bool:
        """Whether all are safe."""
        return not self.reasons

    @property
    def reasons(self) -> Sequence[str]:
        """Why they are not, a line each."""
        return [reason for outcome in self.outcomes for reason in outcome.reasons]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, for an asset's metadata."""
        return asdict(self) | {"passes": self.passes, "reasons": list(self.reasons)}
