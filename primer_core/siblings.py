"""Which small sections share a passage with their neighbours. A pure function of the sections: no memory of earlier versions.

Where a page has many short sections, a passage for each crowds a list of results and says little. Neighbours are put together where one
of them is small and they belong together: siblings, or the opening text of a section with its first child. Whether two neighbours may
share hangs on these two alone, and a run of such neighbours is cut by its content (primer_core.packing), so an edit moves only what is
beside it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from primer_core.packing import Level, Unit, pack

_LEAST_PERCENT = 23
"""A cut in a run of small sections leaves this much of the limit on both sides, where it can: 60 of 260 tokens. With more, an edit
would move more cuts."""


@dataclass(frozen=True, slots=True)
class Section:
    """A section that fits one passage, or one that does not (then `whole` is False). `size` is in tokens; `rank` is packing.rank_of its
    first words. `path` holds its headings, outermost first, unlike for any two sections."""

    path: tuple[str, ...]
    size: int
    rank: int
    whole: bool = True


def merge_small(sections: Sequence[Section], small: int, most: int, measure: Callable[[int, int], int]) -> list[tuple[int, int]]:
    """Ranges (first, stop) of sections that share a passage, in order, none empty; every section is in one.

    A range of several has at most `most` tokens as `measure(first, stop)` counts them, and no two neighbours in it are both of `small`
    tokens or more.
    """
    done: list[tuple[int, int]] = []
    first = 0
    for stop in range(1, len(sections) + 1):
        if stop == len(sections) or not _may_share(sections[stop - 1], sections[stop], small, most):
            done += _cut_run(sections, first, stop, most, measure)
            first = stop
    return done


def _cut_run(
    sections: Sequence[Section], first: int, stop: int, most: int, measure: Callable[[int, int], int]
) -> Iterator[tuple[int, int]]:
    run = sections[first:stop]
    levels = [Level.BLOCK, *(_level(before, after) for before, after in pairwise(run))]
    units = [Unit(section.size, level, section.rank) for section, level in zip(run, levels, strict=True)]

    def measure_here(begin: int, end: int) -> int:
        return measure(first + begin, first + end)

    for begin, end in pack(units, most, most * _LEAST_PERCENT // 100, measure_here):
        yield first + begin, first + end


def common_path(sections: Sequence[Section]) -> tuple[str, ...]:
    """The headings that all of the sections stand under."""
    path = sections[0].path
    for section in sections[1:]:
        shared = 0
        while shared < min(len(path), len(section.path)) and path[shared] == section.path[shared]:
            shared += 1
        path = path[:shared]
    return path


def _may_share(before: Section, after: Section, small: int, most: int) -> bool:
    related = bool(after.path) and after.path[:-1] in (before.path, before.path[:-1])
    return related and before.whole and after.whole and min(before.size, after.size) < small and before.size + after.size <= most


def _level(before: Section, after: Section) -> Level:
    """An opening text stays with its first child rather than siblings with each other."""
    return Level.LINE if after.path[:-1] == before.path else Level.BLOCK
