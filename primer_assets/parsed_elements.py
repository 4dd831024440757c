"""`parsed_elements`: every new content to its element list, in child processes that can be killed. The fast lane."""

import dagster as dg

from primer_assets.grid_asset import grid_asset
from primer_assets.parsing import PARSE_FIGURES, LaneWork, parse_waiting
from primer_assets.stage_run import StageRun, plain_errors
from primer_core.lanes import Lane
from primer_resources.catalog.catalog import Catalog
from primer_resources.document_store import DocumentStore
from primer_resources.settings import Settings
from primer_resources.toolkit import Toolkit


@grid_asset(
    group="documents",
    deps=["source_documents"],
    pool="parse",
    kind="docling",
    description="Documents parsed to one list of elements (headings, paragraphs, list items, tables, captions, code), whatever their "
    "format. A content that this parser version has parsed before is passed on without being read; a scan or a very long document is "
    "left to slow_parsed_elements. Flagged: under 98 % of the words kept.",
)
def parsed_elements(
    context: dg.AssetExecutionContext,
    catalog: dg.ResourceParam[Catalog],
    store: dg.ResourceParam[DocumentStore],
    settings: dg.ResourceParam[Settings],
    toolkit: dg.ResourceParam[Toolkit],
) -> dg.MaterializeResult[None]:
    """Drain `pending_parse` of the fast lane."""
    with plain_errors():
        run = StageRun.of(context, catalog, store, settings, toolkit)
        taken_up = _take_up(run)
        tally = parse_waiting(run, LaneWork(Lane.FAST, run.tools.parser))
        more = {} if taken_up is None else {"taken_up_by_backfill": dg.MetadataValue.int(taken_up)}
        return dg.MaterializeResult(metadata={**tally.metadata(*PARSE_FIGURES, "left_to_slow_lane"), **more})


def _take_up(run: StageRun) -> int | None:
    """Give the run's buckets of a version that is being filled their next documents, as many as the run may do. Returns how many; None
    where no backfill is under way, or not in this run."""
    backfill = run.backfill if run.takes_backfill else None
    return None if backfill is None else run.catalog.backfills.feed(backfill, run.buckets, run.settings.run_documents)
