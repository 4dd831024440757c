"""Which sweeps to launch: waiting partitions merged into few contiguous ranges, past those that a run already covers. Pure."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from primer_core.buckets import merge_ranges


@dataclass(frozen=True, slots=True)
class Sweep:
    """One run over the buckets `first` … `last` of an index version."""

    index_version: str
    first: str
    last: str


def plan_sweeps(waiting: Mapping[str, Collection[str]], under_way: Collection[Sweep], names: Sequence[str], most: int) -> list[Sweep]:
    """Sweeps that cover what waits (index version → buckets) and is not covered yet, at most `most` under way in all.

    A bucket that a queued or running sweep covers is left to it or to the next tick, so changes coalesce. Every version gets one of the
    free places before any gets a second one, so that one which never runs dry starves none.
    """
    covered: dict[str, set[str]] = defaultdict(set)
    for sweep in under_way:
        covered[sweep.index_version].update(name for name in names if sweep.first <= name <= sweep.last)
    wanted = {version: left for version, buckets in sorted(waiting.items()) if (left := set(buckets) - covered[version])}
    planned: list[Sweep] = []
    for place, (version, buckets) in enumerate(wanted.items(), start=1):
        room = most - len(under_way) - len(planned)
        if room < 1:
            break
        share = max(1, room - (len(wanted) - place))
        free = [name for name in names if name not in covered[version]]
        pieces = (
            piece for first, last in merge_ranges(buckets, free, share) for piece in _split(version, first, last, covered[version], names)
        )
        planned.extend([piece for piece in pieces if any(piece.first <= name <= piece.last for name in buckets)][:share])
    return planned


def _split(version: str, first: str, last: str, covered: Collection[str], names: Sequence[str]) -> list[Sweep]:
    """A range of free buckets may span covered ones: cut it there, so that no two runs share a bucket."""
    pieces: list[Sweep] = []
    start: str | None = None
    before = first
    for name in (name for name in names if first <= name <= last):
        if name in covered:
            if start is not None:
                pieces.append(Sweep(version, start, before))
            start = None
        elif start is None:
            start = name
        before = name
    if start is not None:
        pieces.append(Sweep(version, start, before))
    return pieces
