"""`source_sync_sensor`: one run a due source, unless one is queued or under way for it."""

import dagster as dg

from primer_assets.partitions import SOURCE
from primer_assets.source_documents import source_documents
from primer_resources.catalog.catalog import Catalog
from primer_resources.settings import Settings, load_settings
from primer_sensors.runs import SOURCE_TAG, active_values


@dg.sensor(
    target=[source_documents],
    minimum_interval_seconds=max(1, round(load_settings().sensor_interval.total_seconds())),
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Lists every source whose poll interval has passed. Nothing is launched for a source that a run is on already.",
)
def source_sync_sensor(
    context: dg.SensorEvaluationContext, catalog: dg.ResourceParam[Catalog], settings: dg.ResourceParam[Settings]
) -> dg.SensorResult | dg.SkipReason:
    """Runs for due sources; the tick's number keeps their run keys apart, since Dagster remembers a run key for ever."""
    due = catalog.sources.due()
    busy = set(active_values(context.instance, catalog, SOURCE_TAG, settings.lease))
    tick = int(context.cursor or 0) + 1
    known = set(context.instance.get_dynamic_partitions(SOURCE))
    wanted = [source.source_id for source in due if source.source_id not in busy]
    if not wanted:
        return dg.SkipReason("no source is due" if not due else f"{len(due)} sources are due and being synced")
    missing = [name for name in wanted if name not in known]
    return dg.SensorResult(
        run_requests=[dg.RunRequest(run_key=f"{name}:{tick}", partition_key=name, tags={SOURCE_TAG: name}) for name in wanted],
        dynamic_partitions_requests=[dg.AddDynamicPartitionsRequest(SOURCE, missing)] if missing else [],
        cursor=str(tick),
    )
