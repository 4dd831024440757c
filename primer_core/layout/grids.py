"""Table grids: rows, columns and cells, from ruled cells or from how words stand."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median

from primer_core.layout.geometry import Box, Line, Span, union
from primer_core.layout.lines import join_spans
from primer_core.layout.scripts import runs_from_the_right

SNAP = 3.0
"""Points within which two edges are one."""

FULL = 0.6
"""Rows with this share of the most segments of any row say where the columns are; fuller ones only, since headings span several."""


SENTENCES = 0.3
"""Greatest share of a table's cells of several words that begin with a small letter."""

SHADOW = 0.1
"""Greatest share of the rows in which a column that is only a heading's place has words."""


@dataclass(frozen=True, slots=True)
class GridCell:
    """A cell at a row and column, counted from 0, that covers `row_span` × `column_span` places."""

    row: int
    column: int
    text: str
    box: Box
    row_span: int = 1
    column_span: int = 1


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: no two cells cover one place. `header_rows` from the top are headers."""

    box: Box
    rows: int
    columns: int
    cells: tuple[GridCell, ...]
    header_rows: int = 1

    @property
    def filled(self) -> int:
        """Cells with words."""
        return sum(1 for cell in self.cells if cell.text)


def cell_text(words: Iterable[Span]) -> str:
    """The words of one cell as they are read: row by row."""
    rows = row_groups(join_spans(words))
    return " ".join(line.text for row in rows for line in row if line.text)


def row_groups(lines: Iterable[Line]) -> list[list[Line]]:
    """Lines grouped by baseline, top to bottom; within a row as they are read."""
    rows: list[list[Line]] = []
    for line in sorted(lines, key=lambda line: (line.box.middle, line.box.left)):
        if rows:
            last = union(member.box for member in rows[-1])
            if line.box.shared_height(last) >= 0.5 * min(line.box.height, last.height):
                rows[-1].append(line)
                continue
        rows.append([line])
    for row in rows:
        mirrored = runs_from_the_right("".join(line.text for line in row))
        row.sort(key=lambda line: -line.box.right if mirrored else line.box.left)
    return rows


def edges_of(values: Iterable[float]) -> list[float]:
    """Distinct edges, those within SNAP of one another as one."""
    found: list[float] = []
    for value in sorted(values):
        if not found or value - found[-1] > SNAP:
            found.append(value)
    return found


def grid_of_boxes(boxes: Sequence[Box], words: Sequence[Span]) -> Grid | None:
    """The grid that ruled cells make, with the words in them; None where it is no table of two rows and two columns.

    A word goes to the cell around its centre, else to the nearest. A box over several places spans them.
    """
    if not boxes:
        return None
    xs = edges_of(edge for box in boxes for edge in (box.left, box.right))
    ys = edges_of(edge for box in boxes for edge in (box.top, box.bottom))
    if len(xs) < 3 or len(ys) < 3:
        return None
    taken: set[tuple[int, int]] = set()
    cells: list[GridCell] = []
    for box in sorted(boxes, key=lambda box: box.area):
        left, right = _nearest(xs, box.left), _nearest(xs, box.right)
        top, bottom = _nearest(ys, box.top), _nearest(ys, box.bottom)
        places = {(row, column) for row in range(top, bottom) for column in range(left, right)}
        if not places or places & taken:
            continue
        taken |= places
        cells.append(GridCell(top, left, "", box, bottom - top, right - left))
    inside: list[list[Span]] = [[] for _ in cells]
    for word in words:
        best = min(range(len(cells)), key=lambda number: _distance(cells[number].box, word.box))
        inside[best].append(word)
    filled = [replace(cell, text=cell_text(found)) for cell, found in zip(cells, inside, strict=True)]
    grid = _without_empty(Grid(union(boxes), len(ys) - 1, len(xs) - 1, tuple(filled)))
    if grid is None:
        return None
    held = {id(cell.box): row_groups(join_spans(found)) for cell, found in zip(filled, inside, strict=True)}
    return split_rows(grid, [held[id(cell.box)] for cell in grid.cells])


def split_rows(grid: Grid, lines: Sequence[Sequence[Sequence[Line]]]) -> Grid:
    """The grid with those ruled rows taken apart that hold several rows of figures. `lines` has each cell's lines, row by row.

    That is where two cells or more, and most of the filled ones, have the same number of level lines, most of them with digits; a cell
    with one line then goes with all of them. Wrapped words are left together.
    """
    counts = [_rows_in(grid, lines, row) for row in range(grid.rows)]
    begins = [sum(counts[:row]) for row in range(grid.rows)]
    cells: list[GridCell] = []
    for cell, rows in zip(grid.cells, lines, strict=True):
        count = counts[cell.row]
        if cell.row_span > 1 or count == 1 or len(rows) != count:
            span = sum(counts[cell.row : cell.row + cell.row_span])
            cells.append(replace(cell, row=begins[cell.row], row_span=span))
            continue
        for place, row in enumerate(rows):
            text = " ".join(line.text for line in row)
            cells.append(replace(cell, row=begins[cell.row] + place, text=text, box=union(line.box for line in row)))
    return replace(grid, rows=sum(counts), cells=tuple(sorted(cells, key=lambda cell: (cell.row, cell.column))))


def _rows_in(grid: Grid, lines: Sequence[Sequence[Sequence[Line]]], row: int) -> int:
    """How many rows of figures a ruled row holds: 1 where it holds one, or words."""
    if row < grid.header_rows or any(cell.row < row < cell.row + cell.row_span for cell in grid.cells):
        return 1
    filled = [found for cell, found in zip(grid.cells, lines, strict=True) if cell.row == row and cell.row_span == 1 and cell.text]
    several = [found for found in filled if len(found) > 1]
    if len(several) < 2 or 2 * len(several) <= len(filled):
        return 1
    count = len(several[0])
    if any(len(found) != count for found in several):
        return 1
    first = [line[0].box.middle for line in several[0]]
    for found in several[1:]:
        if any(abs(line[0].box.middle - middle) > 0.5 * line[0].box.height for line, middle in zip(found, first, strict=True)):
            return 1
    written = [line.text for found in several for group in found for line in group]
    if 2 * sum(1 for text in written if any(char.isdigit() for char in text)) > len(written):
        return count
    wrapped = sum(1 for text in written if text[:1].islower())
    return count if count > 2 and len(several) > 2 and 10 * wrapped <= len(written) else 1


def _nearest(edges: Sequence[float], value: float) -> int:
    return min(range(len(edges)), key=lambda number: abs(edges[number] - value))


def _distance(cell: Box, word: Box) -> float:
    across = max(cell.left - word.centre, 0.0, word.centre - cell.right)
    down = max(cell.top - word.middle, 0.0, word.middle - cell.bottom)
    return across + down


def _without_empty(grid: Grid) -> Grid | None:
    """The grid without rows and columns in which no cell begins with words; None where less than two of either stay."""
    rows = [row for row in range(grid.rows) if any(cell.row == row and cell.text for cell in grid.cells)]
    columns = [column for column in range(grid.columns) if any(cell.column == column and cell.text for cell in grid.cells)]
    if len(rows) < 2 or len(columns) < 2:
        return None
    cells = []
    for cell in grid.cells:
        kept_rows = [rows.index(row) for row in range(cell.row, cell.row + cell.row_span) if row in rows]
        kept_columns = [columns.index(column) for column in range(cell.column, cell.column + cell.column_span) if column in columns]
        if kept_rows and kept_columns:
            cells.append(replace(cell, row=kept_rows[0], column=kept_columns[0], row_span=len(kept_rows), column_span=len(kept_columns)))
    return Grid(grid.box, len(rows), len(columns), tuple(sorted(cells, key=lambda cell: (cell.row, cell.column))), grid.header_rows)


def columns_of(rows: Sequence[Sequence[Line]]) -> list[tuple[float, float]]:
    """Where the columns of rows of segments are, as (left, right), from the rows that are fullest; [] where there is one at most."""
    most = max((len(row) for row in rows), default=0)
    if most < 2:
        return []
    spans = sorted((line.box.left, line.box.right) for row in rows if len(row) >= max(2, FULL * most) for line in row)
    columns: list[tuple[float, float]] = []
    for left, right in spans:
        if columns and left < columns[-1][1]:
            columns[-1] = (columns[-1][0], max(columns[-1][1], right))
        else:
            columns.append((left, right))
    columns = _without_shadows(columns, rows)
    return columns if len(columns) > 1 else []


def _without_shadows(columns: list[tuple[float, float]], rows: Sequence[Sequence[Line]]) -> list[tuple[float, float]]:
    """The columns, those made one of which one has a word or two and never in a row with its neighbour: a heading that stands aside
    of what it heads."""
    kept = list(columns)
    filled = [{number for number, row in enumerate(rows) if any(_over(column, line.box) for line in row)} for column in kept]
    place = 0
    while place + 1 < len(kept) and len(kept) > 2:
        here, there = filled[place], filled[place + 1]
        if not here & there and min(len(here), len(there)) <= max(1, SHADOW * len(rows)):
            kept[place : place + 2] = [(kept[place][0], kept[place + 1][1])]
            filled[place : place + 2] = [here | there]
        else:
            place += 1
    return kept


def _over(column: tuple[float, float], box: Box) -> bool:
    return min(column[1], box.right) > max(column[0], box.left)


def runs_on(segments: Sequence[Line]) -> bool:
    """Whether segments are lines of running text rather than cells: too many of those with several words begin with a small letter."""
    wordy = [line for line in segments if len(line.text.split()) > 1]
    return len(wordy) > 3 and sum(1 for line in wordy if line.text[0].islower()) > SENTENCES * len(wordy)


def grid_of_rows(rows: Sequence[Sequence[Line]], header_rows: int = 1) -> Grid | None:
    """The grid of rows of segments; each becomes a row, and a segment over several columns spans them. None where there is one column."""
    columns = columns_of(rows)
    if not columns:
        return None
    cells: list[GridCell] = []
    for number, row in enumerate(rows):
        places: dict[int, list[Line]] = {}
        spans: dict[int, int] = {}
        for line in sorted(row, key=lambda line: line.box.left):
            over = [place for place, (left, right) in enumerate(columns) if min(line.box.right, right) - max(line.box.left, left) > 0]
            if not over:
                over = [min(range(len(columns)), key=lambda place: _aside(columns[place], line.box))]
            first = next((place for place in over if any(place < begun + spans[begun] for begun in places if begun <= place)), None)
            owner = over[0] if first is None else max(begun for begun in places if begun <= first)
            places.setdefault(owner, []).append(line)
            spans[owner] = max(spans.get(owner, 1), over[-1] - owner + 1)
        for place, lines in places.items():
            following = min((other for other in places if other > place), default=len(columns))
            text = " ".join(line.text for line in lines)
            cells.append(GridCell(number, place, text, union(line.box for line in lines), 1, min(spans[place], following - place)))
    box = union(line.box for row in rows for line in row)
    return Grid(box, len(rows), len(columns), tuple(cells), header_rows)


def read_from_the_right(grid: Grid) -> Grid:
    """The grid with its columns in the order in which its words are read: the rightmost first where they run from the right."""
    if not runs_from_the_right("".join(cell.text for cell in grid.cells)):
        return grid
    cells = [replace(cell, column=grid.columns - cell.column - cell.column_span) for cell in grid.cells]
    return replace(grid, cells=tuple(sorted(cells, key=lambda cell: (cell.row, cell.column))))


def _aside(column: tuple[float, float], box: Box) -> float:
    return max(column[0] - box.centre, box.centre - column[1], 0.0)


def join_rows(rows: Sequence[Sequence[Line]], starts: Sequence[int]) -> list[list[Line]]:
    """Rows joined so that a new one begins at each position of `starts` (the first always does); each column's lines, top to bottom."""
    joined: list[list[Line]] = []
    for number, row in enumerate(rows):
        if number in starts or not joined:
            joined.append(list(row))
        else:
            joined[-1].extend(row)
    return joined


