"""Running headers, footers and page numbers: lines that come again at the same place on page after page."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from primer_core.layout.geometry import Box

MARGIN = 0.13
"""Share of a page's height at its top and bottom in which running lines are looked for."""

PLACE = 0.025
"""Share of the page's height by which a running line may move."""

LEAST_PAGES = 2
LEAST_OF_MANY = 3
MANY_PAGES = 10
"""A line that comes again at the same place is a running one from two pages on, in documents of more than MANY_PAGES from three:
running titles change with the chapter."""

CLOSE = 0.6
ALIGNED = 0.5
SAME_HEIGHT = 0.05
"""A line goes on with the text of the one beside it where the gap is less than CLOSE, the left edges differ by no more than ALIGNED and
the heights by no more than SAME_HEIGHT: shares of the line's height."""

HEADING = 1.2
"""A heading is so much higher than the line under it, or than most lines."""

SAME_ROW = 0.004
"""Share of the page's height within which a line stands in the row of other pages' running lines."""

LONGEST = 200
"""Letters; a longer line is text, even where it is repeated."""

_DIGITS = re.compile(r"(?<!\w)\d+(?!\w)")
"""Numbers that stand alone; "Annex7" and "Annex8" are two names."""
_NUMBER_LINE = re.compile(
    r"\W*(?:(?:page|seite|página|pagina|p\.)\s*)?"
    r"(?:\d{1,4}|[ivxlc]{1,6}|[A-Z]-?\d{1,4}|\d{1,3}-\d{1,4})"
    r"(?:\s*(?:of|/|von|de|sur)\s*\d{1,4})?\W*",
    re.I,
)


@dataclass(frozen=True, slots=True)
class PageLine:
    """A line of one page."""

    page: int
    text: str
    box: Box


def is_page_number(text: str) -> bool:
    """Whether the text is a page number and nothing else: "12", "Page 3 of 9", "– iv –", "7-45"."""
    return _NUMBER_LINE.fullmatch(text.strip()) is not None


def running_lines(lines: Sequence[PageLine], heights: dict[int, float]) -> set[int]:
    """Positions in `lines` of those that are running headers, footers or page numbers. `heights` is the height of each page."""
    usual = median(line.box.height for line in lines) if lines else 0.0
    groups: list[list[int]] = []
    seen: defaultdict[tuple[str, bool], list[int]] = defaultdict(list)
    edges = _outermost(lines)
    for position, line in enumerate(lines):
        height = heights[line.page]
        top = line.box.middle <= MARGIN * height
        bottom = line.box.middle >= (1 - MARGIN) * height
        if (top or bottom or position in edges) and len(line.text) <= LONGEST:
            seen[_shape(line.text), line.box.middle <= height / 2].append(position)
    least = LEAST_PAGES if len(heights) <= MANY_PAGES else LEAST_OF_MANY
    for positions in seen.values():
        for group in _same_place(positions, lines, heights):
            alike = [lines[position] for position in group]
            if len({line.page for line in alike}) >= least and _is_running(alike) and not _are_titles(alike, usual):
                groups.append(group)
    found = {position for group in groups for position in group} - _of_the_text(groups, lines)
    found |= {position for position in edges if is_page_number(lines[position].text) and _in_margin(lines[position], heights)}
    found |= _in_running_rows(lines, found, edges, heights)
    return found | _beside_numbers(lines, found & edges, heights)


def _of_the_text(groups: Sequence[Sequence[int]], lines: Sequence[PageLine]) -> set[int]:
    """Lines that come again and yet are text wherever they stand: what a paragraph goes on with, or what stands under a heading, as the
    clause does that every page of a contract repeats. `groups` are positions of lines that come again at one place."""
    left = [list(group) for group in groups]
    others: defaultdict[int, list[Box]] = defaultdict(list)
    repeated = {position for group in left for position in group}
    for position, line in enumerate(lines):
        if position not in repeated:
            others[line.page].append(line.box)
    kept: set[int] = set()
    more = True
    while more:  # a line that goes on with one that is text after all is text too
        more = False
        for group in list(left):
            boxes = [(lines[position].box, others[lines[position].page]) for position in group]
            if all(any(_goes_on(box, other) or _is_headed(box, other) for other in beside) for box, beside in boxes):
                kept |= set(group)
                left.remove(group)
                more = True
                for position in group:
                    others[lines[position].page].append(lines[position].box)
    return kept


def _is_headed(box: Box, heading: Box) -> bool:
    """Whether a line stands close under one in larger letters."""
    is_larger = heading.height >= HEADING * box.height
    return is_larger and heading.bottom <= box.top <= heading.bottom + 2 * box.height and box.shared_width(heading) > 0


