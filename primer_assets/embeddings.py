"""`embeddings`: a vector for every passage that no index row has yet."""

import dagster as dg

from primer_assets.grid_asset import grid_asset
from primer_assets.stage_run import StageRun, Tally, drain, plain_errors
from primer_assets.vectors import embed_texts, vector_key
from primer_core.failures import Deferred
from primer_core.stages import EMBED
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.jobs import Job
from primer_resources.document_store import DocumentStore
from primer_resources.settings import Settings
from primer_resources.toolkit import Toolkit


@grid_asset(
    group="documents",
    deps=["chunks"],
    pool="embed",
    description="Vectors of new passages, kept in the embedding cache under the model and the exact string. A string is embedded once.",
)
def embeddings(
    context: dg.AssetExecutionContext,
    catalog: dg.ResourceParam[Catalog],
    store: dg.ResourceParam[DocumentStore],
    settings: dg.ResourceParam[Settings],
    toolkit: dg.ResourceParam[Toolkit],
) -> dg.MaterializeResult[None]:
    """Drain `pending_embed`."""
    with plain_errors():
        run = StageRun.of(context, catalog, store, settings, toolkit)
        tally = drain(run, EMBED, lambda batch, tally: _embed(run, batch, tally))
        return dg.MaterializeResult(metadata=tally.metadata("embedded", "cache_hits"))


def _embed(run: StageRun, batch: list[Job], tally: Tally) -> None:
    states = run.catalog.generations.states(run.version.name, {job.doc_id for job in batch})
    texts: dict[str, str] = {}
    first: dict[str, int] = {}
    wanted: dict[int, list[str]] = {}
    for job in batch:
        state = states.get(job.doc_id)
        manifest = {} if state is None else state.manifest
        made = run.chunks_of(job.content_hash or "", job.accepted_pages)
        keys = {vector_key(run.tools, chunk.embed_text): chunk.embed_text for chunk in made if chunk.id_in(job.doc_id) not in manifest}
        wanted[job.job_id] = list(keys)
        texts.update(keys)
        for key in keys:
            first.setdefault(key, job.job_id)
    try:
        embedded = embed_texts(run.tools, run.settings, texts)
    except Deferred as error:
        for job in batch:
            run.catalog.jobs.fail(EMBED, job, run.owner, error)
            tally.fail(error)
        return
    counts = {}
    for job in batch:
        computed = sum(1 for key in wanted[job.job_id] if key in embedded.computed and first[key] == job.job_id)
        counts[job.job_id] = {"embedded": computed, "cache_hits": len(wanted[job.job_id]) - computed}
        tally.counts.update(counts[job.job_id])
    run.catalog.jobs.complete(EMBED, batch, run.owner, counts)
