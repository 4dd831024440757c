"""The report of one run over the golden set: the figures, and each question that was not answered with its cause."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from primer_core.golden.figures import ALL_FORMATS, Figures, Outcome
from primer_core.golden.misses import Cause


@dataclass(frozen=True, slots=True)
class Found:
    """A passage that was found instead: SOURCE/path of its document, and its first words."""

    document: str
    excerpt: str


@dataclass(frozen=True, slots=True)
class Miss:
    """A question that no passage among the first k answers.

    `document` is SOURCE/path where the answer was expected, `detail` what more is known of the cause, `passage` the words of a passage
    that holds the answer (None where none does), `rank` where that one stands (None beyond DEPTH), `found` the first passages instead.
    """

    question_id: str
    format: str
    question: str
    answer: str
    document: str
    cause: Cause
    detail: str
    rank: int | None
    passage: str | None
    found: tuple[Found, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """One run over one index version. Of the answered questions, `by_heading` are those whose passage has the answer only in the headings
    that it stands under, `without_value` those whose passage has the label and not the cell beside it."""

    index_version: str
    k: int
    figures: tuple[Figures, ...]
    outcomes: tuple[Outcome, ...]
    misses: tuple[Miss, ...]
    by_heading: tuple[str, ...] = ()
    without_value: tuple[str, ...] = ()

    def causes_of(self, format_: str = ALL_FORMATS) -> dict[Cause, int]:
        """Cause → misses of a format, the most frequent first."""
        return dict(Counter(miss.cause for miss in self.misses if format_ in (ALL_FORMATS, miss.format)).most_common())

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, for scripts and for an asset's metadata."""
        return asdict(self) | {"causes": {cause.value: number for cause, number in self.causes_of().items()}}

    def to_markdown(self) -> str:
        """The figures as a table of Markdown, for an asset's metadata."""
        return figures_table(self.figures, self.k)


def figures_table(figures: Sequence[Figures], k: int) -> str:
    """Figures as a table of Markdown."""
    lines = [f"| format | questions | recall@1 | recall@{k} | MRR@{k} |", "|---|---|---|---|---|"]
    lines += [f"| {row.format} | {row.questions} | {row.recall_at_1:.3f} | {row.recall_at_k:.3f} | {row.mrr:.3f} |" for row in figures]
    return "\n".join(lines)
