"""What a search is worth on the golden set: recall and mean reciprocal rank, by format and over all."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

ALL_FORMATS = "all"
"""Stands for the format in the figures over all questions."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one question: the rank (from 1) of the first passage that answers it among the first k; None where none does."""

    question_id: str
    format: str
    rank: int | None


@dataclass(frozen=True, slots=True)
class Figures:
    """Of the questions of one format: the share answered by the first passage and within the first k, and the mean of 1/rank, where a
    question that is not answered within k counts as 0 (MRR@k)."""

    format: str
    questions: int
    recall_at_1: float
    recall_at_k: float
    mrr: float


def summarise(outcomes: Iterable[Outcome]) -> tuple[Figures, ...]:
    """Figures by format in alphabetical order, and after them those over all; none of no questions."""
    groups: dict[str, list[Outcome]] = defaultdict(list)
    every: list[Outcome] = []
    for outcome in outcomes:
        groups[outcome.format].append(outcome)
        every.append(outcome)
    rows = [_figures(format_, groups[format_]) for format_ in sorted(groups)]
    return (*rows, _figures(ALL_FORMATS, every)) if every else ()


def _figures(format_: str, outcomes: list[Outcome]) -> Figures:
    ranks = [outcome.rank for outcome in outcomes if outcome.rank is not None]
    asked = len(outcomes)
    return Figures(format_, asked, ranks.count(1) / asked, len(ranks) / asked, sum(1 / rank for rank in ranks) / asked)
