"""`backfill_sensor`: runs that fill an index version, one at a time, and none while live work is late."""

import dagster as dg

from primer_assets.partitions import INDEX_VERSION
from primer_assets.run_tags import BACKFILL_TAG
from primer_assets.slow_parsed_elements import slow_parsed_elements
from primer_core.buckets import bucket_names
from primer_resources.catalog.catalog import Catalog
from primer_resources.settings import Settings, load_settings
from primer_sensors.index_sweep_sensor import GRID_ASSETS
from primer_sensors.runs import active_sweeps, sweep_tag, sweep_tags
from primer_sensors.sweeps import Sweep

BEHIND_ALL = {"dagster/priority": "-10"}
"""Where runs wait for a place, this one goes last."""


@dg.sensor(
    target=dg.AssetSelection.assets(*GRID_ASSETS, slow_parsed_elements).without_checks(),
    minimum_interval_seconds=max(1, round(load_settings().sensor_interval.total_seconds())),
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Fills index versions: one run at a time over all buckets, behind all others, until the backfill is finished. It launches "
    "none while a change has waited longer than PRIMER_BACKFILL_YIELDS_AFTER; a run under way then stops after its batch.",
)
def backfill_sensor(
    context: dg.SensorEvaluationContext, catalog: dg.ResourceParam[Catalog], settings: dg.ResourceParam[Settings]
) -> dg.SensorResult | dg.SkipReason:
    """A run for the oldest backfill that is to go on. The cursor counts launches, for run keys."""
    running = [each for each in catalog.backfills.running() if not catalog.backfills.finish(each.backfill_id)]
    if not running:
        return dg.SkipReason("no backfill is under way")
    if active_sweeps(context.instance, catalog, BACKFILL_TAG, settings.lease):
        return dg.SkipReason("a run of a backfill is under way")
    oldest = catalog.queue.oldest_live()
    if catalog.backfills.yields(settings.backfill_yields_after, oldest):
        waited = "" if oldest is None else f" for {(catalog.now() - oldest).total_seconds():.0f} s"
        return dg.SkipReason(f"live work has waited{waited}, longer than {settings.backfill_yields_after.total_seconds():.0f} s")
    names, launch = bucket_names(settings.buckets), int(context.cursor or 0) + 1
    sweep = Sweep(running[0].index_version, names[0], names[-1])
    is_known = sweep.index_version in context.instance.get_dynamic_partitions(INDEX_VERSION)
    return dg.SensorResult(
        run_requests=[dg.RunRequest(run_key=f"{launch}:{sweep_tag(sweep)}", tags={**sweep_tags(BACKFILL_TAG, sweep), **BEHIND_ALL})],
        dynamic_partitions_requests=[] if is_known else [dg.AddDynamicPartitionsRequest(INDEX_VERSION, [sweep.index_version])],
        cursor=str(launch),
    )
