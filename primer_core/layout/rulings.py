"""Tables whose rows are set off by horizontal rules only, above and below, with nothing between the columns."""

import itertools
from collections.abc import Sequence
from statistics import median

from primer_core.layout.geometry import Box, Line, union
from primer_core.layout.grids import SNAP, Grid, columns_of, continuation_starts, grid_of_rows, join_rows, row_groups, runs_on, stack

ROWS_IN_COLUMNS = 0.6
"""Least share of the rows that have two segments or more: below it the rules frame running text."""

LEAST_WIDTH = 0.12
"""Least length of a rule, as a share of the page's width."""

FILLED = 0.22
"""Least share of the height between the rules that rows of words take: less is a picture's frame."""

TALLEST = 0.75
"""Greatest distance between two rules of one table, as a share of the page's height."""


def rule_groups(rules: Sequence[Box], page: Box) -> list[list[Box]]:
    """Horizontal rules of one length and place, top to bottom, two at least; pieces of one rule are joined first."""
    joined: list[Box] = []
    for rule in sorted(rules, key=lambda rule: (round(rule.middle), rule.left)):
        if joined and abs(rule.middle - joined[-1].middle) <= 1.5 and rule.left - joined[-1].right <= SNAP:
            joined[-1] = union((joined[-1], rule))
        else:
            joined.append(rule)
    groups: list[list[Box]] = []
    for rule in sorted((rule for rule in joined if rule.width >= LEAST_WIDTH * page.width), key=lambda rule: rule.top):
        for group in groups:
            last = group[-1]
            alike = abs(last.left - rule.left) <= 2 * SNAP and abs(last.right - rule.right) <= 2 * SNAP
            if alike and rule.middle - last.middle <= TALLEST * page.height:
                if rule.middle - last.middle > SNAP:
                    group.append(rule)
                break
        else:
            groups.append([rule])
    return [group for group in groups if len(group) > 1]


def ruled_off_tables(rules: Sequence[Box], lines: Sequence[Line], page: Box) -> list[Grid]:
    """Tables between rules of equal width. `lines` are segments: lines that are cut wherever a gap is wide."""
    found = []
    for group in rule_groups(rules, page):
        for run in _runs(group, lines):
            grid = _table(run, lines)
            if grid is not None:
                found.append(grid)
    return found


def _within(lines: Sequence[Line], top: Box, bottom: Box) -> list[Line]:
    return [
        line
        for line in lines
        if top.middle - 1 <= line.box.middle <= bottom.middle + 1 and top.left - 4 <= line.box.centre <= top.right + 4
    ]


def _runs(group: Sequence[Box], lines: Sequence[Line]) -> list[list[Box]]:
    """The rules cut wherever what stands between two of them is running text or nothing."""
    runs: list[list[Box]] = [[group[0]]]
    for upper, lower in itertools.pairwise(group):
        rows = row_groups(_within(lines, upper, lower))
        several = sum(1 for row in rows if len(row) > 1)
        if rows and several >= ROWS_IN_COLUMNS * len(rows):
            runs[-1].append(lower)
        elif rows and len(rows) <= 2 and len(runs[-1]) > 1 and all(line.box.width < 0.6 * upper.width for row in rows for line in row):
            runs[-1].append(lower)  # a row of one cell among others: a subheading, a total
        else:
            runs.append([lower])
    return [run for run in runs if len(run) > 1]


def _table(rules: Sequence[Box], lines: Sequence[Line]) -> Grid | None:
    strips = [row_groups(_within(lines, upper, lower)) for upper, lower in itertools.pairwise(rules)]
    strips = [strip for strip in strips if strip]
    rows = [row for strip in strips for row in strip]
    columns = columns_of(rows)
    if len(rows) < 2 or not columns:
        return None
    if sum(max(line.box.height for line in row) for row in rows) < FILLED * (rules[-1].middle - rules[0].middle):
        return None
    if len(strips) >= 3 and median(len(strip) for strip in strips) <= 2:
        starts, at = [], 0
        for strip in strips:
            starts.append(at)
            at += len(strip)
        header = 1
    elif runs_on([line for row in rows for line in row]):
        return None
    else:
        header_lines = len(strips[0]) if len(strips) > 1 else 1
        body = continuation_starts(rows[header_lines:], columns) if len(rows) > header_lines else []
        starts = [0, *(header_lines + start for start in body)]
        header = 1
    stacked = [stack(row, columns) for row in join_rows(rows, starts)]
    grid = grid_of_rows(stacked, header)
    return grid if grid is not None and grid.rows >= 2 else None
