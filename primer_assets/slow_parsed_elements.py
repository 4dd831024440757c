"""`slow_parsed_elements`: scans, pictures and very long documents to their element lists. The slow lane: a pool and workers of its own."""

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
    deps=["source_documents", "parsed_elements"],
    pool="ocr",
    kind="docling",
    description="Scans, pictures and very long documents parsed to the same list of elements. Runs of its own, so that a scan of "
    "900 pages delays nobody; once parsed, a document goes on with the ordinary sweeps.",
)
def slow_parsed_elements(
    context: dg.AssetExecutionContext,
    catalog: dg.ResourceParam[Catalog],
    store: dg.ResourceParam[DocumentStore],
    settings: dg.ResourceParam[Settings],
    toolkit: dg.ResourceParam[Toolkit],
) -> dg.MaterializeResult[None]:
    """Drain `pending_parse` of the slow lane. One job a claim: what is held is what is being read."""
    with plain_errors():
        run = StageRun.of(context, catalog, store, settings, toolkit)
        tally = parse_waiting(run, LaneWork(Lane.SLOW, run.tools.slow_parser, claim=1, time=settings.slow_run_time))
        return dg.MaterializeResult(metadata=tally.metadata(*PARSE_FIGURES))
