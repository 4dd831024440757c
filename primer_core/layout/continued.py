"""Whether a table goes on with the one at the end of the page before, and which of its rows only repeat the header."""

from collections.abc import Sequence
from dataclasses import dataclass

EDGES = 0.02
"""Share of the page's width within which two columns begin at the same place."""


@dataclass(frozen=True, slots=True)
class TablePart:
    """One table on one page. `lefts` is where each column begins, as a share of the page's width; `first_rows` are the words of its
    upper rows, of which `header_rows` are the header."""

    columns: int
    lefts: tuple[float, ...]
    first_rows: tuple[tuple[str, ...], ...]
    header_rows: int


def goes_on(before: TablePart, after: TablePart) -> bool:
    """Whether the columns agree: as many, and each begins where its like does; or the header is repeated word for word."""
    if before.columns != after.columns or before.columns < 2:
        return False
    if repeated_rows(before, after):
        return True
    if len(before.lefts) != len(after.lefts):
        return False
    near = sum(1 for first, second in zip(before.lefts, after.lefts, strict=True) if abs(first - second) <= EDGES)
    return near >= max(2, before.columns - 1)


def repeated_rows(before: TablePart, after: TablePart) -> int:
    """How many of the later table's first rows repeat the earlier one's header."""
    count = 0
    for first, second in zip(before.first_rows[: before.header_rows], after.first_rows, strict=False):
        if _words(first) != _words(second) or not any(_words(first)):
            break
        count += 1
    return count if count == before.header_rows else 0


def _words(row: Sequence[str]) -> tuple[str, ...]:
    return tuple(" ".join(text.split()).casefold() for text in row)
