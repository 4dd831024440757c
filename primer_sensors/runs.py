"""What runs are queued or under way, by the tags that our own requests carry, and which of them have died unseen."""

from collections.abc import Collection
from datetime import datetime, timedelta

import dagster as dg
from dagster import DagsterRunStatus

from primer_assets.partitions import grid_key
from primer_assets.run_tags import ACCESS_TAG, BACKFILL_TAG, SLOW_SWEEP_TAG, SWEEP_TAG
from primer_resources.catalog.catalog import Catalog
from primer_sensors.sweeps import Sweep

SOURCE_TAG = "primer/source"
PURGE_TAG = "primer/purge"
BEATING = frozenset((SWEEP_TAG, SLOW_SWEEP_TAG, ACCESS_TAG, BACKFILL_TAG, SOURCE_TAG, PURGE_TAG))
"""Tags of runs that say in the catalog that they are alive, from their first step to their last."""
ACTIVE = [
    DagsterRunStatus.QUEUED,
    DagsterRunStatus.NOT_STARTED,
    DagsterRunStatus.STARTING,
    DagsterRunStatus.STARTED,
    DagsterRunStatus.CANCELING,
]
RANGE_START, RANGE_END = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"
LEASES_TO_DIE = 2
"""A run that has not beaten within a lease, so many leases after its start, has died: a living one beats at a third of a lease."""


def active_values(instance: dg.DagsterInstance, catalog: Catalog, tag: str, lease: timedelta) -> list[str]:
    """The values of a tag on runs that are not finished."""
    return [run.tags[tag] for run in living_runs(instance, catalog, lease) if tag in run.tags]


def living_runs(instance: dg.DagsterInstance, catalog: Catalog, lease: timedelta) -> list[dg.DagsterRun]:
    """The runs that are not finished.

    Local runs report no health, so one that was killed would count as under way for ever, nobody would do its work, and the pool slots
    that it holds would be kept: such a run is marked as failed here.
    """
    living = []
    now, alive = catalog.now(), catalog.holders.alive()
    for record in instance.get_run_records(filters=dg.RunsFilter(statuses=ACTIVE)):
        run = record.dagster_run
        started = None if record.start_time is None else datetime.fromtimestamp(record.start_time, now.tzinfo)
        if not BEATING.isdisjoint(run.tags) and _is_dead(run.run_id, run.status, started, alive, now, lease):
            instance.report_run_failed(
                run, f"the run gave no sign of life for a lease, {LEASES_TO_DIE} leases after its start: its process died"
            )
            continue
        living.append(run)
    return living


def _is_dead(
    run_id: str, status: DagsterRunStatus, started: datetime | None, alive: Collection[str], now: datetime, lease: timedelta
) -> bool:
    if status is not DagsterRunStatus.STARTED or started is None or run_id in alive:
        return False
    return now - started > lease * LEASES_TO_DIE


def sweep_tag(sweep: Sweep) -> str:
    """A sweep as a tag's value."""
    return f"{sweep.index_version}:{sweep.first}:{sweep.last}"


def sweep_tags(tag: str, sweep: Sweep) -> dict[str, str]:
    """The tags of a run over a sweep's range: which sweep it is, and the partitions that Dagster gives it."""
    first, last = (grid_key(bucket, sweep.index_version) for bucket in (sweep.first, sweep.last))
    return {tag: sweep_tag(sweep), RANGE_START: first, RANGE_END: last}


def active_sweeps(instance: dg.DagsterInstance, catalog: Catalog, tag: str, lease: timedelta) -> list[Sweep]:
    """The sweeps of a kind that are queued or running."""
    return [Sweep(*value.split(":")) for value in active_values(instance, catalog, tag, lease)]
