"""`source_sync_sensor`: one run a source that is due or has events waiting, unless one is queued or under way for it."""

import dagster as dg

from primer_assets.partitions import SOURCE
from primer_assets.source_documents import source_documents
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.pulse import facts_of
from primer_resources.catalog.sources import is_due, rests
from primer_resources.settings import Settings, load_settings
from primer_sensors.runs import SOURCE_TAG, active_values
from primer_sensors.source_turns import choose_sources


@dg.sensor(
    target=dg.AssetSelection.assets(source_documents).without_checks(),
    minimum_interval_seconds=max(1, round(load_settings().sensor_interval.total_seconds())),
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Reads every source whose poll interval has passed or for which events wait, the longest waiting first, "
    "PRIMER_SOURCE_RUNS at once. Nothing is launched for a source that a run is on already, and sources that fail or take long have "
    "half of the places. Sources of inactive tenants are passed over.",
)
def source_sync_sensor(
    context: dg.SensorEvaluationContext, catalog: dg.ResourceParam[Catalog], settings: dg.ResourceParam[Settings]
) -> dg.SensorResult | dg.SkipReason:
    """Runs for due sources; the tick's number keeps their run keys apart, since Dagster remembers a run key for ever."""
    now, with_events = catalog.now(), set(catalog.events.due_sources())
    every = catalog.sources.active()
    wait = settings.full_listing_interval, settings.held_delete_wait
    due = [s for s in every if is_due(s, now, *wait) or (s.source_id in with_events and not rests(s, now))]
    busy = set(active_values(context.instance, catalog, SOURCE_TAG, settings.lease))
    tick = int(context.cursor or 0) + 1
    known = set(context.instance.get_dynamic_partitions(SOURCE))
    under_way = [facts_of(source, now) for source in every if source.source_id in busy]
    waiting = [facts_of(source, now) for source in due if source.source_id not in busy]
    wanted = choose_sources(waiting, under_way, now, settings.source_runs)
    if not wanted:
        told = f"{len(due)} sources are due: {len(due) - len(waiting)} being read, {len(waiting)} wait for a place"
        passed_over = sorted({source.tenant_id for source in catalog.sources.all()} & catalog.tenants.inactive())
        inactive = f"; those of inactive tenants are passed over: {', '.join(passed_over)}" if passed_over else ""
        return dg.SkipReason((told if due else "no source is due") + inactive)
    missing = [name for name in wanted if name not in known]
    return dg.SensorResult(
        run_requests=[dg.RunRequest(run_key=f"{name}:{tick}", partition_key=name, tags={SOURCE_TAG: name}) for name in wanted],
        dynamic_partitions_requests=[dg.AddDynamicPartitionsRequest(SOURCE, missing)] if missing else [],
        cursor=str(tick),
    )
