"""`slow_parse_sensor`: a run of its own for what waits in the slow lane, beside the sweeps of the same buckets."""

import dagster as dg

from primer_assets.partitions import INDEX_VERSION
from primer_assets.slow_parsed_elements import slow_parsed_elements
from primer_core.buckets import bucket_names
from primer_resources.catalog.catalog import Catalog
from primer_resources.settings import Settings, load_settings
from primer_sensors.runs import SLOW_SWEEP_TAG, active_sweeps, sweep_tag, sweep_tags
from primer_sensors.sweeps import Sweep

AFTER_SWEEPS = {"dagster/priority": "-1"}
"""Where every place for a run is taken, a sweep that waits goes first."""
MOST_RUN_TIME_TAG = "dagster/max_runtime"
GRACE_S = 600
"""Beside the time that a run may take: starting a process and its workers."""


def most_run_seconds(settings: Settings) -> int:
    """When a slow run is overdue: it takes up documents for a while, and the last of them may take its own time."""
    return round((settings.slow_run_time + settings.slow_time.longest).total_seconds()) + GRACE_S


@dg.sensor(
    target=[slow_parsed_elements],
    minimum_interval_seconds=max(1, round(load_settings().sensor_interval.total_seconds())),
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Launches one run an index version where scans and very long documents wait to be parsed. It holds nothing but the "
    "documents that it reads, so the sweeps of the same buckets go on beside it.",
)
def slow_parse_sensor(
    context: dg.SensorEvaluationContext, catalog: dg.ResourceParam[Catalog], settings: dg.ResourceParam[Settings]
) -> dg.SensorResult | dg.SkipReason:
    """A run over all buckets of a version, so that it takes up what comes while it works. The cursor counts launches, for run keys."""
    names = bucket_names(settings.buckets)
    waiting = catalog.jobs.waiting_slow()
    busy = {sweep.index_version for sweep in active_sweeps(context.instance, catalog, SLOW_SWEEP_TAG, settings.lease)}
    wanted = sorted({row.index_version for row in waiting} - busy)
    if not wanted:
        count = sum(row.jobs for row in waiting)
        return dg.SkipReason(f"{count} documents wait for the slow run that is under way" if count else "nothing waits in the slow lane")
    launch = int(context.cursor or 0) + 1
    limit = {MOST_RUN_TIME_TAG: str(most_run_seconds(settings))}
    missing = [name for name in wanted if name not in context.instance.get_dynamic_partitions(INDEX_VERSION)]
    return dg.SensorResult(
        run_requests=[
            dg.RunRequest(run_key=f"{launch}:{sweep_tag(sweep)}", tags={**sweep_tags(SLOW_SWEEP_TAG, sweep), **AFTER_SWEEPS, **limit})
            for sweep in (Sweep(name, names[0], names[-1]) for name in wanted)
        ],
        dynamic_partitions_requests=[dg.AddDynamicPartitionsRequest(INDEX_VERSION, missing)] if missing else [],
        cursor=str(launch),
    )
