"""A source's turn: by its change feed where it has one that can go on, by a full listing otherwise, and then by the events that wait."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from primer_assets.source_events import EventSync
from primer_core.delete_guard import DeleteDecision
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.sources import Listed, Source
from primer_resources.connectors.base import CursorExpired


@dataclass(frozen=True, slots=True)
class Turn:
    """How a source was read. `why_listed` is None where it was not listed in full; then nothing was decided on deletes either.
    `is_whole` False means that only documents of events were looked at."""

    why_listed: str | None
    decision: DeleteDecision | None
    listed: Listed | None
    is_whole: bool = True

    @property
    def learned_by(self) -> str:
        """For people."""
        if self.why_listed is not None:
            return f"full listing: {self.why_listed}"
        return "change feed" if self.is_whole else "events"


def take_turn(sync: EventSync, now: datetime, interval: timedelta, is_due: bool = True) -> Turn:
    """Read a source, then settle the events received before `now`. `interval` is how often one with a feed is listed in full all the same;
    `is_due` False means that only events wait for it."""
    turn = _read(sync, now, interval, is_due)
    sync.settle_events(now)
    return turn


def _read(sync: EventSync, now: datetime, interval: timedelta, is_due: bool) -> Turn:
    source = sync.source
    if source.cursor is None and not is_due:
        return Turn(None, None, None, is_whole=False)
    why = listing_due(sync.catalog, source, now, interval, sync.confirms_held)
    if why is None and source.cursor is not None:
        try:
            sync.follow(source.cursor)
        except CursorExpired as expired:
            why = str(expired)
        else:
            return Turn(None, None, None)
    decision = sync.run()
    return Turn(why, decision, Listed(decision.held, sync.report.held, not sync.problems, sync.cursor))


def listing_due(catalog: Catalog, source: Source, now: datetime, interval: timedelta, confirms_held: bool) -> str | None:
    """Why the source is to be listed in full now; None where its feed will do."""
    if source.cursor is None:
        return "it has no cursor of a change feed"
    if source.last_reconciled_at is None:
        return "its settings changed, or a person asked for it"
    if now >= source.last_reconciled_at + interval:
        return f"the last one began at {source.last_reconciled_at.isoformat(timespec='seconds')}"
    if source.held_digest is not None and confirms_held:
        return "deletes are held until a second listing agrees"
    if catalog.documents.wait_to_be_read(source.source_id):
        return "documents changed while they were read"
    return None
