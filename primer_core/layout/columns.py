"""Columns of running text: the order in which a page is read that is plainly set in columns. Pure."""

from collections.abc import Sequence
from statistics import median

from primer_core.layout.geometry import Box, union

GUTTER = 6.0
"""Least width in points of the white band between two columns of text."""

PARAGRAPH = 100
"""Letters of the median block of a column: shorter ones are labels and values, which are read row by row."""

BESIDE = 0.5
"""Share of the lower column's height along which the two must stand beside each other."""


def column_order(boxes: Sequence[Box], letters: Sequence[int]) -> list[int] | None:
    """Positions of a page's blocks in reading order, where all that does not span the page stands in columns of paragraphs; None elsewhere.

    `letters` is how many letters each block has. Blocks that reach over the gutter part the page: what is above them is read first,
    column by column.
    """
    gutter = _gutter(boxes, letters)
    if gutter is None:
        return None
    order: list[int] = []
    band: list[int] = []
    for position in sorted(range(len(boxes)), key=lambda position: boxes[position].top):
        if _crosses(boxes[position], gutter):
            order += [*_band(band, boxes, letters, gutter), position]
            band = []
        else:
            band.append(position)
    return order + _band(band, boxes, letters, gutter)


def _gutter(boxes: Sequence[Box], letters: Sequence[int]) -> float | None:
    """The x of a white band with columns of paragraphs on both sides: of several, the one that the fewest blocks reach over."""
    best: tuple[int, float] | None = None
    for edge in sorted({box.right for box in boxes}):
        left = [position for position, box in enumerate(boxes) if box.right <= edge]
        right = [position for position, box in enumerate(boxes) if box.left >= edge + GUTTER]
        if len(left) < 2 or len(right) < 2:
            continue
        crossing = len(boxes) - len(left) - len(right)
        if (best is None or crossing < best[0]) and _are_columns(left, right, boxes, letters):
            best = crossing, (edge + min(boxes[position].left for position in right)) / 2
    return None if best is None else best[1]


def _are_columns(left: Sequence[int], right: Sequence[int], boxes: Sequence[Box], letters: Sequence[int]) -> bool:
    """Whether both sides are paragraphs, and stand beside each other."""
    if any(median(letters[position] for position in side) < PARAGRAPH for side in (left, right)):
        return False
    one, other = (union(boxes[position] for position in side) for side in (left, right))
    return one.shared_height(other) >= BESIDE * min(one.height, other.height)


def _crosses(box: Box, gutter: float) -> bool:
    return box.left < gutter < box.right


def _band(band: Sequence[int], boxes: Sequence[Box], letters: Sequence[int], gutter: float) -> list[int]:
    """The left column from top to bottom, then the right one; either may have columns of its own."""
    left = [position for position in band if boxes[position].right <= gutter]
    right = [position for position in band if boxes[position].right > gutter]
    order: list[int] = []
    for side in (left, right):
        inner = column_order([boxes[position] for position in side], [letters[position] for position in side]) if len(side) > 3 else None
        order += side if inner is None else [side[place] for place in inner]
    return order
