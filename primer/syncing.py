"""`primer sync`: sources listed, then sweeps until nothing of theirs is left to do. The figures come from the catalog, so work that
another process did meanwhile counts as well."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from threading import Event, Thread
from typing import Any

from primer.materialise import Materialiser
from primer_core.failures import PrimerError
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.queue import Waiting
from primer_resources.settings import Settings
from primer_sensors.sweeps import Sweep

WORDS = ("scanned", "new", "changed", "unchanged", "acl_only", "deleted", "held", "failed", "indexed")
FIGURES = ("chunks_new", "chunks_kept", "chunks_gone", "embedded", "cache_hits", "parsed")
POLL_S = 0.5
"""How often to look whether another process, or a backoff, has set waiting work free."""
CLOSE_S = 10.0
"""Between two looks for runs that have died: a run is known to be dead after two leases."""


@dataclass(frozen=True, slots=True)
class SyncResult:
    """One source's sync: WORDS and FIGURES by name, seconds, what people should know, and why it could not be listed (None: it was)."""

    source: str
    counts: dict[str, int]
    seconds: float
    notes: tuple[str, ...] = field(default=())
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The counted words and figures with the seconds."""
        return {"source": self.source, **self.counts, "seconds": round(self.seconds, 2), "notes": list(self.notes), "error": self.error}


@dataclass(frozen=True, slots=True)
class Syncing:
    """Syncs sources to the end."""

    catalog: Catalog
    settings: Settings
    materialiser: Materialiser
    on_progress: Callable[[str, int, int], None]

    def run(self, source_ids: Sequence[str]) -> list[SyncResult]:
        """List the sources one after the other, then index what waits for them. One that cannot be listed stops no other."""
        began, started_at = time.monotonic(), self.catalog.now()
        listings = {}
        for source_id in source_ids:
            self.on_progress(f"listing {source_id}", 0, 0)
            try:
                listings[source_id] = self.materialiser.source(source_id)
            except PrimerError as error:
                listings[source_id] = {"error": str(error)}
        self._sweep_until_done(source_ids)
        problem = self._purge()
        seconds = time.monotonic() - began
        results = [self._result(source_id, listings[source_id], started_at, seconds) for source_id in source_ids]
        return results if problem is None else [replace(result, notes=(*result.notes, problem)) for result in results]

    def _purge(self) -> str | None:
        """Purge what is due. Returns why that failed; the documents are indexed all the same, and the next sync tries again."""
        if self.catalog.purges.is_due(self.settings.purge_grace):
            try:
                self.materialiser.purge()
            except PrimerError as error:
                return f"what was deleted is not purged yet: {error}"
        return None

    def _sweep_until_done(self, source_ids: Sequence[str]) -> None:
        total = self.catalog.queue.unfinished(source_ids)
        first, ended = True, Event()
        watcher = Thread(target=self._watch, args=(source_ids, total, ended), name="progress", daemon=True)
        watcher.start()
        try:
            while first or self.catalog.queue.unfinished(source_ids):
                before = self.catalog.queue.standing(source_ids)
                for sweep in self._waiting_sweeps(purges=first):
                    self.materialiser.sweep(sweep)
                if self.catalog.queue.standing(source_ids) == before and not self._parse_slow(source_ids) and not first:
                    ended.wait(POLL_S)  # another process holds the lanes, or a backoff runs
                first = False
        finally:
            ended.set()
            watcher.join()

    def _parse_slow(self, source_ids: Sequence[str]) -> bool:
        """One run of the slow lane, once the sweeps can do no more. Returns False where nothing of the sources waits there."""
        sweeps = ranges(self.catalog.queue.waiting_slow(source_ids))
        for sweep in sweeps[:1]:
            self.materialiser.slow_parse(sweep)
        return bool(sweeps)

    def _watch(self, source_ids: Sequence[str], total: int, ended: Event) -> None:
        """Tell how far the sources are, while the sweeps run, and close runs that have died: a sweep may be waiting for their places."""
        looked = time.monotonic()
        while not ended.wait(POLL_S):
            if time.monotonic() - looked >= CLOSE_S:
                self.materialiser.close_dead_runs()
                looked = time.monotonic()
            standing = self.catalog.queue.standing(source_ids)
            words = ", ".join(f"{count} to {stage}" for stage, count in standing.items())
            self.on_progress(words or "finishing", total - sum(standing.values()), total)

    def _waiting_sweeps(self, purges: bool) -> list[Sweep]:
        """One range an index version over all that waits, the access lane too; purges alone are worth one sweep and no more."""
        waiting = self.catalog.queue.waiting(self.settings.purge_grace)
        return ranges([*(row for row in waiting if row.jobs or (purges and row.purges)), *self.catalog.queue.waiting_access()])

    def _result(self, source_id: str, listing: dict[str, Any], since: datetime, seconds: float) -> SyncResult:
        figures = self.catalog.lookup.figures(source_id, since)
        counts = {word: int(figures[word] if word in figures else listing.get(word, 0)) for word in (*WORDS, *FIGURES)}
        counts["failed"] += int(listing.get("still_unreadable", 0))
        notes = [str(problem) for problem in (*listing.get("problems", []), *listing.get("notices", []))]
        if listing.get("taken_by_another_run"):
            notes.append(f"source {source_id} is being synced by another run; nothing was listed here")
        if counts["held"]:
            notes.append(str(listing["deletes"]))
        return SyncResult(source_id, counts, seconds, tuple(notes), listing.get("error"))


def ranges(waiting: Iterable[Waiting]) -> list[Sweep]:
    """One range an index version, over all its buckets where something waits."""
    buckets: dict[str, list[str]] = defaultdict(list)
    for row in waiting:
        buckets[row.index_version].append(row.bucket)
    return [Sweep(version, min(names), max(names)) for version, names in sorted(buckets.items())]
