"""`serving_alias`: which index version searches are answered from. Materialising it for a version makes that the live one."""

import dagster as dg

from primer_assets.partitions import VERSIONS
from primer_assets.stage_run import plain_errors
from primer_core.index_versions import VersionState
from primer_resources.catalog.catalog import Catalog
from primer_resources.settings import Settings


@dg.asset(
    partitions_def=VERSIONS,
    group_name="versions",
    deps=["index_version"],
    kinds={"sql"},
    description="The version that searches are answered from. Materialise it for a version to promote that: one transaction, which reads "
    "the newest results of the checks itself and refuses with every reason. For the version that was live before, it goes back to it.",
)
def serving_alias(
    context: dg.AssetExecutionContext, catalog: dg.ResourceParam[Catalog], settings: dg.ResourceParam[Settings]
) -> dg.MaterializeResult[None]:
    """Promote the partition's version, or go back to it."""
    with plain_errors():
        version = catalog.deployments.version(context.partition_key)
        if version.state is VersionState.RETIRING:
            before = catalog.promotions.rollback(version.name)
        elif version.state is VersionState.LIVE:
            before = version
        else:
            before = catalog.promotions.promote(version.name, settings.promote_lag, settings.retire_after)
    return dg.MaterializeResult(
        metadata={
            "live": dg.MetadataValue.text(version.name),
            "before": dg.MetadataValue.text(before.name),
            "kept_until": dg.MetadataValue.text("" if before.retire_at is None else before.retire_at.isoformat(timespec="seconds")),
        }
    )
