"""`index_version`: a version's sealed manifest, with the checks that decide whether it may become the live one."""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from primer_assets.markdown import markdown_table
from primer_assets.partitions import BY_VERSION, VERSIONS
from primer_assets.stage_run import plain_errors
from primer_core.index_versions import CheckResult, Gate
from primer_core.recipe import recipe_difference
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.deployments import IndexVersion
from primer_resources.document_store import DocumentStore
from primer_resources.golden.runs import GoldenRuns
from primer_resources.settings import Settings
from primer_resources.toolkit import Toolkit
from primer_resources.version_checks import Compared, measure

_CHECKS = {
    Gate.INDEXES_AGREE: "Catalog, vector index and keyword index hold the same rows, by id.",
    Gate.DOCUMENTS_AGREE: "Every document that stands in the live version stands here in the same version.",
    Gate.ROWS_INDEXED: "Few rows stand outside an index of the vector table, where they would be searched one by one.",
    Gate.INDEX_SIZE: "Rows and bytes, beside those of the live version; not empty where that one is not.",
    Gate.GOLDEN_RECALL: "No format of the golden set (PRIMER_GOLDEN) is answered worse than by the live version.",
    Gate.CANARIES: "Documents with known permissions, searched as known groups: those who must find them do, the others do not.",
}


@dg.asset(
    name="index_version",
    partitions_def=VERSIONS,
    group_name="versions",
    deps=[dg.AssetDep("indexed_documents", partition_mapping=BY_VERSION)],
    kinds={"python", "sql"},
    check_specs=[dg.AssetCheckSpec(gate.value, asset="index_version", blocking=True, description=words) for gate, words in _CHECKS.items()],
    description="An index version: its sealed recipe (parser, chunker, embedding model), how far it is filled, and its size. Its checks "
    "compare it with the live version; `serving_alias` reads what they found, whoever launched them.",
)
def index_version(
    context: dg.AssetExecutionContext,
    catalog: dg.ResourceParam[Catalog],
    store: dg.ResourceParam[DocumentStore],
    settings: dg.ResourceParam[Settings],
    toolkit: dg.ResourceParam[Toolkit],
) -> dg.MaterializeResult:  # type: ignore[type-arg]  # Dagster refuses the argument where there are checks
    """Measure the version."""
    with plain_errors():
        version, live = catalog.deployments.version(context.partition_key), catalog.deployments.live()
        compared = Compared(catalog, version, toolkit.of(version), live, toolkit.of(live))
        results = measure(compared, GoldenRuns(settings, catalog, store, toolkit))
    return dg.MaterializeResult(
        metadata=_manifest(catalog, version, live),
        check_results=[_check(result) for result in results],
    )


def _manifest(catalog: Catalog, version: IndexVersion, live: IndexVersion) -> dict[str, dg.MetadataValue]:
    recipe = [(part, name, value) for part, fields in version.recipe.to_json().items() for name, value in fields.items()]
    backfill = next((each for each in catalog.backfills.all() if each.index_version == version.name), None)
    shown: dict[str, dg.MetadataValue] = {
        "state": dg.MetadataValue.text(version.state.value),
        "live_version": dg.MetadataValue.text(live.name),
        "recipe": dg.MetadataValue.md(markdown_table(("part", "field", "value"), recipe)),
        "recipe_digest": dg.MetadataValue.text(version.recipe.digest),
        "differs_from_live": dg.MetadataValue.text(recipe_difference(live.recipe, version.recipe)),
    }
    if backfill is not None:
        progress = catalog.backfills.progress(backfill)
        shown["backfill"] = dg.MetadataValue.text(f"{backfill.backfill_id}: {backfill.reason}, {backfill.state}")
        shown["backfill_total"] = dg.MetadataValue.int(progress.total)
        shown["backfill_done"] = dg.MetadataValue.int(progress.done)
        shown["backfill_failed"] = dg.MetadataValue.int(progress.failed)
    return shown


def _check(result: CheckResult) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        check_name=result.name,
        passed=result.passed,
        severity=dg.AssetCheckSeverity.ERROR,
        description=result.words,
        metadata=_figures(result.figures),
    )


def _figures(figures: Mapping[str, Any]) -> dict[str, dg.MetadataValue]:
    """Numbers as numbers, so that Dagster plots them over time; tables as such; the rest as JSON."""
    shown: dict[str, dg.MetadataValue] = {}
    for name, value in figures.items():
        if isinstance(value, str):
            shown[name] = dg.MetadataValue.md(value)
        elif isinstance(value, bool):
            shown[name] = dg.MetadataValue.bool(value)
        elif isinstance(value, int):
            shown[name] = dg.MetadataValue.int(value)
        elif isinstance(value, float):
            shown[name] = dg.MetadataValue.float(value)
        else:
            shown[name] = dg.MetadataValue.json(value)
    return shown
