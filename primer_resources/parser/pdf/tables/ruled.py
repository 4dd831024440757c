"""Tables whose cells are ruled on all sides, with pdfplumber's rules from edges to cells."""

import itertools
from collections.abc import Sequence
from typing import Any

from pdfplumber.table import cells_to_tables, edges_to_intersections, intersections_to_cells, merge_edges

from primer_core.layout.geometry import Box, Span
from primer_core.layout.grids import SNAP, Grid, grid_of_boxes
from primer_core.layout.rulings import rule_groups

SHORTEST = 4.0
"""Points; shorter strokes are parts of drawings and letters."""

MAX_CROSSINGS = 400_000
"""Pairs of edges that are looked at on one page; more are a drawing or a map, and would take minutes."""

MAX_STROKES = 20_000
MAX_POINTS = 6_000
LONGEST_CELL = 1_600
"""Letters; a box with more in it is a frame round running text."""

WHOLE_PAGE = 0.75
"""A box with this share of the page's words in it is a frame round the page."""


def ruled_tables(horizontal: Sequence[Box], vertical: Sequence[Box], words: Sequence[Span], page: Box) -> list[Grid]:
    """Grids of the cells that the strokes rule. Strokes are thin boxes."""
    across = [box for box in horizontal if box.width >= SHORTEST]
    down = [box for box in vertical if box.height >= SHORTEST]
    if not across or not down or len(across) + len(down) > MAX_STROKES:
        return []
    joined = [
        Box(edge["x0"], edge["top"], edge["x1"], edge["bottom"])
        for edge in merge_edges([_edge(box, "v") for box in down], SNAP, SNAP, SNAP, SNAP)
    ]
    sides = _outer_sides(across, joined, page)
    edges = merge_edges([_edge(box, "h") for box in across] + [_edge(box, "v") for box in (*joined, *sides)], SNAP, SNAP, SNAP, SNAP)
    count = sum(1 for edge in edges if edge["orientation"] == "h")
    if count * (len(edges) - count) > MAX_CROSSINGS:
        return []
    crossings = edges_to_intersections(edges, SNAP, SNAP)
    if len(crossings) > MAX_POINTS:
        return []
    grids = []
    for cells in cells_to_tables(intersections_to_cells(crossings)):
        boxes = [Box(*(float(side) for side in cell)) for cell in cells]
        grid = _grid(boxes, words)
        if grid is not None:
            grids.append(grid)
    return grids


def _edge(box: Box, orientation: str) -> dict[str, Any]:
    """A stroke as pdfplumber's edge: a line without thickness."""
    if orientation == "h":
        return {
            "orientation": "h", "x0": box.left, "x1": box.right, "top": box.middle, "bottom": box.middle, "width": box.width, "height": 0.0,
        }  # fmt: skip
    return {
        "orientation": "v", "x0": box.centre, "x1": box.centre, "top": box.top, "bottom": box.bottom, "width": 0.0, "height": box.height,
    }  # fmt: skip


def _outer_sides(across: Sequence[Box], down: Sequence[Box], page: Box) -> list[Box]:
    """Outer verticals where a table's columns are ruled inside only: between rules of one length that a vertical runs between."""
    sides = []
    for group in rule_groups(across, page):
        left, right = group[0].left, group[0].right
        for upper, lower in itertools.pairwise(group):
            between = [
                line
                for line in down
                if line.top <= upper.middle + SNAP and line.bottom >= lower.middle - SNAP and left - SNAP <= line.centre <= right + SNAP
            ]
            if not between:
                continue
            for x in (left, right):
                if all(abs(line.centre - x) > SNAP for line in between):
                    sides.append(Box(x, upper.middle, x, lower.middle))
    return sides


def _grid(boxes: Sequence[Box], words: Sequence[Span]) -> Grid | None:
    if len(boxes) < 4:
        return None
    left, top = min(box.left for box in boxes), min(box.top for box in boxes)
    right, bottom = max(box.right for box in boxes), max(box.bottom for box in boxes)
    inside = [word for word in words if left - 1 <= word.box.centre <= right + 1 and top - 1 <= word.box.middle <= bottom + 1]
    grid = grid_of_boxes(boxes, inside)
    if grid is None or grid.filled < 4:
        return None
    longest = max(len(cell.text) for cell in grid.cells)
    total = sum(len(word.text) for word in words)
    if longest > LONGEST_CELL or (longest > WHOLE_PAGE * total and longest > 400):
        return None
    return grid
