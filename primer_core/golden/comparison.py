"""Whether a candidate index version answers the golden set as well as the live one, format by format.

The verdict is by the counts: a candidate that answers fewer questions of a format than the live version is worse there. How much of a
difference may be chance is told by a paired bootstrap: the questions are drawn again with replacement, each with its answers in both.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from random import Random
from typing import Any

from primer_core.failures import PrimerError
from primer_core.golden.figures import ALL_FORMATS, Outcome

RESAMPLES = 2_000
"""Ends of a 95 % interval are then each set by some 50 of them, and 1,000 questions take two seconds."""
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Difference:
    """Recall at k of both versions on the questions of one format, and the interval (CONFIDENCE) of candidate − live; `lost` are the
    questions that only the live version answers, `gained` those that only the candidate does."""

    format: str
    questions: int
    candidate: float
    live: float
    low: float
    high: float
    lost: tuple[str, ...]
    gained: tuple[str, ...]

    @property
    def words(self) -> str:
        """The difference and its interval."""
        return f"{self.candidate - self.live:+.3f} ({self.low:+.3f} to {self.high:+.3f})"

    @property
    def is_worse(self) -> bool:
        """Whether the candidate answers fewer."""
        return len(self.lost) > len(self.gained)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A difference a format, in alphabetical order, and after them the one over all questions."""

    differences: tuple[Difference, ...]

    @property
    def passes(self) -> bool:
        """Whether the candidate is worse in no format."""
        return not any(difference.is_worse for difference in self.differences)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it does not pass, a line a format with the questions that are lost."""
        return tuple(
            f"{each.format}: recall {each.candidate:.3f} against {each.live:.3f}, difference {each.words}; lost {', '.join(each.lost)}"
            for each in self.differences
            if each.is_worse
        )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, for scripts and for an asset's metadata."""
        return {"passes": self.passes, "reasons": list(self.reasons), "differences": [asdict(each) for each in self.differences]}

    def to_markdown(self) -> str:
        """The differences as a table of Markdown, for an asset's metadata."""
        lines = ["| format | candidate | live | difference (95 % interval) | lost | gained |", "|---|---|---|---|---|---|"]
        lines += [
            f"| {each.format} | {each.candidate:.3f} | {each.live:.3f} | {each.words} | {len(each.lost)} | {len(each.gained)} |"
            for each in self.differences
        ]
        return "\n".join(lines)


def compare(candidate: Sequence[Outcome], live: Sequence[Outcome], random: Random, resamples: int = RESAMPLES) -> Comparison:
    """Compare two runs over the same questions. Raises PrimerError where they are not the same."""
    theirs = {outcome.question_id: outcome for outcome in live}
    if {outcome.question_id for outcome in candidate} != theirs.keys() or len(candidate) != len(live):
        raise PrimerError(
            f"two runs over different questions ({len(candidate)} and {len(live)}) cannot be compared; ask both the same ones"
        )
    pairs: dict[str, list[tuple[Outcome, Outcome]]] = defaultdict(list)
    for outcome in candidate:
        pairs[outcome.format].append((outcome, theirs[outcome.question_id]))
    formats = sorted(pairs)
    every = [pair for format_ in formats for pair in pairs[format_]]
    rows = [_difference(format_, pairs[format_], random, resamples) for format_ in formats]
    return Comparison((*rows, _difference(ALL_FORMATS, every, random, resamples)) if every else ())


def _difference(format_: str, pairs: Sequence[tuple[Outcome, Outcome]], random: Random, resamples: int) -> Difference:
    ours = [candidate.rank is not None for candidate, _ in pairs]
    theirs = [live.rank is not None for _, live in pairs]
    steps = [int(mine) - int(other) for mine, other in zip(ours, theirs, strict=True)]
    asked = len(pairs)
    means = sorted(sum(random.choices(steps, k=asked)) / asked for _ in range(resamples))
    tail = (1 - CONFIDENCE) / 2
    low, high = means[int(tail * resamples)], means[min(resamples - 1, int((1 - tail) * resamples))]
    named = [candidate.question_id for candidate, _ in pairs]
    lost = tuple(name for name, step in zip(named, steps, strict=True) if step < 0)
    gained = tuple(name for name, step in zip(named, steps, strict=True) if step > 0)
    return Difference(format_, asked, sum(ours) / asked, sum(theirs) / asked, low, high, lost, gained)
