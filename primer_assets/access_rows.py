"""`access_rows`: deletes and permission changes into the rows of both indexes. The access lane: a pool and runs of its own."""

import time
from collections.abc import Sequence
from datetime import timedelta

import dagster as dg

from primer_assets.grid_asset import grid_asset
from primer_assets.indexed_documents import flip_held
from primer_assets.keyword_index import write_keywords
from primer_assets.stage_run import Checkpoint, StageRun, Tally, plain_errors
from primer_assets.vector_index import write_vectors
from primer_assets.writing import pause
from primer_core.lanes import Lane
from primer_core.stages import WRITE
from primer_resources.catalog.catalog import Catalog
from primer_resources.document_store import DocumentStore
from primer_resources.settings import Settings
from primer_resources.toolkit import Toolkit

RUN_TIME = timedelta(minutes=10)
"""How long a run takes up more jobs; the next one goes on."""
LINGER = timedelta(seconds=30)
"""How long a run that a sensor launched waits for more: removals come in bursts, and a new process takes several seconds to begin."""
LINGER_POLL_S = 0.5


@grid_asset(
    group="indexes",
    deps=["source_documents", "indexed_documents"],
    pool="access",
    kind="lancedb",
    description="Deletes and changes of permission, in the rows of both indexes. The catalog has decided already: nobody finds what he may "
    "not read, whatever the rows say. Runs of its own, so that no rows wait for a long parse or embedding; an ordinary sweep does the "
    "same work where it comes first.",
)
def access_rows(
    context: dg.AssetExecutionContext,
    catalog: dg.ResourceParam[Catalog],
    store: dg.ResourceParam[DocumentStore],
    settings: dg.ResourceParam[Settings],
    toolkit: dg.ResourceParam[Toolkit],
    checkpoint: dg.ResourceParam[Checkpoint],
) -> dg.MaterializeResult[None]:
    """Drain the access lane, batch by batch."""
    with plain_errors():
        run = StageRun.of(context, catalog, store, settings, toolkit)
        tally = Tally()
        linger = LINGER if "dagster/sensor_name" in context.run.tags else timedelta(0)
        with run.working():
            left = drain_access(run, tally, checkpoint, linger)
        if left:
            context.log.info(f"{left} jobs are left, since other runs have the lanes of their buckets; the next run goes on")
        return dg.MaterializeResult(metadata={**tally.metadata("rows_added"), "left": left})


def drain_access(run: StageRun, tally: Tally, checkpoint: Checkpoint, linger: timedelta) -> int:
    """Work until nothing has waited for `linger`. Returns how many jobs are left, where lanes stay taken for a lease or the run's time is
    over.

    The lanes are given back after each batch, and then left alone for a moment: a sweep that has something to write waits for them.
    """
    began = moved = time.monotonic()
    while True:
        waiting = run.catalog.queue.waiting_access(run.version.name, run.buckets)
        if waiting and _write_batch(run, [row.bucket for row in waiting], tally, checkpoint):
            moved = time.monotonic()
        idle, patience = time.monotonic() - moved, run.settings.lease if waiting else linger
        if time.monotonic() - began >= RUN_TIME.total_seconds() or idle >= patience.total_seconds():
            return sum(row.jobs for row in run.catalog.queue.waiting_access(run.version.name, run.buckets))
        pause(LINGER_POLL_S)


def _write_batch(run: StageRun, buckets: Sequence[str], tally: Tally, checkpoint: Checkpoint) -> bool:
    """One batch through all three steps of a write, in the lanes that are free. Returns whether there was one."""
    lanes = run.catalog.lanes.acquire(run.version.name, buckets, run.owner, run.settings.lease)
    batch = run.claim(WRITE, sorted(lanes), Lane.ACCESS) if lanes else []
    if batch:
        write_vectors(run, batch, tally, checkpoint)
        write_keywords(run, tally, checkpoint)
        tally.documents += flip_held(run, lanes, tally, checkpoint)
    run.give_back()
    return bool(batch)
