"""`indexed_documents`: the last step of a write. Flips each document to its new generation, then purges what was dead for the grace."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import timedelta

import dagster as dg

from primer_assets.grid_asset import grid_asset
from primer_assets.stage_run import Checkpoint, StageRun, Tally, plain_errors
from primer_assets.writing import PlannedWrite, plans_in_hand
from primer_core.failures import SystemFault
from primer_core.ids import content_hash
from primer_core.stages import Operation
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.generations import ChunkRecord, Flip, removed_rows
from primer_resources.catalog.pulse import HISTORY
from primer_resources.document_store import DocumentStore
from primer_resources.settings import Settings
from primer_resources.toolkit import Toolkit

FLIPS_A_TRANSACTION = 50
"""Documents that flip together: few enough that no reader of the catalog waits for them."""
PURGES_A_COMMIT = 2_000
EVENT_HISTORY = timedelta(days=7)
"""How long events that are done are kept, so that the same one told again is known as such."""
FRESH = dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=24), warn_window=timedelta(hours=12))


@grid_asset(
    group="indexes",
    deps=["vector_index", "keyword_index"],
    pool="index",
    kind="sql",
    freshness=FRESH,
    description="Documents that both indexes hold whole. A document changes here in one transaction: readers see it before or after, "
    "never mixed. Rows that no reader can need any more are purged.",
)
def indexed_documents(
    context: dg.AssetExecutionContext,
    catalog: dg.ResourceParam[Catalog],
    store: dg.ResourceParam[DocumentStore],
    settings: dg.ResourceParam[Settings],
    toolkit: dg.ResourceParam[Toolkit],
    checkpoint: dg.ResourceParam[Checkpoint],
) -> dg.MaterializeResult[None]:
    """Flip what this run holds, purge, and give the lanes back."""
    with plain_errors():
        run = StageRun.of(context, catalog, store, settings, toolkit)
        tally = Tally()
        with run.working():
            lanes = catalog.lanes.acquire(run.version.name, run.buckets, run.owner, settings.lease)
            tally.documents = flip_held(run, lanes, tally, checkpoint)
            _purge(run, sorted(lanes), tally, checkpoint)
            run.give_back()  # compaction may take long and needs no lane: the access lane must not wait for it
            upkeep = {
                name: str(index.upkeep(catalog.now())) for name, index in (("vectors", run.tools.vectors), ("cache", run.tools.cache))
            }
            for backfill in catalog.backfills.running():
                catalog.backfills.finish(backfill.backfill_id)
            catalog.holders.forget()
            catalog.jobs.prune(catalog.now() - HISTORY, limit=10_000)
            catalog.events.prune(catalog.now() - EVENT_HISTORY, limit=10_000)
        shown = tally.metadata("chunks_new", "chunks_kept", "chunks_gone", "purged")
        return dg.MaterializeResult(metadata={**shown, "upkeep": dg.MetadataValue.json(upkeep)})


def flip_held(run: StageRun, lanes: Mapping[str, int], tally: Tally, checkpoint: Checkpoint) -> int:
    """Flip all documents that the run holds in these lanes (bucket → epoch). Returns how many flipped."""
    flipped = 0
    part: list[PlannedWrite] = []
    for write in plans_in_hand(run, sorted(lanes), tally):
        part.append(write)
        if len(part) >= FLIPS_A_TRANSACTION:
            flipped += _flip(run, part, lanes, tally)
            part = []
    flipped += _flip(run, part, lanes, tally)
    checkpoint("flipped")
    return flipped


def _flip(run: StageRun, writes: Sequence[PlannedWrite], lanes: Mapping[str, int], tally: Tally) -> int:
    if not writes:
        return 0
    states = run.catalog.generations.states(run.version.name, {write.job.doc_id for write in writes})
    flips = [_flip_of(write, states[write.job.doc_id].manifest) for write in writes]
    done = {job.job_id for job in run.catalog.generations.flip(run.version.name, lanes, run.owner, flips)}
    for flip in flips:
        if flip.job.job_id in done:
            tally.counts.update(flip.counts)
    return len(done)


def _flip_of(write: PlannedWrite, old: Mapping[str, int]) -> Flip:
    plan = write.plan
    counts = {"chunks_new": len(plan.diff.new), "chunks_kept": len(plan.diff.kept), "chunks_gone": len(plan.diff.gone)}
    records = tuple(
        ChunkRecord(
            planned.chunk_id,
            content_hash(planned.chunk.embed_text.encode()),
            planned.chunk.ordinal,
            planned.chunk.heading_path,
            planned.chunk.pages[0] if planned.chunk.pages else None,
            planned.chunk.token_count,
        )
        for planned in plan.chunks
    )
    return Flip(
        job=write.job,
        generation=plan.generation,
        manifest=plan.manifest,
        removed=removed_rows(old, plan.manifest),
        chunks=records,
        acl_ids=write.acl_ids,
        counts=counts if write.job.operation in (Operation.UPSERT, Operation.COPY) else {},
    )


def _purge(run: StageRun, buckets: Sequence[str], tally: Tally, checkpoint: Checkpoint) -> None:
    """Delete rows that have been dead for the grace, in both indexes, and look that they are gone; only then mark them, so a crash repeats
    the deletes. Raises SystemFault for rows that an index still has: a delete that matches nothing says nothing."""
    grace = run.settings.purge_grace
    while due := run.catalog.generations.due(run.version.name, buckets, grace, PURGES_A_COMMIT):
        run.tools.vectors.delete([purge.row_id for purge in due])
        checkpoint("purging")
        by_bucket: dict[str, list[str]] = defaultdict(list)
        for purge in due:
            by_bucket[purge.bucket].append(purge.row_id)
        left = run.tools.vectors.present([purge.row_id for purge in due])
        for bucket, row_ids in by_bucket.items():
            run.tools.keywords.delete(bucket, row_ids)
            left |= run.tools.keywords.present(bucket, row_ids)
        gone = [purge for purge in due if purge.row_id not in left]
        run.catalog.generations.purged(run.version.name, gone)
        tally.counts["purged"] += len(gone)
        if left:
            raise SystemFault(
                f"{len(left)} rows are still in an index after they were deleted, such as {min(left)}; `primer reconcile` tells in which"
            )
    run.catalog.generations.forget_purges(grace)
