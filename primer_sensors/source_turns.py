"""Which due sources get a run now, so that one that hangs or fails slows no other. Pure."""

from collections.abc import Sequence
from datetime import UTC, datetime

from primer_core.source_health import SourceFacts, is_slow

_LONG_AGO = datetime.min.replace(tzinfo=UTC)
HANGING = 2
"""Runs under way at most, in shares of the places: what hangs gives its place up to the quick ones, but not for ever."""


def choose_sources(due: Sequence[SourceFacts], under_way: Sequence[SourceFacts], now: datetime, places: int) -> list[str]:
    """source_ids to launch, the longest waiting first. At most half of the places (at least one) are for slow sources.

    A quick source that takes long counts as slow from then on, so those that hang never fill the places of the quick ones.
    """
    for_slow = max(1, places // 2)
    slow = sum(is_slow(facts, now) for facts in under_way)
    quick = len(under_way) - slow
    chosen = []
    for facts in sorted(due, key=lambda facts: (facts.ended_at or _LONG_AGO, facts.source_id)):
        if slow + quick >= places * HANGING:
            break
        if is_slow(facts, now):
            if slow >= for_slow or slow + quick >= places:
                continue
            slow += 1
        else:
            if quick >= places - min(slow, for_slow):
                continue
            quick += 1
        chosen.append(facts.source_id)
    return chosen
