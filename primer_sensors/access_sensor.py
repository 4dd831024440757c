"""`access_sensor`: runs of the access lane, for deletes and permission changes that the rows of the indexes do not show yet."""

import dagster as dg

from primer_assets.access_rows import access_rows
from primer_assets.partitions import INDEX_VERSION
from primer_core.buckets import bucket_names
from primer_resources.catalog.catalog import Catalog
from primer_resources.settings import Settings, load_settings
from primer_sensors.runs import ACCESS_TAG, active_sweeps, sweep_tag, sweep_tags
from primer_sensors.sweeps import Sweep

BEFORE_ALL = {"dagster/priority": "10"}
"""Where runs wait for a place, this one goes first."""


@dg.sensor(
    target=[access_rows],
    minimum_interval_seconds=max(1, round(load_settings().access_interval.total_seconds())),
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Looks for deletes and changes of permission that the index rows do not show yet, and launches one run an index version, "
    "before all others; it stays half a minute for what comes next. Searches are right without it; it makes the rows follow.",
)
def access_sensor(
    context: dg.SensorEvaluationContext, catalog: dg.ResourceParam[Catalog], settings: dg.ResourceParam[Settings]
) -> dg.SensorResult | dg.SkipReason:
    """A run over all buckets of a version, so that it takes up what comes while it works. The cursor counts launches, for run keys."""
    names = bucket_names(settings.buckets)
    waiting = catalog.jobs.waiting_access()
    busy = {sweep.index_version for sweep in active_sweeps(context.instance, catalog, ACCESS_TAG, settings.lease)}
    wanted = sorted({row.index_version for row in waiting} - busy)
    if not wanted:
        count = sum(row.jobs for row in waiting)
        words = f"{count} deletes and permission changes wait for the run that is under way"
        return dg.SkipReason(words if count else "the rows show every delete and permission change")
    launch = int(context.cursor or 0) + 1
    missing = [name for name in wanted if name not in context.instance.get_dynamic_partitions(INDEX_VERSION)]
    return dg.SensorResult(
        run_requests=[
            dg.RunRequest(run_key=f"{launch}:{sweep_tag(sweep)}", tags={**sweep_tags(ACCESS_TAG, sweep), **BEFORE_ALL})
            for sweep in (Sweep(name, names[0], names[-1]) for name in wanted)
        ],
        dynamic_partitions_requests=[dg.AddDynamicPartitionsRequest(INDEX_VERSION, missing)] if missing else [],
        cursor=str(launch),
    )
