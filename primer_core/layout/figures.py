"""Drawings: where on a page they are, and the words in them, which are labels and not running text."""

from collections.abc import Sequence
from statistics import median

from primer_core.layout.geometry import Box, Line

LEAST_SIDE = 40.0
"""Points; a smaller drawing is an icon or a letter."""

GREATEST_SHARE = 0.7
"""A drawing over more of the page is its frame or its ground."""

INK = 0.3
"""Greatest share of a drawing that boxes of words take: more is a box round text, such as a note or a listing."""

LABEL_LETTERS = 40
"""Most letters in the middle label."""

LABELS = 3
"""Least lines of words for a drawing to be looked at."""

SCATTERED = 0.25
"""Least share of the lines that begin at a place of their own: labels stand where their things are, lines of text in one column."""

_STEP = 6.0


def drawings(shapes: Sequence[Box], lines: Sequence[Line], tables: Sequence[Box], page: Box) -> list[Box]:
    """Boxes of connected shapes that are drawings with labels in them. No two overlap, and none a table."""
    found: list[Box] = []
    for shape in sorted(shapes, key=lambda box: -box.area):
        if min(shape.width, shape.height) < LEAST_SIDE or shape.area > GREATEST_SHARE * page.area:
            continue
        if any(shape.shared_width(other) and shape.shared_height(other) for other in (*found, *tables)):
            continue
        inside = lines_inside(lines, shape)
        if len(inside) < LABELS or sum(line.box.area for line in inside) > INK * shape.area:
            continue
        places = {round(line.box.left / _STEP) for line in inside}
        if len(places) >= SCATTERED * len(inside):
            found.append(shape)
    return found


def holds_labels(box: Box, inside: Sequence[Line]) -> bool:
    """Whether the words in a picture are labels, rather than text that is printed on it."""
    return median(len(line.text) for line in inside) <= LABEL_LETTERS and sum(line.box.area for line in inside) <= INK * box.area


def lines_inside(lines: Sequence[Line], box: Box) -> list[Line]:
    """The lines of which most lies in the box."""
    return [line for line in lines if line.box.share_inside(box) > 0.5]
