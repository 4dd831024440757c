"""`parsed_elements`: every new content to its element list, in child processes that can be killed."""

import stat
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import dagster as dg

from primer_assets.grid_asset import grid_asset
from primer_assets.stage_run import StageRun, Tally, drain, plain_errors
from primer_core.stages import PARSE
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.jobs import Job
from primer_resources.document_store import DocumentStore
from primer_resources.parser.base import ParseRequest
from primer_resources.settings import Settings
from primer_resources.toolkit import Toolkit


@grid_asset(
    group="documents",
    deps=["source_documents"],
    pool="parse",
    description="Documents parsed to one list of elements (headings, paragraphs, list items, tables, captions, code), whatever their "
    "format. A content that this parser version has parsed before is passed on without being read. Flagged: under 98 % of the words kept.",
)
def parsed_elements(
    context: dg.AssetExecutionContext,
    catalog: dg.ResourceParam[Catalog],
    store: dg.ResourceParam[DocumentStore],
    settings: dg.ResourceParam[Settings],
    toolkit: dg.ResourceParam[Toolkit],
) -> dg.MaterializeResult[None]:
    """Drain `pending_parse`."""
    with plain_errors():
        run = StageRun.of(context, catalog, store, settings, toolkit)
        tally = drain(run, PARSE, lambda batch, tally: _parse(run, batch, tally))
        return dg.MaterializeResult(metadata=tally.metadata("parsed", "already_parsed", "elements", "pages", "flagged"))


def _parse(run: StageRun, batch: list[Job], tally: Tally) -> None:
    version = run.version.recipe.parser.version
    by_content: dict[str, list[Job]] = defaultdict(list)
    for job in batch:
        by_content[job.content_hash or ""].append(job)
    known = run.catalog.parses.known(version, by_content)
    ready = [job for content_hash in known for job in by_content[content_hash]]
    run.catalog.jobs.complete(PARSE, ready, run.owner, {})
    tally.counts["already_parsed"] += len(ready)
    wanted = {content_hash: jobs for content_hash, jobs in by_content.items() if content_hash not in known}
    if not wanted:
        return
    with run.tools.pool.scratch() as folder:
        for outcome in run.tools.parser.parse_many(_requests(run, wanted, folder)):
            (folder / outcome.content_hash).unlink(missing_ok=True)
            jobs = wanted[outcome.content_hash]
            tally.counts["parse_ms"] += round(outcome.seconds * 1000)
            if outcome.fault is not None or outcome.parsed is None:
                fault = outcome.fault
                assert fault is not None
                run.catalog.parses.record(version, outcome.content_hash, None, None, fault.reason)
                for job in jobs:
                    run.catalog.jobs.fail(PARSE, job, run.owner, fault)
                    tally.fail(fault)
                continue
            run.store.put_parsed(outcome.content_hash, version, outcome.parsed)
            elements, pages = outcome.parsed.elements, outcome.parsed.pages
            run.catalog.parses.record(version, outcome.content_hash, len(elements), pages, None, outcome.kept)
            run.catalog.jobs.complete(PARSE, jobs, run.owner, {jobs[0].job_id: {"parsed": 1}})
            tally.counts["parsed"] += 1
            tally.counts["elements"] += len(elements)
            tally.counts["pages"] += pages or 0
            tally.counts["flagged"] += int(outcome.kept is not None and outcome.kept.is_flagged)


def _requests(run: StageRun, wanted: dict[str, list[Job]], folder: Path) -> Iterator[ParseRequest]:
    """Private read-only copies, made one by one as the parser asks for them, so that a large batch never fills the disk."""
    titles = run.catalog.parses.titles([jobs[0].doc_id for jobs in wanted.values()])
    for content_hash, jobs in wanted.items():
        target = folder / content_hash
        run.store.fetch_content(content_hash, target)
        target.chmod(stat.S_IRUSR)
        yield ParseRequest(content_hash, target, titles[jobs[0].doc_id])
