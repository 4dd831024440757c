"""The cursor of a feed that is ordered by time: where the next read begins, and what was seen at that very moment.

Sources keep whole seconds, so many items share one. A range that begins after the last second read loses the items that arrive in that
second later; one that begins with it repeats the others. So the range is closed at its start, and the cursor carries the items already
seen there with the state that they had. An item whose second may not be over yet is read again, whatever its state: the source cannot
tell two edits in one second apart.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Self

from primer_core.source_time import check_aware, parse_time

SETTLED = timedelta(seconds=2)
"""How old a moment must be, by the source's own clock, before nothing more can happen in it: one second of resolution, and one of
transactions that commit late."""


@dataclass(frozen=True, slots=True)
class TimeCursor:
    """The next read takes what changed at `since` or later, and leaves out what `seen` (item id → state) has in the same state."""

    since: datetime
    seen: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "since", check_aware(self.since))

    def has_seen(self, item_id: str, state: str, at: datetime) -> bool:
        """Whether the item stood at the boundary in this state already."""
        return check_aware(at) == self.since and self.seen.get(item_id) == state

    def after(self, item_id: str, state: str, at: datetime, now: datetime) -> Self:
        """The cursor once this item was read at the source's time `now`. An item that is older than `since` moves nothing."""
        moment = check_aware(at)
        if moment < self.since:
            return self
        is_over = moment <= check_aware(now) - SETTLED
        mine = {item_id: state} if is_over else {}
        return type(self)(moment, {**self.seen, **mine} if moment == self.since else mine)

    def to_json(self) -> dict[str, Any]:
        """For the catalog."""
        return {"since": self.since.isoformat(), "seen": dict(self.seen)}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """From the catalog. Raises ValueError or KeyError for what to_json did not write."""
        return cls(parse_time(values["since"]), dict(values["seen"]))
