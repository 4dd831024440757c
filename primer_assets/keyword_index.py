"""`keyword_index`: the second step of a write. The same rows into the bucket's Tantivy shard."""

from collections import defaultdict

import dagster as dg

from primer_assets.grid_asset import grid_asset
from primer_assets.stage_run import Checkpoint, StageRun, Tally, plain_errors
from primer_assets.writing import ROWS_A_COMMIT, PlannedWrite, plans_in_hand, rows_of, still_held
from primer_core.failures import Transient
from primer_core.stages import WRITE
from primer_resources.catalog.catalog import Catalog
from primer_resources.document_store import DocumentStore
from primer_resources.settings import Settings
from primer_resources.toolkit import Toolkit


@grid_asset(
    group="indexes",
    deps=["chunks", "vector_index"],
    pool="index",
    kind="tantivy",
    description="The same rows in the Tantivy shard of each bucket: ids and searchable text, no stored text.",
)
def keyword_index(
    context: dg.AssetExecutionContext,
    catalog: dg.ResourceParam[Catalog],
    store: dg.ResourceParam[DocumentStore],
    settings: dg.ResourceParam[Settings],
    toolkit: dg.ResourceParam[Toolkit],
    checkpoint: dg.ResourceParam[Checkpoint],
) -> dg.MaterializeResult[None]:
    """Write what this run holds since `vector_index`."""
    with plain_errors():
        run = StageRun.of(context, catalog, store, settings, toolkit)
        tally = Tally()
        with run.working():
            tally.documents = write_keywords(run, tally, checkpoint)
        return dg.MaterializeResult(metadata=tally.metadata("rows_added"))


def write_keywords(run: StageRun, tally: Tally, checkpoint: Checkpoint) -> int:
    """Write the rows of all documents that the run holds. Returns how many documents these are."""
    documents = 0
    waiting: dict[str, list[PlannedWrite]] = defaultdict(list)
    for write in plans_in_hand(run, run.buckets, tally):
        documents += 1
        waiting[write.job.bucket].append(write)
        if sum(len(each.plan.added) for each in waiting[write.job.bucket]) >= ROWS_A_COMMIT:
            _write_rows(run, write.job.bucket, waiting.pop(write.job.bucket), tally)
    for bucket, writes in waiting.items():
        _write_rows(run, bucket, writes, tally)
    checkpoint("keywords_written")
    return documents


def _write_rows(run: StageRun, bucket: str, writes: list[PlannedWrite], tally: Tally) -> None:
    writes = still_held(run, writes)
    rows = [row for write in writes for row in rows_of(write, {})]
    if not rows:
        return
    try:
        run.tools.keywords.write(bucket, rows)
    except Transient as error:
        for write in writes:
            run.catalog.jobs.fail(WRITE, write.job, run.owner, error)
            tally.fail(error)
        return
    still_held(run, writes)
    tally.counts["rows_added"] += len(rows)
