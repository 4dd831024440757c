"""Scores of tables: which cells of the truth were read into the right place."""

import re
from collections.abc import Sequence

from primer_core.quality.order import common_subsequence
from primer_core.quality.words import word_list

Rows = Sequence[Sequence[str]]
_CELL = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"^\|?(?:\s*:?-+:?\s*\|)+\s*:?-*:?\s*\|?$")


def markdown_tables(markdown: str) -> list[list[list[str]]]:
    """The tables of a Markdown text: rows of cells, without the rule below the header."""
    tables: list[list[list[str]]] = []
    current: list[list[str]] = []
    for line in [*markdown.split("\n"), ""]:
        stripped = line.strip()
        if stripped.startswith("|") and stripped.endswith("|") and len(stripped) > 1:
            if not _RULE.match(stripped):
                current.append([cell.strip().replace("\\|", "|") for cell in _CELL.split(stripped)[1:-1]])
        elif current:
            tables.append(current)
            current = []
    return tables


def table_f1(read: Rows, truth: Rows) -> float:
    """F1 of a table's cells: a cell is right where its words are, in a row and a column that come in the truth's order.

    Rows are paired by the longest common subsequence of equal ones first and by most common cells after; within a pair the common
    subsequence of cells counts. Empty cells do not. 1 for two tables without words.
    """
    ours = [_words(row) for row in read]
    theirs = [_words(row) for row in truth]
    total = sum(1 for row in ours for cell in row if cell) + sum(1 for row in theirs for cell in row if cell)
    if not total:
        return 1.0
    best = [[0] * (len(theirs) + 1) for _ in range(len(ours) + 1)]
    for i in range(len(ours) - 1, -1, -1):
        for j in range(len(theirs) - 1, -1, -1):
            same = common_subsequence([cell for cell in ours[i] if cell], [cell for cell in theirs[j] if cell])
            best[i][j] = max(best[i + 1][j], best[i][j + 1], best[i + 1][j + 1] + same)
    return 2 * best[0][0] / total


def tables_f1(read: Sequence[Rows], truth: Sequence[Rows]) -> float:
    """F1 of the cells of all tables of a document: each of the truth's is paired with the one that is most like it."""
    total = sum(_filled(table) for table in read) + sum(_filled(table) for table in truth)
    if not total:
        return 1.0
    pairs = sorted(
        (
            (table_f1(ours, theirs) * (_filled(ours) + _filled(theirs)) / 2, i, j)
            for i, ours in enumerate(read)
            for j, theirs in enumerate(truth)
        ),
        reverse=True,
    )
    right, used_read, used_truth = 0.0, set[int](), set[int]()
    for cells, i, j in pairs:
        if i not in used_read and j not in used_truth:
            used_read.add(i)
            used_truth.add(j)
            right += cells
    return 2 * right / total


def _words(row: Sequence[str]) -> list[tuple[str, ...]]:
    return [tuple(word_list(cell)) for cell in row]


def _filled(table: Rows) -> int:
    return sum(1 for row in table for cell in _words(row) if cell)
