"""All tables of one page: the surest kind first, each word in one table at most."""

from collections.abc import Sequence
from dataclasses import dataclass

from primer_core.layout.alignments import aligned_tables
from primer_core.layout.geometry import Box, Line, Span
from primer_core.layout.grids import Grid, read_from_the_right
from primer_core.layout.lines import join_spans
from primer_core.layout.rulings import ruled_off_tables
from primer_resources.parser.pdf.tables.ruled import ruled_tables

INSIDE = 0.5
"""A word or stroke is a table's where this share of it lies in the table's box."""


@dataclass(frozen=True, slots=True)
class Strokes:
    """The lines drawn on a page, as thin boxes."""

    horizontal: tuple[Box, ...] = ()
    vertical: tuple[Box, ...] = ()


def find_tables(words: Sequence[Span], strokes: Strokes, page: Box) -> list[Grid]:
    """Grids of the page's tables. No two overlap."""
    found: list[Grid] = []
    _keep(found, ruled_tables(strokes.horizontal, strokes.vertical, words, page))
    rest = _segments(words, found)
    rules = [rule for rule in strokes.horizontal if not any(rule.share_inside(grid.box.grown(2)) > INSIDE for grid in found)]
    _keep(found, ruled_off_tables(rules, rest, page))
    _keep(found, aligned_tables(_segments(words, found), page))
    return [read_from_the_right(grid) for grid in found]


def _segments(words: Sequence[Span], found: Sequence[Grid]) -> list[Line]:
    return join_spans(word for word in words if not any(word.box.share_inside(grid.box) > INSIDE for grid in found))


def _keep(found: list[Grid], grids: Sequence[Grid]) -> None:
    for grid in sorted(grids, key=lambda grid: -grid.box.area):
        if not any(grid.box.shared_width(other.box) and grid.box.shared_height(other.box) for other in found):
            found.append(grid)
