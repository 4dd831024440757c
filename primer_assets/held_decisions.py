"""What a person does about held deletes: look at them, let exactly the held set through, or turn it down for good."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from primer_assets.source_deletes import delete_documents
from primer_assets.source_sync import LISTED_A_BATCH
from primer_core.delete_guard import vanishing_digest
from primer_core.failures import PrimerError
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.held_deletes import Held, HeldState
from primer_resources.catalog.sources import Source


@dataclass(frozen=True, slots=True)
class HeldReport:
    """What is held of a source, if anything is: the set, how many of it are still missing, and the paths of some. `said` is what the
    source's last sync complained of, such as an incomplete listing."""

    source: str
    held: Held | None
    still_missing: int
    sample: tuple[str, ...]
    said: str | None


def held_reports(catalog: Catalog, sample: int, source_id: str | None = None) -> list[HeldReport]:
    """Sources where deletes are held, and those whose last sync complained, by name."""
    sources = catalog.sources.all() if source_id is None else [catalog.sources.get(source_id)]
    reports = [_report(catalog, source, sample) for source in sources]
    return [report for report in reports if report.held is not None or report.said]


def _report(catalog: Catalog, source: Source, sample: int) -> HeldReport:
    missing = catalog.documents.count_missing(source.source_id)
    held = catalog.held_deletes.current(source.source_id) if missing else []
    shown = catalog.documents.living_page(source.source_id, "", sample, if_missing=True) if held else []
    paths = tuple(document.path for document in shown)
    return HeldReport(source.source_id, held[0] if held else None, missing, paths, source.last_error)


def approve(catalog: Catalog, source_id: str, person: str, owner: str, lease: timedelta) -> int:
    """Delete the held set, without waiting for another listing. Returns how many documents went; one that came back meanwhile stays.

    `owner` holds the source while it is done. Raises PrimerError where nothing is held, where what is missing is no longer that set, and
    where a sync is under way. An approval that was interrupted goes on.
    """
    source = catalog.sources.get(source_id)
    with _hold(catalog, source_id, owner, lease) as epoch:
        held = _held(catalog, source_id)
        if held.state is not HeldState.APPROVED:
            missing = catalog.documents.count_missing(source_id)
            if vanishing_digest(catalog.documents.missing_ids(source_id)) != held.digest:
                raise PrimerError(
                    f"source {source_id}: {held.documents} deletes were held, and {missing} of these documents are missing now, so it "
                    f"is no longer that set; nothing was deleted. `primer sync {source_id}` lists it anew"
                )
            catalog.held_deletes.decide(held, HeldState.APPROVED, person, (HeldState.HELD, HeldState.REJECTED))
        deleted, after = 0, ""
        while page := catalog.documents.living_page(source_id, after, LISTED_A_BATCH, if_missing=True):
            after = page[-1].doc_id
            gone = [document for document in page if document.missing_scan is not None and document.missing_scan <= held.scan]
            with catalog.database.begin() as connection:
                catalog.sources.check(connection, source_id, epoch)
                deleted += delete_documents(catalog, connection, source, gone, if_missing=True)
            catalog.sources.renew(owner, lease)
        with catalog.database.begin() as connection:
            catalog.sources.check(connection, source_id, epoch)
            catalog.held_deletes.finish(connection, held)
            catalog.sources.save_held(connection, source_id, 0)
    return deleted


def reject(catalog: Catalog, source_id: str, person: str, owner: str, lease: timedelta) -> Held:
    """Drop the held set and remember it: no listing lets the very same set through, until a person approves it. Returns the set.

    Raises PrimerError where nothing is held and where a sync is under way.
    """
    with _hold(catalog, source_id, owner, lease) as epoch:
        held = _held(catalog, source_id)
        if not catalog.held_deletes.decide(held, HeldState.REJECTED, person, (HeldState.HELD, HeldState.REJECTED)):
            raise PrimerError(f"source {source_id}: its held deletes were approved already; `primer deletes approve {source_id}` ends that")
        with catalog.database.begin() as connection:
            catalog.sources.check(connection, source_id, epoch)
            catalog.sources.save_held(connection, source_id, held.documents)
    return held


def _held(catalog: Catalog, source_id: str) -> Held:
    held = catalog.held_deletes.current(source_id) if catalog.documents.count_missing(source_id) else []
    if not held:
        raise PrimerError(f"source {source_id} has no held deletes; `primer deletes list` shows where there are any")
    return held[0]


@contextmanager
def _hold(catalog: Catalog, source_id: str, owner: str, lease: timedelta) -> Iterator[int]:
    """Keep syncs away from the source meanwhile. Gives the lease's epoch."""
    source = catalog.sources.get(source_id)
    taken = catalog.sources.acquire(source.source_id, owner, lease)
    if taken is None:
        raise PrimerError(f"source {source_id} is being synced now; try again when that has ended")
    try:
        yield taken[1]
    finally:
        catalog.sources.give_back(owner)
