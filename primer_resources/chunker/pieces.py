"""Cutting one block that is too long: prose into lines and sentences, a table into rows under its header.

Works on marked text. `count` gives the tokens of a marked text's plain words.
"""

import re
from collections.abc import Callable, Iterator, Sequence

from primer_core.packing import Level, Unit, pack, rank_of
from primer_core.sentences import sentence_starts
from primer_resources.chunker.marked import cut_at, opening, plain

Count = Callable[[str], int]

_SEPARATOR = re.compile("\ufdd0((?:\\| - )+\\|\n)\ufdd1")
_LIST_ITEM = re.compile("^[^\\S\n]*(?:\ufdd4[0-9]*\ufdd5)*\ufdd0(?:[-*+]|[0-9]+\\.) \ufdd1", re.MULTILINE)
_ATOMS = re.compile(r"\s*\S+\s*")
_HEADER_SHARE = 2
"""A header may take one part in this many of a piece; a wider one is cut by columns."""


def separator(columns: int) -> str:
    """The row between header and body, with its line end; a mark, so the model does not read it."""
    return opening("| - " * columns + "|\n")


def split_prose(marked: str, budget: int, count: Count) -> list[str]:
    """Lines and sentences of at most `budget` tokens that join to `marked`; what is longer is cut at words, a longer word at letters."""
    pieces: list[str] = []
    for sentence in cut_at(marked, sentence_starts(plain(marked))):
        pieces += [sentence] if count(sentence) <= budget else _split_words(sentence, budget, count)
    return pieces


def split_list(marked: str) -> list[str]:
    """The items of a list, nested ones each for itself; they join to `marked`. Text that is no list is one piece."""
    starts, at, seen = [], 0, 0
    for found in _LIST_ITEM.finditer(marked, 1):
        seen += len(plain(marked[at : found.start()]))
        at = found.start()
        starts.append(seen)
    return cut_at(marked, starts) if starts else [marked]


def split_table(marked: str, budget: int, count: Count) -> list[str]:
    """Row groups of at most `budget` tokens, each with the caption and the header; a row that is too wide is cut by columns.

    Text without a header row is cut as prose.
    """
    found = _SEPARATOR.search(marked)
    if found is None:
        return split_prose(marked, budget, count)
    caption, _, header = marked[: found.start()].removesuffix("\n").rpartition("\n")
    caption = caption + "\n" if caption else ""
    rows = [line for line in marked[found.end() :].split("\n") if line.strip()]
    pieces: list[str] = []
    if caption and count(caption + header) * _HEADER_SHARE > budget:
        pieces += _whole_or_prose(caption, budget, count)
        caption = ""
    for names, slices in _column_groups(header, rows, budget, count):
        if count(names) * _HEADER_SHARE > budget:
            pieces += _whole_or_prose(names, budget, count)
            names = "| " * _width(names) + "|"
        if not slices:
            pieces.append(f"{caption}{names}\n{separator(_width(names))}")
        pieces += _split_rows(caption + names + "\n" + separator(_width(names)), names, slices, budget, count)
    return pieces


def _split_rows(head: str, names: str, rows: Sequence[str], budget: int, count: Count) -> Iterator[str]:
    room = budget - count(head)
    fitting: list[str] = []

    def groups() -> Iterator[str]:
        units = [Unit(count(row), Level.LINE, rank_of(plain(row))) for row in fitting]
        least = room * 3 // 10
        for first, stop in pack(units, room, least, lambda a, b: count(head + "\n".join(fitting[a:b])) - budget + room):
            yield head + "\n".join(fitting[first:stop])

    for row in rows:
        if count(head + row) <= budget:
            fitting.append(row)
            continue
        yield from groups()
        fitting = []
        yield from _split_wide_row(names, row, budget, count)
    yield from groups()


def _split_wide_row(names: str, row: str, budget: int, count: Count) -> Iterator[str]:
    """One row as small tables of as many columns as fit; a cell that does not fit alone is cut as prose under its name."""
    if not row.startswith("|"):
        yield from split_prose(row, budget, count)
        return
    heads, cells = _cells(names), _cells(row)
    heads += [""] * (len(cells) - len(heads))
    first = 0
    while first < len(cells):
        stop = first + 1
        while stop < len(cells) and count(_small_table(heads[first : stop + 1], cells[first : stop + 1])) <= budget:
            stop += 1
        table = _small_table(heads[first:stop], cells[first:stop])
        if count(table) <= budget:
            yield table
        else:
            name = heads[first]
            room = budget - count(_small_table([name], [""]))
            for piece in split_prose(cells[first], max(room, 1), count):
                yield _small_table([name], [piece.strip()])
        first = stop


def _column_groups(header: str, rows: Sequence[str], budget: int, count: Count) -> Iterator[tuple[str, list[str]]]:
    """The table as one group of columns, or as several whose header takes at most its share each."""
    if count(header) * _HEADER_SHARE <= budget:
        yield header, list(rows)
        return
    heads = _cells(header)
    bodies = [_cells(row) if row.startswith("|") else [row.strip()] for row in rows]
    first = 0
    while first < len(heads):
        stop = first + 1
        while stop < len(heads) and count(_line(heads[first : stop + 1])) * _HEADER_SHARE <= budget:
            stop += 1
        last = len(heads) if stop < len(heads) else max([len(heads), *map(len, bodies)])
        slices = [cells[first : stop if stop < len(heads) else last] for cells in bodies]
        yield _line(heads[first:stop]), [_line(cells) for cells in slices if any(cells)]
        first = stop


def _whole_or_prose(marked: str, budget: int, count: Count) -> list[str]:
    return [marked] if count(marked) <= budget else split_prose(marked, budget, count)


def _split_words(marked: str, budget: int, count: Count) -> list[str]:
    words = plain(marked)
    starts: list[int] = []
    begun = 0
    for atom in _ATOMS.finditer(words):
        if count(words[begun : atom.end()]) <= budget:
            continue
        if atom.start() > begun:
            begun = atom.start()
            starts.append(begun)
        while count(words[begun : atom.end()]) > budget:
            begun = _longest_fit(words, begun, atom.end(), budget, count)
            starts.append(begun)
    return cut_at(marked, starts)


def _longest_fit(words: str, begun: int, end: int, budget: int, count: Count) -> int:
    """Where the longest part of words[begun:end] ends that fits; at least one letter, or nothing would ever end."""
    low, high = begun + 1, end - 1
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count(words[begun:middle]) <= budget else (low, middle - 1)
    return low


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip().removeprefix("|").removesuffix("|").split("|")]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _small_table(heads: Sequence[str], cells: Sequence[str]) -> str:
    return f"{_line(heads)}\n{separator(len(cells))}{_line(cells)}"


def _width(row: str) -> int:
    return len(_cells(row))
