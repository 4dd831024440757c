"""`access_sensor`: runs of the access lane, for deletes and permission changes that the rows of the indexes do not show yet."""

import dagster as dg

from primer_assets.access_rows import access_rows
from primer_assets.run_tags import ACCESS_TAG
from primer_resources.catalog.catalog import Catalog
from primer_resources.settings import Settings, load_settings
from primer_sensors.lane_runs import request_lane_runs

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
    """One run over all buckets of a version."""
    waiting = catalog.queue.waiting_access()
    return request_lane_runs(context, catalog, settings, waiting, ACCESS_TAG, BEFORE_ALL, "deletes and permission changes")
