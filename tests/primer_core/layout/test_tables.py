"""Grids: every word in one cell, no place covered twice, and running text is no table."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from primer_core.layout.alignments import aligned_tables
from primer_core.layout.continued import TablePart, goes_on, repeated_rows
from primer_core.layout.geometry import Box
from primer_core.layout.grids import Grid, grid_of_boxes, grid_of_rows, read_from_the_right, row_groups
from primer_core.layout.rulings import ruled_off_tables
from tests.primer_core.layout.builders import line, span

PAGE = Box(0, 0, 600, 800)


def texts(grid: Grid) -> list[list[str]]:
    rows = [["" for _ in range(grid.columns)] for _ in range(grid.rows)]
    for cell in grid.cells:
        for row in range(cell.row, cell.row + cell.row_span):
            for column in range(cell.column, cell.column + cell.column_span):
                assert rows[row][column] == "", "covered twice"
                rows[row][column] = cell.text
    return rows


def boxes(xs: list[float], ys: list[float]) -> list[Box]:
    return [Box(x, y, right, bottom) for y, bottom in itertools.pairwise(ys) for x, right in itertools.pairwise(xs)]


@given(
    st.lists(st.integers(20, 90), min_size=2, max_size=5),
    st.lists(st.integers(14, 40), min_size=2, max_size=6),
    st.lists(st.tuples(st.floats(0, 600), st.floats(0, 300), st.text(alphabet="ab1", min_size=1, max_size=4)), max_size=20),
)
def test_ruled_cells_hold_every_word_once(widths: list[int], heights: list[int], placed: list[tuple[float, float, str]]) -> None:
    xs = [float(sum(widths[:n])) for n in range(len(widths) + 1)]
    ys = [float(sum(heights[:n])) for n in range(len(heights) + 1)]
    words = [span(text, left, top, order=n) for n, (left, top, text) in enumerate(placed)]
    grid = grid_of_boxes(boxes(xs, ys), words)
    if grid is not None:
        texts(grid)
        assert sorted("".join(cell.text for cell in grid.cells).replace(" ", "")) == sorted("".join(text for _, _, text in placed))


def test_a_merged_cell_stands_in_each_of_its_places() -> None:
    cells = [Box(0, 0, 100, 20), *boxes([0, 50, 100], [20, 40, 60])]
    words = [span("Head", 10, 5), span("a", 10, 25), span("b", 60, 25), span("1", 10, 45), span("2", 60, 45)]
    grid = grid_of_boxes(cells, words)
    assert grid is not None
    assert texts(grid) == [["Head", "Head"], ["a", "b"], ["1", "2"]]


def test_a_ruled_row_of_figures_is_taken_apart_and_one_of_words_is_not() -> None:
    cells = boxes([0, 100, 200, 300], [0, 20, 60])
    head = [span(text, left, 5) for text, left in (("n", 10), ("lang", 110), ("score", 210))]
    figures = [span("6", 10, 35), span("OTSL 1", 110, 25), span("HTML 2", 110, 45), span("0.96", 210, 25), span("0.97", 210, 45)]
    grid = grid_of_boxes(cells, head + figures)
    assert grid is not None
    assert texts(grid) == [["n", "lang", "score"], ["6", "OTSL 1", "0.96"], ["6", "HTML 2", "0.97"]]
    wrapped = [span("6", 10, 35), span("words that", 110, 25), span("go on", 110, 45), span("more of", 210, 25), span("them", 210, 45)]
    grid = grid_of_boxes(cells, head + wrapped)
    assert grid is not None
    assert grid.rows == 2


def test_rules_above_and_below_make_a_table_of_columns_and_not_of_text() -> None:
    rules = [Box(50, y, 350, y + 0.5) for y in (100, 120, 180)]
    rows = [("Country", "Area", 105), ("Austria", "83,879", 125), ("Belgium", "30,689", 140), ("Denmark", "42,951", 155)]
    lines = [member for name, area, top in rows for member in (line(name, 60, top), line(area, 250, top))]
    (grid,) = ruled_off_tables(rules, lines, PAGE)
    assert texts(grid) == [[name, area] for name, area, _ in rows]
    assert ruled_off_tables(rules, [line("running text from side to side", 60, top) for top in (105, 125, 140)], PAGE) == []


def test_aligned_rows_are_a_table_with_what_goes_on_below_a_row() -> None:
    rows = [("DHAW1", "CITIBANK", "920.00", 100), ("DHAW2", "CITIBANK", "907.96", 126), ("DHAW3", "AMEX", "737.94", 138)]
    lines = [member for a, b, c, top in rows for member in (line(a, 50, top), line(b, 150, top), line(c, 300, top))]
    lines.append(line("TRAVEL CARD", 150, 112))
    (grid,) = aligned_tables(lines, PAGE)
    assert texts(grid) == [["DHAW1", "CITIBANK TRAVEL CARD", "920.00"], ["DHAW2", "CITIBANK", "907.96"], ["DHAW3", "AMEX", "737.94"]]


def test_two_columns_of_running_text_are_no_table() -> None:
    words = (
        "which shows that words",
        "go on from line to line",
        "and never stand in cells",
        "however narrow it is set",
        "on a page of two columns",
    )
    lines = [line(text, left, 100 + 12 * n) for n, text in enumerate(words) for left in (50, 250)]
    assert aligned_tables(lines, PAGE) == []


def test_a_contents_page_and_a_list_are_no_tables() -> None:
    contents = [
        member for n in range(5) for member in (line(f"Chapter {n} . . . . . . .", 50, 100 + 12 * n), line(str(n), 300, 100 + 12 * n))
    ]
    assert aligned_tables(contents, PAGE) == []
    items = [member for n in range(5) for member in (line("•", 50, 100 + 12 * n), line("item", 70, 100 + 12 * n))]
    assert aligned_tables(items, PAGE) == []


def test_columns_from_the_right_come_first() -> None:
    grid = grid_of_rows(row_groups([line("שם", 200, 0), line("א", 50, 0), line("מספר", 200, 20), line("ב", 50, 20)]))
    assert grid is not None
    assert texts(read_from_the_right(grid)) == [["שם", "א"], ["מספר", "ב"]]


def test_a_table_goes_on_where_columns_agree_and_its_header_is_not_said_twice() -> None:
    first = TablePart(3, (0.1, 0.4, 0.7), (("part", "qty", "price"), ("bolt", "1", "2")), 1)
    assert goes_on(first, TablePart(3, (0.1, 0.41, 0.7), (("nut", "3", "4"),), 1))
    assert not goes_on(first, TablePart(3, (0.2, 0.5, 0.8), (("nut", "3", "4"),), 1))
    assert not goes_on(first, TablePart(2, (0.1, 0.4), (("nut", "3"),), 1))
    again = TablePart(3, (0.2, 0.5, 0.8), (("Part", "Qty ", "Price"), ("nut", "3", "4")), 1)
    assert goes_on(first, again)
    assert repeated_rows(first, again) == 1
