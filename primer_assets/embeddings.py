"""`embeddings`: a vector for every passage that no index row has yet."""

from itertools import islice

import dagster as dg

from primer_assets.grid_asset import grid_asset
from primer_assets.lost_parts import BODY_GONE, send_back
from primer_assets.stage_run import StageRun, Tally, plain_errors
from primer_assets.vectors import embed_texts, vector_key
from primer_core.failures import Deferred
from primer_core.shares import share_out
from primer_core.stages import EMBED
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.jobs import Job
from primer_resources.document_store import DocumentStore
from primer_resources.memory import give_back_memory
from primer_resources.settings import Settings
from primer_resources.toolkit import Toolkit


@grid_asset(
    group="documents",
    deps=["chunks"],
    pool="embed",
    kind="pytorch",
    description="Vectors of new passages, kept in the embedding cache under the model and the exact string. A string is embedded once. "
    "A run embeds its share, small documents first; what is over is put back for the next sweep.",
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
        tally = _drain(run)
        return dg.MaterializeResult(metadata=tally.metadata("embedded", "cache_hits", "put_back"))


def _drain(run: StageRun) -> Tally:
    """Claim and embed until nothing waits or the run's share is spent; what is over is put back for the next sweep."""
    tally = Tally()
    with run.working():
        for batch in run.claims(EMBED, run.buckets):
            tally.documents += len(batch)
            go_on = _embed(run, batch, tally)
            give_back_memory()
            if not go_on:
                break
    return tally


def _embed(run: StageRun, batch: list[Job], tally: Tally) -> bool:
    """Embed what fits into the run's share, small documents first. Returns whether all of it was done."""
    wanted = _wanted_strings(run, batch, tally)
    batch = [job for job in batch if job.job_id in wanted]
    known = run.tools.cache.known({key for strings in wanted.values() for key in strings})
    missing: dict[int, dict[str, str]] = {}
    first: dict[str, int] = {}
    for job_id, strings in wanted.items():
        missing[job_id] = {key: text for key, text in strings.items() if key not in known and first.setdefault(key, job_id) == job_id}
    share = run.settings.run_passages - tally.counts["embedded"]
    parts = share_out({job_id: len(strings) for job_id, strings in missing.items()}, max(1, share))
    now = {job_id: dict(islice(missing[job_id].items(), part)) for job_id, part in parts.items()}
    try:
        embed_texts(run.tools, run.settings, {key: text for strings in now.values() for key, text in strings.items()})
    except Deferred as error:
        for job in batch:
            run.catalog.jobs.fail(EMBED, job, run.owner, error)
            tally.fail(error)
        return True
    done_keys = known.union(*now.values())
    counts = {job_id: {"embedded": len(strings)} for job_id, strings in now.items()}
    done = [job for job in batch if done_keys.issuperset(wanted[job.job_id])]
    for job in done:
        embedded = counts.setdefault(job.job_id, {"embedded": 0})["embedded"]
        counts[job.job_id]["cache_hits"] = max(0, len(wanted[job.job_id]) - embedded - job.embedded)
        tally.counts["cache_hits"] += counts[job.job_id]["cache_hits"]
    tally.counts["embedded"] += sum(map(len, now.values()))
    finished = {job.job_id for job in done}
    left = [job for job in batch if job.job_id not in finished]
    run.catalog.jobs.complete(EMBED, done, run.owner, counts)
    with run.catalog.database.begin() as connection:
        run.catalog.jobs.put_back(connection, EMBED, left, run.owner, counts=counts)
    tally.counts["put_back"] += len(left)
    return not left


def _wanted_strings(run: StageRun, batch: list[Job], tally: Tally) -> dict[int, dict[str, str]]:
    """job_id → the strings (key → text) of its passages that no index row has yet. Jobs whose chunk set was lost are sent back."""
    states = run.catalog.generations.states(run.version.name, {job.doc_id for job in batch})
    wanted = {}
    for job in batch:
        state = states.get(job.doc_id)
        manifest = {} if state is None else state.manifest
        try:
            made = run.chunks_of(job, job.content_hash or "", job.accepted_pages)
        except BODY_GONE as error:
            send_back(run, EMBED, [job], error, tally)
            continue
        wanted[job.job_id] = {
            vector_key(run.tools, chunk.embed_text): chunk.embed_text for chunk in made if chunk.id_in(job.doc_id) not in manifest
        }
    return wanted
