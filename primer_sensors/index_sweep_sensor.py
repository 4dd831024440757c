"""`index_sweep_sensor`: range runs over the buckets where jobs or purges wait."""

from collections import defaultdict
from datetime import timedelta

import dagster as dg

from primer_assets.chunks import chunks
from primer_assets.embeddings import embeddings
from primer_assets.indexed_documents import indexed_documents
from primer_assets.keyword_index import keyword_index
from primer_assets.parsed_elements import parsed_elements
from primer_assets.partitions import INDEX_VERSION
from primer_assets.run_tags import SWEEP_TAG
from primer_assets.vector_index import vector_index
from primer_core.buckets import bucket_names
from primer_resources.catalog.catalog import Catalog
from primer_resources.settings import Settings, load_settings
from primer_sensors.runs import active_sweeps, sweep_tag, sweep_tags
from primer_sensors.sweeps import plan_sweeps

GRID_ASSETS = [parsed_elements, chunks, embeddings, vector_index, keyword_index, indexed_documents]
IDLE_SWEEP = timedelta(hours=6)
"""An idle deployment is swept this often, so that the freshness of `indexed_documents` tells a stopped daemon from a quiet day."""


@dg.sensor(
    target=dg.AssetSelection.assets(*GRID_ASSETS).without_checks(),
    minimum_interval_seconds=max(1, round(load_settings().sensor_interval.total_seconds())),
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Counts what waits in every bucket and sweeps it in few range runs. Buckets that a run is on are left to it.",
)
def index_sweep_sensor(
    context: dg.SensorEvaluationContext, catalog: dg.ResourceParam[Catalog], settings: dg.ResourceParam[Settings]
) -> dg.SensorResult | dg.SkipReason:
    """Runs for what waits. The cursor is `tick:seconds of the last launch`; the tick keeps run keys apart."""
    names = bucket_names(settings.buckets)
    now = catalog.now().timestamp()
    tick_text, _, last_text = (context.cursor or "0:0").partition(":")
    tick, last = int(tick_text) + 1, float(last_text or 0)
    waiting: dict[str, set[str]] = defaultdict(set)
    count = 0
    for row in catalog.queue.waiting(settings.purge_grace):
        waiting[row.index_version].add(row.bucket)
        count += row.jobs + row.purges
    if not waiting and now - last >= IDLE_SWEEP.total_seconds():
        waiting[catalog.deployments.live().name].update(names)
    sweeps = plan_sweeps(waiting, active_sweeps(context.instance, catalog, SWEEP_TAG, settings.lease), names, settings.sweep_ranges)
    if not sweeps:
        return dg.SkipReason("nothing waits" if not waiting else f"{count} jobs and purges wait for runs that are under way")
    known = set(context.instance.get_dynamic_partitions(INDEX_VERSION))
    missing = sorted({sweep.index_version for sweep in sweeps} - known)
    return dg.SensorResult(
        run_requests=[
            dg.RunRequest(
                run_key=f"{tick}:{sweep_tag(sweep)}",
                tags=sweep_tags(SWEEP_TAG, sweep),
            )
            for sweep in sweeps
        ],
        dynamic_partitions_requests=[dg.AddDynamicPartitionsRequest(INDEX_VERSION, missing)] if missing else [],
        cursor=f"{tick}:{now}",
    )
