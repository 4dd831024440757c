"""`vector_index`: the first step of a write. Claims documents, records the rows to come, and writes them with their vectors."""

from collections.abc import Sequence

import dagster as dg

from primer_assets.grid_asset import grid_asset
from primer_assets.stage_run import Checkpoint, StageRun, Tally, plain_errors
from primer_assets.vectors import embed_texts, vector_key
from primer_assets.writing import ROWS_A_COMMIT, PlannedWrite, plan_one, rows_of, still_held, take_lanes
from primer_core.failures import Deferred, Transient
from primer_core.stages import WRITE, Operation
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.jobs import Job
from primer_resources.document_store import DocumentStore
from primer_resources.settings import Settings
from primer_resources.toolkit import Toolkit


@grid_asset(
    group="indexes",
    deps=["embeddings"],
    pool="index",
    kind="lancedb",
    description="Rows of new passages in the LanceDB table of this index version. They count only after the flip in indexed_documents.",
)
def vector_index(
    context: dg.AssetExecutionContext,
    catalog: dg.ResourceParam[Catalog],
    store: dg.ResourceParam[DocumentStore],
    settings: dg.ResourceParam[Settings],
    toolkit: dg.ResourceParam[Toolkit],
    checkpoint: dg.ResourceParam[Checkpoint],
) -> dg.MaterializeResult[None]:
    """Take the lanes that are free, or soon are, and claim `pending_write` in them."""
    with plain_errors():
        run = StageRun.of(context, catalog, store, settings, toolkit)
        tally = Tally()
        with run.working():
            lanes = take_lanes(run, run.buckets)
            busy = sorted(set(run.buckets) - set(lanes))
            if busy:
                context.log.info(f"lanes {', '.join(busy)} of {run.version.name} are taken by another run; what waits there is left to it")
            for batch in run.claims(WRITE, sorted(lanes)):
                tally.documents += len(batch)
                write_vectors(run, batch, tally, checkpoint)
        return dg.MaterializeResult(metadata={**tally.metadata("rows_added"), "lanes_busy": len(busy)})


def write_vectors(run: StageRun, batch: Sequence[Job], tally: Tally, checkpoint: Checkpoint) -> None:
    """Open a generation for each claimed job, record the rows to come, and write them with their vectors."""
    checkpoint("claimed")
    ready = _ready(run, batch, tally)
    planned = (plan_one(run, job, state, tally) for job, state in run.catalog.generations.open(ready, run.owner))
    writes = [write for write in planned if write is not None]
    run.catalog.generations.intend(
        run.version.name,
        ((write.job, write.plan.generation, [chunk.row_id for chunk in write.plan.added]) for write in writes),
    )
    checkpoint("intended")
    part: list[PlannedWrite] = []
    rows = 0
    for write in writes:
        part.append(write)
        rows += len(write.plan.added)
        if rows >= ROWS_A_COMMIT:
            _write_rows(run, part, tally)
            part, rows = [], 0
    _write_rows(run, part, tally)
    checkpoint("vectors_written")


def _ready(run: StageRun, batch: Sequence[Job], tally: Tally) -> list[Job]:
    """The jobs whose write can begin: a copy's only where the rows that are to stand for it are there."""
    unready = run.catalog.copies.unready(run.version.name, [job for job in batch if job.operation is Operation.COPY])
    for job in batch:
        if job.job_id in unready:
            run.catalog.jobs.fail(WRITE, job, run.owner, unready[job.job_id])
            tally.fail(unready[job.job_id])
    return [job for job in batch if job.job_id not in unready]


def _write_rows(run: StageRun, writes: Sequence[PlannedWrite], tally: Tally) -> None:
    """One commit. Vectors come from the cache; one that the cache lost is embedded again."""
    writes = still_held(run, writes)
    keys = {planned.row_id: vector_key(run.tools, planned.chunk.embed_text) for write in writes for planned in write.plan.added}
    texts = {keys[planned.row_id]: planned.chunk.embed_text for write in writes for planned in write.plan.added}
    if not texts:
        return
    try:
        embedded = embed_texts(run.tools, run.settings, texts)
        vectors = {row: embedded.vectors[key] for row, key in keys.items()}
        run.tools.vectors.write([row for write in writes for row in rows_of(write, vectors)])
    except (Deferred, Transient) as error:
        for write in writes:
            run.catalog.jobs.fail(WRITE, write.job, run.owner, error)
            tally.fail(error)
        return
    still_held(run, writes)
    tally.counts["rows_added"] += len(keys)
