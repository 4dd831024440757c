"""Upkeep: when a LanceDB table is due for compaction and index work. The decision only; a resource measures and carries out."""

from dataclasses import dataclass

MAX_SMALL_FRAGMENTS = 200
"""Every scan opens every fragment; beyond this, small commits show in the latency of a search."""
MAX_DELETION_FILES = 64
"""Each is read beside its fragment at every scan."""
MAX_UNINDEXED_ROWS = 20_000
"""Rows outside an index are scanned flat: 10,000 more took a query from 3 to 11 ms."""
MAX_UNINDEXED_SHARE = 0.05
"""Of the table's rows, for tables where MAX_UNINDEXED_ROWS would come late."""
MIN_UNINDEXED_ROWS = 1_000
"""Below this the share says nothing: a flat scan of so few rows is free and the index work is not."""
MAX_OLD_VERSIONS = 1_000
"""Each is a manifest that a listing of versions reads."""


@dataclass(frozen=True, slots=True)
class TableStats:
    """What a table looks like. `unindexed_rows` is of the index that lags most, 0 where there is none.

    `old_versions` counts only versions old enough to be removed now, else a burst of commits would make every call due
    until it ages. `missing_indexes` names columns whose index the table has grown to need.
    """

    rows: int
    small_fragments: int
    deletion_files: int
    unindexed_rows: int
    old_versions: int
    missing_indexes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UpkeepDecision:
    """Whether upkeep is due, and each threshold that says so. No reasons, nothing due."""

    should: bool
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UpkeepResult:
    """What upkeep found and did. `error` is set where maintenance failed: the table is as good as before, and the next call tries again."""

    decision: UpkeepDecision
    error: str | None = None


def decide_upkeep(stats: TableStats) -> UpkeepDecision:
    """Decide whether a table is due. Due from the threshold on, not only beyond it."""
    reasons = []
    if stats.small_fragments >= MAX_SMALL_FRAGMENTS:
        reasons.append(f"{stats.small_fragments} small fragments (limit {MAX_SMALL_FRAGMENTS})")
    if stats.deletion_files >= MAX_DELETION_FILES:
        reasons.append(f"{stats.deletion_files} deletion files (limit {MAX_DELETION_FILES})")
    if stats.unindexed_rows >= MAX_UNINDEXED_ROWS:
        reasons.append(f"{stats.unindexed_rows} unindexed rows (limit {MAX_UNINDEXED_ROWS})")
    elif stats.unindexed_rows >= MIN_UNINDEXED_ROWS and stats.unindexed_rows >= MAX_UNINDEXED_SHARE * stats.rows:
        reasons.append(f"{stats.unindexed_rows} of {stats.rows} rows unindexed (limit {MAX_UNINDEXED_SHARE:.0%})")
    if stats.old_versions >= MAX_OLD_VERSIONS:
        reasons.append(f"{stats.old_versions} old versions (limit {MAX_OLD_VERSIONS})")
    if stats.missing_indexes:
        reasons.append(f"no index yet on {', '.join(stats.missing_indexes)}")
    return UpkeepDecision(should=bool(reasons), reasons=tuple(reasons))
