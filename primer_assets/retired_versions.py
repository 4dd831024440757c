"""`retired_versions`: what was live before and whose time is over is dropped, and no byte of it stays behind."""

from collections.abc import Callable

import dagster as dg

from primer_assets.grid_asset import SYSTEM_RETRY
from primer_assets.partitions import INDEX_VERSION
from primer_assets.stage_run import Checkpoint, Tally, plain_errors
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.deployments import IndexVersion
from primer_resources.settings import Settings
from primer_resources.toolkit import Toolkit


@dg.asset(
    group_name="versions",
    deps=["serving_alias"],
    retry_policy=SYSTEM_RETRY,
    kinds={"python", "lancedb"},
    description="Index versions whose time to go back to is over (PRIMER_RETIRE_AFTER): closed, then their vector table, keyword shards, "
    "embedding cache where no other version has the model, catalog rows and partition key are removed.",
)
def retired_versions(
    context: dg.AssetExecutionContext,
    catalog: dg.ResourceParam[Catalog],
    settings: dg.ResourceParam[Settings],
    toolkit: dg.ResourceParam[Toolkit],
    checkpoint: dg.ResourceParam[Checkpoint],
) -> dg.MaterializeResult[None]:
    """Close and drop what is due."""

    def forget(name: str) -> None:
        if name in context.instance.get_dynamic_partitions(INDEX_VERSION):
            context.instance.delete_dynamic_partition(INDEX_VERSION, name)

    with plain_errors():
        tally = drop_retired(catalog, settings, toolkit, context.run.run_id, forget, checkpoint)
    return dg.MaterializeResult(metadata=tally.metadata("dropped", "rows", "busy"))


def drop_retired(
    catalog: Catalog, settings: Settings, toolkit: Toolkit, owner: str, forget: Callable[[str], None], checkpoint: Checkpoint
) -> Tally:
    """Close the versions that are due, and drop all that is closed. `forget` takes a version's partition key away.

    Repeating it finds what a crash left. A version that a run still writes to is left to the next time: its lanes are taken before its
    files go, and go last themselves, so that no writer comes back to them.
    """
    tally = Tally()
    closed = catalog.promotions.close_due()
    known = {version.name: version for version in catalog.deployments.versions()}
    for name in closed:
        if _drop(catalog, settings, toolkit, known[name], owner, tally, checkpoint):
            forget(name)
        else:
            tally.counts["busy"] += 1
    return tally


def _drop(
    catalog: Catalog, settings: Settings, toolkit: Toolkit, version: IndexVersion, owner: str, tally: Tally, checkpoint: Checkpoint
) -> bool:
    """Drop one closed version. Returns False where a run still writes to it."""
    lanes = catalog.lanes.buckets(version.name)
    if not lanes:  # they go last, so the rest is gone; what a suspended writer may have put back since is not
        toolkit.drop(version, catalog.deployments.open_versions())
        return True
    if len(catalog.lanes.acquire(version.name, lanes, owner, settings.lease)) < len(lanes):
        catalog.lanes.release(owner)
        return False
    toolkit.drop(version, catalog.deployments.open_versions())
    checkpoint("files gone")
    for rows in catalog.promotions.drop_rows(version.name):
        tally.counts["rows"] += rows
        catalog.lanes.renew(owner, settings.lease)
        checkpoint("rows gone")
    tally.counts["dropped"] += 1
    return True
