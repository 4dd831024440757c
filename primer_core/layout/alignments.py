"""Tables without any rule: rows whose segments stand in the same columns."""

from collections.abc import Sequence
from statistics import median

from primer_core.layout.geometry import Box, Line
from primer_core.layout.grids import Grid, columns_of, continuation_starts, grid_of_rows, join_rows, row_groups, runs_on, stack
from primer_core.layout.marks import is_contents_line, is_list_item
from primer_core.layout.scripts import written_width

LEAST_ROWS = 3
ROW_GAP = 1.8
"""Widest gap between two rows of one table, in line heights."""

CONTINUED = 3
"""Most lines below a row that go on in one of its cells."""

CELL_LETTERS = 32
"""Most letters that a table's middle cell has: longer ones are columns of running text."""

IN_PLACE = 0.85
"""Least share of the segments that stand in one column each."""

JUSTIFIED = 0.6
"""Greatest share of a column's cells that fill it from side to side: more are lines of running text."""

FILLING_LETTERS = 20
"""Letters from which a cell that fills its column may be a line of text; figures and codes are as wide as one another too."""

EDGE = 2.0
"""Points within which a cell reaches its column's side."""

GUTTER = 0.55
"""Least share of the page's lines of text beside a gutter for the page to be read in two columns."""

COLUMN_LETTERS = 28
"""Lines of a text column have at least so many letters in the middle."""


def text_columns(lines: Sequence[Line], page: Box) -> list[list[Line]]:
    """The lines by text column: two lists where a white band parts the page, with running text on both sides; else one."""
    wide = [line for line in lines if written_width(line.text) >= COLUMN_LETTERS]
    if len(wide) >= 8:
        for share in (0.5, 0.48, 0.52, 0.45, 0.55, 0.4, 0.6, 0.35, 0.65):
            x = page.left + share * page.width
            left = [line for line in lines if line.box.right <= x]
            right = [line for line in lines if line.box.left >= x]
            long_left = sum(1 for line in left if written_width(line.text) >= COLUMN_LETTERS)
            long_right = sum(1 for line in right if written_width(line.text) >= COLUMN_LETTERS)
            if min(long_left, long_right) >= 4 and long_left + long_right >= GUTTER * len(wide):
                return [left, right]
    return [list(lines)]


def aligned_tables(lines: Sequence[Line], page: Box) -> list[Grid]:
    """Tables among the lines (segments, cut wherever a gap is wide)."""
    return [grid for column in text_columns(lines, page) for grid in _tables_of(column)]


def _tables_of(lines: Sequence[Line]) -> list[Grid]:
    rows = row_groups(lines)
    found: list[Grid] = []
    start = 0
    while start < len(rows):
        end = last = start
        while end < len(rows) and (end == start or _follows(rows[end - 1], rows[end])):
            if _is_tabular(rows[end]):
                last = end + 1
            elif end == start or end - last >= CONTINUED or not _goes_on(rows[last - 1], rows[end]):
                break
            end += 1
        if end > last and last > start and all(_goes_on(rows[last - 1], row) for row in rows[last:end]):
            last = end
        grid = _table(rows[start:last])
        if grid is not None:
            found.append(grid)
        start = max(last, start + 1)
    return found


def _is_tabular(row: Sequence[Line]) -> bool:
    return (
        len(row) > 1
        and not all(line.mono for line in row)
        and not any(is_contents_line(line.text) for line in row)
        and not is_list_item(row[0].text)
    )


def _goes_on(row: Sequence[Line], below: Sequence[Line]) -> bool:
    """Whether a line alone goes on in a column of the row above: it begins where one of its segments does, the first aside."""
    return len(below) == 1 and any(abs(below[0].box.left - line.box.left) <= 3.0 for line in row[1:])


def _follows(upper: Sequence[Line], lower: Sequence[Line]) -> bool:
    gap = min(line.box.top for line in lower) - max(line.box.bottom for line in upper)
    return gap <= ROW_GAP * max(line.box.height for line in (*upper, *lower))


def _table(rows: Sequence[Sequence[Line]]) -> Grid | None:
    if len(rows) < LEAST_ROWS:
        return None
    columns = columns_of(rows)
    if len(columns) < 2:
        return None
    segments = [line for row in rows for line in row]
    if median(written_width(line.text) for line in segments) > CELL_LETTERS:
        return None
    if len(columns) == 2 and sum(written_width(line.text) for line in segments) > 40 * len(segments):
        return None
    if any(_is_justified(column, segments) for column in columns):
        return None
    if runs_on(segments):
        return None
    held = [sum(1 for left, right in columns if min(line.box.right, right) > max(line.box.left, left)) for line in segments]
    in_place = sum(1 for count in held if count == 1)
    if in_place < IN_PLACE * len(segments):
        return None
    joined = join_rows(rows, continuation_starts(rows, columns))
    if len(joined) < LEAST_ROWS or sum(min(len(row), len(columns)) for row in joined) < 0.5 * len(joined) * len(columns):
        return None
    return grid_of_rows([stack(row, columns) for row in joined])


def _is_justified(column: tuple[float, float], segments: Sequence[Line]) -> bool:
    left, right = column
    inside = [line for line in segments if min(line.box.right, right) > max(line.box.left, left)]
    filling = sum(
        1
        for line in inside
        if line.box.left - left <= EDGE and right - line.box.right <= EDGE and written_width(line.text) >= FILLING_LETTERS
    )
    return len(inside) > 3 and filling > JUSTIFIED * len(inside)
