"""Packing: which neighbouring units of a section share a passage. A pure function of the units, so it needs no memory of earlier versions.

Filling passages to the brim from the start lets one sentence put in at the top move every later cut of the section. Here the cuts
hang on the content: a run that is too long is cut before the unit whose first words have the least hash, and both sides
are treated alike. An edit then moves only the cuts beside it.
"""

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum

_WORDS = re.compile(r"\w+")
_KEY_WORDS = 5
"""A cut hangs on the first words of the unit after it only, so an edit further inside the unit does not move it."""


class Level(IntEnum):
    """What kind of boundary stands before a unit; the lesser is the better place for a cut."""

    BLOCK = 0
    LINE = 1
    SENTENCE = 2
    WORD = 3


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece that is never cut. `size` is in tokens; `level` and `rank` are of the boundary before it."""

    size: int
    level: Level
    rank: int


def rank_of(text: str) -> int:
    """The rank of the boundary before a unit, from the unit's first five words; 32 bits, evenly spread."""
    words = _WORDS.findall(text[:400])[:_KEY_WORDS]
    key = " ".join(words).lower() if words else text[:40].strip()
    return int.from_bytes(hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()[:4], "big")


def pack(units: Sequence[Unit], limit: int, least: int, measure: Callable[[int, int], int] | None = None) -> list[tuple[int, int]]:
    """Cut a run of units into ranges (first, stop) of at most `limit` tokens, in order, none empty.

    Among the boundaries that leave at least `least` tokens on both sides (else half of it, else any) the one with the least
    (level, rank) is cut; of equal ones the nearest to the middle. `measure(first, stop)` gives the exact size of a joined range
    where sizes do not add up; a range whose sizes fit but whose measure does not is cut further. A single unit over the limit stays alone.
    """
    totals = [0]
    for unit in units:
        totals.append(totals[-1] + unit.size)
    done: list[tuple[int, int]] = []
    waiting = [(0, len(units))] if units else []
    while waiting:
        first, stop = waiting.pop()
        fits = totals[stop] - totals[first] <= limit
        if stop - first == 1 or (fits and (measure is None or measure(first, stop) <= limit)):
            done.append((first, stop))
            continue
        cut = _choose_cut(units, totals, first, stop, least)
        waiting += [(cut, stop), (first, cut)]
    return done


def _choose_cut(units: Sequence[Unit], totals: Sequence[int], first: int, stop: int, least: int) -> int:
    middle = (totals[first] + totals[stop]) / 2
    boundaries = range(first + 1, stop)
    for room in (least, least // 2):
        allowed = [n for n in boundaries if min(totals[n] - totals[first], totals[stop] - totals[n]) >= room]
        if allowed:
            break
    else:
        allowed = list(boundaries)
    return min(allowed, key=lambda n: (units[n].level, units[n].rank, abs(totals[n] - middle), n))
