"""Levels of headings: from their numbers where they have any, else from how they are set."""

from collections.abc import Sequence
from dataclasses import dataclass

from primer_core.layout.marks import section_depth

MAX_LEVEL = 6
SAME_SIZE = 0.05
"""Sizes this near are one: a box varies with its glyphs."""


@dataclass(frozen=True, slots=True)
class HeadingStyle:
    """How one heading reads and is set; `size` in points."""

    text: str
    size: float
    bold: bool
    italic: bool = False


def heading_levels(headings: Sequence[HeadingStyle]) -> list[int]:
    """A level for each heading, from 1.

    Styles are ranked by size, then bold before regular, upright before italic. Numbered headings keep their depth below the rank of
    the least deep of them, so that "2.1" is one below "2" however both are set, and a title that is larger stays above.
    """
    ranks = _ranks(headings)
    depths = [section_depth(heading.text) for heading in headings]
    numbered = [depth for depth in depths if depth]
    levels = list(ranks)
    if len(numbered) >= 2:
        least = min(numbered)
        base = min(rank for rank, depth in zip(ranks, depths, strict=True) if depth == least)
        levels = [base + depth - least if depth else rank for rank, depth in zip(ranks, depths, strict=True)]
    return _without_gaps([min(level, MAX_LEVEL) for level in levels])


def _ranks(headings: Sequence[HeadingStyle]) -> list[int]:
    sizes: list[float] = []
    for size in sorted({heading.size for heading in headings}, reverse=True):
        if not sizes or sizes[-1] - size > SAME_SIZE * sizes[-1]:
            sizes.append(size)
    keys = []
    for heading in headings:
        size = next(kept for kept in sizes if kept - heading.size <= SAME_SIZE * kept)
        keys.append((-size, not heading.bold, heading.italic))
    order = {key: rank for rank, key in enumerate(sorted(set(keys)), start=1)}
    return [order[key] for key in keys]


def _without_gaps(levels: list[int]) -> list[int]:
    """Levels that are used, numbered without gaps."""
    order = {level: number for number, level in enumerate(sorted(set(levels)), start=1)}
    return [order[level] for level in levels]
