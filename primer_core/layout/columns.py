"""Columns of running text: the order in which a page is read that is plainly set in columns. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from primer_core.layout.geometry import Box

GUTTER = 6.0
"""Least width in points of the white band between two columns of text."""

PARAGRAPH = 100
"""Letters of the median block of a column: shorter ones are labels and values, which are read row by row."""

BESIDE = 0.5
"""Share of the lower column's height along which the two must stand beside each other."""


@dataclass(frozen=True, slots=True)
class Block:
    """A block of text: where it stands and how many letters it has."""

    box: Box
    letters: int


def column_order(blocks: Sequence[Block]) -> list[int] | None:
    """Positions in `blocks` in reading order, where all that does not span the page stands in columns of paragraphs; None elsewhere.

    Blocks that reach over the gutter part the page: what is above them is read first, column by column.
    """
    gutter = _gutter(blocks)
    if gutter is None:
        return None
    order: list[int] = []
    band: list[int] = []
    for position in sorted(range(len(blocks)), key=lambda position: blocks[position].box.top):
        if _crosses(blocks[position].box, gutter):
            order += [*_band(band, blocks, gutter), position]
            band = []
        else:
            band.append(position)
    return order + _band(band, blocks, gutter)


def _gutter(blocks: Sequence[Block]) -> float | None:
    """The x of a white band with columns of paragraphs on both sides."""
    candidates = {(one.box.right + other.box.left) / 2 for one in blocks for other in blocks if other.box.left - one.box.right >= GUTTER}
    best: tuple[int, float] | None = None
    for x in sorted(candidates):
        left = [block for block in blocks if block.box.right <= x]
        right = [block for block in blocks if block.box.left >= x]
        if len(left) < 2 or len(right) < 2 or min(median(block.letters for block in side) for side in (left, right)) < PARAGRAPH:
            continue
        spans = [(min(block.box.top for block in side), max(block.box.bottom for block in side)) for side in (left, right)]
        shared = min(spans[0][1], spans[1][1]) - max(spans[0][0], spans[1][0])
        crossing = len(blocks) - len(left) - len(right)
        if shared >= BESIDE * min(bottom - top for top, bottom in spans) and (best is None or crossing < best[0]):
            best = crossing, x
    return None if best is None else best[1]


def _crosses(box: Box, gutter: float) -> bool:
    return box.left < gutter < box.right


def _band(band: Sequence[int], blocks: Sequence[Block], gutter: float) -> list[int]:
    """The left column from top to bottom, then the right one; either may have columns of its own."""
    left = [position for position in band if blocks[position].box.right <= gutter]
    right = [position for position in band if blocks[position].box.left >= gutter]
    order: list[int] = []
    for side in (left, right):
        inner = column_order([blocks[position] for position in side]) if len(side) > 3 else None
        order += side if inner is None else [side[place] for place in inner]
    return order
