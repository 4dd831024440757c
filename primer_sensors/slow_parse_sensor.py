"""`slow_parse_sensor`: a run of its own for what waits in the slow lane, beside the sweeps of the same buckets."""

import dagster as dg

from primer_assets.run_tags import SLOW_SWEEP_TAG
from primer_assets.slow_parsed_elements import slow_parsed_elements
from primer_resources.catalog.catalog import Catalog
from primer_resources.settings import Settings, load_settings
from primer_sensors.lane_runs import request_lane_runs

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
    """One run over all buckets of a version."""
    tags = {**AFTER_SWEEPS, MOST_RUN_TIME_TAG: str(most_run_seconds(settings))}
    waiting = catalog.queue.waiting_slow()
    return request_lane_runs(context, catalog, settings, waiting, SLOW_SWEEP_TAG, tags, "scans and very long documents")
