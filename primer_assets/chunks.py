"""`chunks`: parsed documents cut into passages that fit the embedding model."""

import dagster as dg

from primer_assets.partitions import GRID, MAX_PARTITIONS_PER_RUN
from primer_assets.stage_run import SYSTEM_RETRY, StageRun, Tally, drain, plain_errors
from primer_core.chunks import diff_chunks
from primer_core.failures import DocumentFault
from primer_core.stages import CHUNK
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.jobs import Job
from primer_resources.document_store import DocumentStore
from primer_resources.settings import Settings
from primer_resources.toolkit import Toolkit


@dg.asset(
    partitions_def=GRID,
    backfill_policy=dg.BackfillPolicy.multi_run(MAX_PARTITIONS_PER_RUN),
    group_name="documents",
    deps=["parsed_elements"],
    retry_policy=SYSTEM_RETRY,
    pool="parse",
    kinds={"python"},
    description="Passages of each document, with heading path and pages. New, kept and gone are against what the indexes hold now.",
)
def chunks(
    context: dg.AssetExecutionContext,
    catalog: dg.ResourceParam[Catalog],
    store: dg.ResourceParam[DocumentStore],
    settings: dg.ResourceParam[Settings],
    toolkit: dg.ResourceParam[Toolkit],
) -> dg.MaterializeResult[None]:
    """Drain `pending_chunk`."""
    with plain_errors():
        run = StageRun.of(context, catalog, store, settings, toolkit)
        tally = drain(run, CHUNK, lambda batch, tally: _chunk(run, batch, tally))
        return dg.MaterializeResult(metadata=tally.metadata("chunks", "chunks_new", "chunks_kept", "chunks_gone"))


def _chunk(run: StageRun, batch: list[Job], tally: Tally) -> None:
    parser, chunker = run.version.recipe.parser.version, run.version.recipe.chunker.version
    states = run.catalog.generations.states(run.version.name, {job.doc_id for job in batch})
    for job in batch:
        content_hash = job.content_hash or ""
        if not run.store.has_chunks(content_hash, parser, chunker):
            try:
                made = run.tools.chunker.chunk(run.store.get_parsed(content_hash, parser))
            except DocumentFault as fault:
                run.catalog.jobs.fail(CHUNK, job, run.owner, fault)
                tally.fail(fault)
                continue
            run.store.put_chunks(content_hash, parser, chunker, made)
        else:
            made = run.store.get_chunks(content_hash, parser, chunker)
        state = states.get(job.doc_id)
        diff = diff_chunks([chunk.id_in(job.doc_id) for chunk in made], {} if state is None else state.manifest)
        tally.counts["chunks"] += len(made)
        tally.counts["chunks_new"] += len(diff.new)
        tally.counts["chunks_kept"] += len(diff.kept)
        tally.counts["chunks_gone"] += len(diff.gone)
        run.catalog.jobs.complete(CHUNK, [job], run.owner, {})