def stack(row: Sequence[Line], columns: Sequence[tuple[float, float]]) -> list[Line]:
    """The lines of one row, those of one column made one line."""
    kept: list[Line] = []
    owner: dict[int, int] = {}
    for line in sorted(row, key=lambda line: (line.box.middle, line.box.left)):
        over = [place for place, (left, right) in enumerate(columns) if min(line.box.right, right) - max(line.box.left, left) > 0]
        if len(over) == 1 and over[0] in owner:
            before = kept[owner[over[0]]]
            kept[owner[over[0]]] = replace(
                before, spans=before.spans + line.spans, text=f"{before.text} {line.text}", box=union((before.box, line.box))
            )
            continue
        if len(over) == 1:
            owner[over[0]] = len(kept)
        kept.append(line)
    return kept


def continuation_starts(rows: Sequence[Sequence[Line]], columns: Sequence[tuple[float, float]]) -> list[int]:
    """Where rows begin: a row that leaves the first column empty, fills less than half and stands close below another goes on with it."""
    starts = [0]
    tops = [min(line.box.top for line in row) for row in rows]
    bottoms = [max(line.box.bottom for line in row) for row in rows]
    gaps = [top - bottom for bottom, top in zip(bottoms, tops[1:], strict=False)]
    usual = median(gaps) if gaps else 0.0
    for number, row in enumerate(rows[1:], start=1):
        first_left = columns[0][1]
        leaves_first = all(line.box.left >= first_left for line in row)
        digits = sum(char.isdigit() for line in row for char in line.text)
        letters = sum(char.isalpha() for line in row for char in line.text)
        if leaves_first and 2 * len(row) <= len(columns) and letters > digits and gaps[number - 1] <= usual + 0.5:
            continue
        starts.append(number)
    return starts
