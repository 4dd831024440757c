"""Jobs on index versions that people launch in the UI: begin a backfill, promote, and go back."""

import dagster as dg

from primer_assets.partitions import INDEX_VERSION
from primer_assets.stage_run import plain_errors
from primer_core.backfills import BackfillReason
from primer_core.recipe import ChunkerKind
from primer_resources.catalog.catalog import Catalog
from primer_resources.settings import Settings
from primer_resources.version_making import RecipeChange, begin_backfill


class BackfillConfig(dg.Config):
    """What is asked for. What is left out is as the live version has it; no `max_docs_per_s` is no bound."""

    target: str
    reason: BackfillReason
    model: str | None = None
    chunker: ChunkerKind | None = None
    max_tokens: int | None = None
    overlap_percent: int | None = None
    max_docs_per_s: float | None = None


@dg.op(description="Makes the version where it is not there yet, opens it for writing, and begins to fill it.")
def open_and_fill(
    context: dg.OpExecutionContext, config: BackfillConfig, catalog: dg.ResourceParam[Catalog], settings: dg.ResourceParam[Settings]
) -> None:
    """Begin a backfill, and give Dagster the version's partition key."""
    change = RecipeChange(config.model, config.chunker, config.max_tokens, config.overlap_percent)
    with plain_errors():
        begun = begin_backfill(catalog, settings, config.target, BackfillReason(config.reason), change, config.max_docs_per_s)
    context.instance.add_dynamic_partitions(INDEX_VERSION, [config.target])
    context.log.info(
        f"backfill {begun.backfill_id}: {begun.total} documents for {config.target}. backfill_sensor launches its runs; or materialise "
        f"parsed_elements to indexed_documents, all buckets, index version {config.target}"
    )


@dg.job(
    name="backfill_start",
    description="Make an index version (or take one that is there) and fill it from what is stored. Config: target, reason (parser, "
    "chunker or embedding_model), and what is new: model, chunker, max_tokens, overlap_percent; max_docs_per_s bounds it.",
    executor_def=dg.in_process_executor,
)
def backfill_start() -> None:
    """Begin a backfill."""
    open_and_fill()


@dg.op(description="Makes the version that was live before the live one again, at once.")
def go_back(context: dg.OpExecutionContext, catalog: dg.ResourceParam[Catalog]) -> None:
    """Go back one version."""
    with plain_errors():
        left = catalog.promotions.rollback()
    context.log.info(f"{catalog.deployments.live().name} is live again; {left.name} is still written to, and can be promoted anew")


@dg.job(
    name="rollback",
    description="Go back to the index version that was live before. Searches are answered from it at once; it was written to all the time.",
    executor_def=dg.in_process_executor,
)
def rollback() -> None:
    """Go back one version."""
    go_back()


promote = dg.define_asset_job(
    "promote",
    selection=["index_version", "serving_alias"],
    description="Measure an index version and, if all of its checks pass, make it the live one. Choose the version as the partition.",
    executor_def=dg.in_process_executor,
)
