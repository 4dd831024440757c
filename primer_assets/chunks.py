"""`chunks`: parsed documents cut into passages that fit the embedding model."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import dagster as dg

from primer_assets.grid_asset import grid_asset
from primer_assets.lost_parts import BODY_GONE, note_lost, send_back
from primer_assets.stage_run import StageRun, Tally, drain, plain_errors
from primer_core.chunks import Chunk, diff_chunks
from primer_core.reviews import output_version
from primer_core.stages import CHUNK
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.jobs import Job
from primer_resources.chunker.base import ChunkRequest
from primer_resources.document_store import DocumentStore, TenantStore
from primer_resources.settings import Settings
from primer_resources.toolkit import Toolkit


@grid_asset(
    group="documents",
    deps=["parsed_elements", "slow_parsed_elements"],
    pool="parse",
    kind="docling",
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
    for tenant_id, theirs in run.by_tenant(batch).items():
        by_accepted: dict[str, list[Job]] = defaultdict(list)
        for job in theirs:
            by_accepted[job.accepted_pages].append(job)
        for accepted_pages, jobs in by_accepted.items():
            _chunk_outputs(run, run.store.of(tenant_id), output_version(run.version.recipe.parser.version, accepted_pages), jobs, tally)


def _chunk_outputs(run: StageRun, store: TenantStore, parser: str, batch: list[Job], tally: Tally) -> None:
    """Chunk what a parser version gave a tenant (`parser`, with the pages that a person let through)."""
    chunker = run.version.recipe.chunker.version
    by_content: dict[str, list[Job]] = defaultdict(list)
    for job in batch:
        by_content[job.content_hash or ""].append(job)
    missing = []
    for content_hash, jobs in by_content.items():
        made = _kept(run, store, parser, jobs[0]) if store.has_chunks(content_hash, parser, chunker) else None
        if made is not None:
            _finish(run, jobs, made, tally)
        else:
            missing.append(content_hash)
    for outcome in run.tools.chunker.chunk_many(_requests(run, store, parser, missing, by_content, tally)) if missing else ():
        jobs = by_content[outcome.content_hash]
        if outcome.fault is None:
            store.put_chunks(outcome.content_hash, parser, chunker, outcome.chunks, run.owner)
            _finish(run, jobs, outcome.chunks, tally)
            continue
        for job in jobs:
            run.catalog.jobs.fail(CHUNK, job, run.owner, outcome.fault)
            tally.fail(outcome.fault)


def _kept(run: StageRun, store: TenantStore, parser: str, job: Job) -> tuple[Chunk, ...] | None:
    """The chunk set of a job's content that should be there; None where it was lost, and is to be made again."""
    content_hash = job.content_hash or ""
    try:
        return store.get_chunks(content_hash, parser, run.version.recipe.chunker.version)
    except BODY_GONE as error:
        note_lost(run, store.tenant_id, content_hash, job.accepted_pages, error)
        return None


def _requests(
    run: StageRun, store: TenantStore, parser: str, missing: list[str], by_content: dict[str, list[Job]], tally: Tally
) -> Iterator[ChunkRequest]:
    """Parsed documents, read one by one as the workers ask for them."""
    titles = run.catalog.parses.titles([by_content[content_hash][0].doc_id for content_hash in missing])
    for content_hash in missing:
        try:
            document = store.get_document(content_hash, parser)
        except BODY_GONE as error:
            send_back(run, CHUNK, by_content[content_hash], error, tally)
            continue
        yield ChunkRequest(content_hash, document, titles[by_content[content_hash][0].doc_id])


def _finish(run: StageRun, jobs: list[Job], made: Sequence[Chunk], tally: Tally) -> None:
    states = run.catalog.generations.states(run.version.name, {job.doc_id for job in jobs})
    for job in jobs:
        state = states.get(job.doc_id)
        diff = diff_chunks([chunk.id_in(job.doc_id) for chunk in made], {} if state is None else state.manifest)
        tally.counts["chunks"] += len(made)
        tally.counts["chunks_new"] += len(diff.new)
        tally.counts["chunks_kept"] += len(diff.kept)
        tally.counts["chunks_gone"] += len(diff.gone)
    run.catalog.jobs.complete(CHUNK, jobs, run.owner, {})
