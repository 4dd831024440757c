"""`access_sensor`: runs of the access lane, for deletes and permission changes that the rows of the indexes do not show yet."""

from collections import defaultdict

import dagster as dg

from primer_assets.access_rows import access_rows
from primer_assets.partitions import INDEX_VERSION
from primer_core.buckets import bucket_names
from primer_resources.catalog.catalog import Catalog
from primer_resources.settings import Settings, load_settings
from primer_sensors.runs import ACCESS_TAG, active_sweeps, sweep_tag, sweep_tags
from primer_sensors.sweeps import plan_sweeps

MOST_RUNS = 2
"""Under way at once: the second is for buckets that the first does not cover."""
BEFORE_ALL = {"dagster/priority": "10"}
"""Where runs wait for a place, this one goes first."""


@dg.sensor(
    target=[access_rows],
    minimum_interval_seconds=max(1, round(load_settings().access_interval.total_seconds())),
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Looks for deletes and changes of permission that the index rows do not show yet, and launches a short run for their "
    "buckets, before all others. Searches are right without it; it makes the rows follow.",
)
def access_sensor(
    context: dg.SensorEvaluationContext, catalog: dg.ResourceParam[Catalog], settings: dg.ResourceParam[Settings]
) -> dg.SensorResult | dg.SkipReason:
    """Runs for what waits in the access lane. The cursor counts launches, which keeps run keys apart."""
    names = bucket_names(settings.buckets)
    waiting: dict[str, set[str]] = defaultdict(set)
    count = 0
    for row in catalog.jobs.waiting_access():
        waiting[row.index_version].add(row.bucket)
        count += row.jobs
    if not waiting:
        return dg.SkipReason("the rows show every delete and permission change")
    sweeps = plan_sweeps(waiting, active_sweeps(context.instance, catalog, ACCESS_TAG, settings.lease), names, MOST_RUNS)
    if not sweeps:
        return dg.SkipReason(f"{count} deletes and permission changes wait for the run that is under way")
    launch = int(context.cursor or 0) + 1
    known = set(context.instance.get_dynamic_partitions(INDEX_VERSION))
    missing = sorted({sweep.index_version for sweep in sweeps} - known)
    return dg.SensorResult(
        run_requests=[
            dg.RunRequest(run_key=f"{launch}:{sweep_tag(sweep)}", tags={**sweep_tags(ACCESS_TAG, sweep), **BEFORE_ALL}) for sweep in sweeps
        ],
        dynamic_partitions_requests=[dg.AddDynamicPartitionsRequest(INDEX_VERSION, missing)] if missing else [],
        cursor=str(launch),
    )
