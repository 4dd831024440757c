"""Backfills run from here to their end, live work first: what `primer backfill run` does where no sensor launches runs."""

from collections.abc import Callable
from dataclasses import dataclass
from threading import Event

from primer.materialise import Materialiser
from primer.syncing import POLL_S, ranges
from primer_core.backfills import BackfillState
from primer_core.buckets import bucket_names
from primer_core.failures import PrimerError
from primer_resources.catalog.backfills import Backfill
from primer_resources.catalog.catalog import Catalog
from primer_resources.settings import Settings
from primer_sensors.sweeps import Sweep


@dataclass(frozen=True, slots=True)
class Filling:
    """Fills an index version in this process."""

    catalog: Catalog
    settings: Settings
    materialiser: Materialiser
    on_progress: Callable[[str, int, int], None]

    def run(self, backfill_id: int) -> Backfill:
        """Go on until the backfill is at its end, or somebody pauses or cancels it. Returns how it stands then."""
        names, pause = bucket_names(self.settings.buckets), Event()
        while (backfill := self.catalog.backfills.find(backfill_id)).state is BackfillState.RUNNING:
            self._do_live_work()
            before = self.catalog.backfills.progress(backfill)
            self.on_progress(f"filling {backfill.index_version}", before.done + before.failed, before.total)
            self.materialiser.backfill(Sweep(backfill.index_version, names[0], names[-1]))
            self.catalog.backfills.finish(backfill_id)
            if self.catalog.backfills.progress(self.catalog.backfills.find(backfill_id)) == before:
                pause.wait(POLL_S)  # its rate is used up, another process holds the lanes, or a backoff runs
        if backfill.state is BackfillState.PAUSED:
            raise PrimerError(f"backfill {backfill_id} is paused; `primer backfill resume {backfill_id}` lets it go on")
        return backfill

    def _do_live_work(self) -> None:
        """One sweep over what changes left waiting, in every version: a backfill goes behind it."""
        queue = self.catalog.queue
        waiting = [row for row in queue.waiting(self.settings.purge_grace) if row.jobs]
        for sweep in ranges([*waiting, *queue.waiting_access()]):
            self.materialiser.sweep(sweep)
        for sweep in ranges(queue.waiting_slow()):
            self.materialiser.slow_parse(sweep)
