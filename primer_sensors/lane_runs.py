"""Runs of a lane that has runs of its own, beside the sweeps: one an index version where something waits, over all of its buckets."""

from collections.abc import Mapping, Sequence

import dagster as dg

from primer_assets.partitions import INDEX_VERSION
from primer_core.buckets import bucket_names
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.queue import Waiting
from primer_resources.settings import Settings
from primer_sensors.runs import active_sweeps, sweep_tag, sweep_tags
from primer_sensors.sweeps import Sweep


def request_lane_runs(
    context: dg.SensorEvaluationContext,
    catalog: Catalog,
    settings: Settings,
    waiting: Sequence[Waiting],
    tag: str,
    more_tags: Mapping[str, str],
    what: str,
) -> dg.SensorResult | dg.SkipReason:
    """A run for each index version where something waits and no run of the lane (`tag`) is under way. A run is over all buckets, so that
    it takes up what comes while it works. The cursor counts launches, for run keys; `what` names what waits, for people.
    """
    names = bucket_names(settings.buckets)
    busy = {sweep.index_version for sweep in active_sweeps(context.instance, catalog, tag, settings.lease)}
    wanted = sorted({row.index_version for row in waiting} - busy)
    if not wanted:
        count = sum(row.jobs for row in waiting)
        return dg.SkipReason(f"{count} {what} wait for the run that is under way" if count else f"no {what} wait")
    launch = int(context.cursor or 0) + 1
    missing = [name for name in wanted if name not in context.instance.get_dynamic_partitions(INDEX_VERSION)]
    return dg.SensorResult(
        run_requests=[
            dg.RunRequest(run_key=f"{launch}:{sweep_tag(sweep)}", tags={**sweep_tags(tag, sweep), **more_tags})
            for sweep in (Sweep(name, names[0], names[-1]) for name in wanted)
        ],
        dynamic_partitions_requests=[dg.AddDynamicPartitionsRequest(INDEX_VERSION, missing)] if missing else [],
        cursor=str(launch),
    )
