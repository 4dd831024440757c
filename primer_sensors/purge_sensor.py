"""`purge_sensor`: launches a run of `purged_documents` when bodies are due to go and none is under way."""

import dagster as dg

from primer_assets.purged_documents import purged_documents
from primer_resources.catalog.catalog import Catalog
from primer_resources.settings import Settings
from primer_sensors.runs import PURGE_TAG, active_values

INTERVAL_S = 60


@dg.sensor(
    target=[purged_documents],
    minimum_interval_seconds=INTERVAL_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Looks every minute whether bodies of deleted documents, or of versions that no index serves any more, are due to go, and "
    "launches one run that removes and proves them. Nobody finds them meanwhile.",
)
def purge_sensor(
    context: dg.SensorEvaluationContext, catalog: dg.ResourceParam[Catalog], settings: dg.ResourceParam[Settings]
) -> dg.RunRequest | dg.SkipReason:
    """The cursor counts launches, for run keys."""
    if not catalog.purges.is_due(settings.purge_grace):
        return dg.SkipReason("no bodies are due to go")
    if active_values(context.instance, catalog, PURGE_TAG, settings.lease):
        return dg.SkipReason("a purge is under way")
    launch = int(context.cursor or 0) + 1
    context.update_cursor(str(launch))
    return dg.RunRequest(run_key=f"purge:{launch}", tags={PURGE_TAG: str(launch)})