def _goes_on(box: Box, other: Box) -> bool:
    """Whether a line and another look like two lines of one paragraph."""
    height = max(box.height, other.height)
    gap = max(box.top - other.bottom, other.top - box.bottom)
    is_alike = abs(box.height - other.height) <= SAME_HEIGHT * height and abs(box.left - other.left) <= ALIGNED * height
    return is_alike and box.shared_height(other) < 0.5 * height and gap <= CLOSE * height


def _in_running_rows(lines: Sequence[PageLine], found: set[int], edges: set[int], heights: dict[int, float]) -> set[int]:
    """Lines at a page's edge with a number at their end, in the very row in which other pages have running lines: a running title that
    is on no other page."""
    rows = [(lines[position].box.middle / heights[lines[position].page], lines[position].page) for position in found]
    more = set()
    for position in edges - found:
        line = lines[position]
        words = line.text.split()
        if len(line.text) > LONGEST or not words or not (is_page_number(words[0]) or is_page_number(words[-1])):
            continue
        place = line.box.middle / heights[line.page]
        if _in_margin(line, heights) and len({page for row, page in rows if abs(row - place) <= SAME_ROW}) >= LEAST_OF_MANY:
            more.add(position)
    return more


def running_shape(text: str) -> str:
    """What running lines that differ in their numbers only have in common."""
    return "#" if is_page_number(text) else _shape(text)


def _shape(text: str) -> str:
    return _DIGITS.sub("#", " ".join(text.split()).casefold())


def _is_running(group: Sequence[PageLine]) -> bool:
    """Words that come again, or numbers that count pages. A bare figure that comes again may be a table's."""
    words = _shape(group[0].text).strip("# .-–—|/")
    if words:
        return True
    return all(is_page_number(line.text) for line in group)


def _are_titles(group: Sequence[PageLine], usual: float) -> bool:
    """Lines in larger letters than usual that differ in their numbers: "Chapter 1", "Chapter 2", each on a page of its own."""
    return len({line.text for line in group}) > 1 and all(line.box.height >= HEADING * usual for line in group)


def _in_margin(line: PageLine, heights: dict[int, float]) -> bool:
    height = heights[line.page]
    return line.box.middle <= MARGIN * height or line.box.middle >= (1 - MARGIN) * height


def _same_place(positions: Sequence[int], lines: Sequence[PageLine], heights: dict[int, float]) -> list[list[int]]:
    """Groups of lines that stand at about the same height."""
    groups: list[list[int]] = []
    last = 0.0
    for position in sorted(positions, key=lambda position: lines[position].box.middle / heights[lines[position].page]):
        place = lines[position].box.middle / heights[lines[position].page]
        if groups and place - last <= PLACE:
            groups[-1].append(position)
        else:
            groups.append([position])
        last = place
    return groups


def _outermost(lines: Sequence[PageLine]) -> set[int]:
    """Lines of each page's first and last row."""
    by_page: defaultdict[int, list[int]] = defaultdict(list)
    for position, line in enumerate(lines):
        by_page[line.page].append(position)
    edges: set[int] = set()
    for positions in by_page.values():
        first = min(positions, key=lambda position: lines[position].box.top)
        last = max(positions, key=lambda position: lines[position].box.bottom)
        for edge in (first, last):
            box = lines[edge].box
            edges |= {position for position in positions if lines[position].box.shared_height(box) > 0.5 * box.height}
    return edges


def _beside_numbers(lines: Sequence[PageLine], numbers: set[int], heights: dict[int, float]) -> set[int]:
    """What stands in one row with a page number at the very edge of a page: the running title, on a page that has no like."""
    beside: set[int] = set()
    for number in numbers:
        line = lines[number]
        if not is_page_number(line.text) or not _in_margin(line, heights):
            continue
        row = [
            position
            for position, other in enumerate(lines)
            if other.page == line.page and other.box.shared_height(line.box) > 0.5 * min(other.box.height, line.box.height)
        ]
        outer = min(row, key=lambda position: lines[position].box.left), max(row, key=lambda position: lines[position].box.right)
        if number not in outer or len(row) > 3:
            continue
        rest = [other for position, other in enumerate(lines) if other.page == line.page and position not in row]
        clear = line.box.height
        if all(other.box.top - line.box.bottom > 0.8 * clear or line.box.top - other.box.bottom > 0.8 * clear for other in rest):
            beside |= {position for position in row if len(lines[position].text) <= LONGEST}
    return beside
