"""What runs are queued or under way, by the tags that our own requests carry."""

import dagster as dg
from dagster import DagsterRunStatus

from primer_sensors.sweeps import Sweep

SWEEP_TAG = "primer/sweep"
SOURCE_TAG = "primer/source"
ACTIVE = [
    DagsterRunStatus.QUEUED,
    DagsterRunStatus.NOT_STARTED,
    DagsterRunStatus.STARTING,
    DagsterRunStatus.STARTED,
    DagsterRunStatus.CANCELING,
]
RANGE_START, RANGE_END = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"


def active_values(instance: dg.DagsterInstance, tag: str) -> list[str]:
    """The values of a tag on runs that are not finished."""
    records = instance.get_runs(filters=dg.RunsFilter(statuses=ACTIVE))
    return [run.tags[tag] for run in records if tag in run.tags]


def sweep_tag(sweep: Sweep) -> str:
    """A sweep as a tag's value."""
    return f"{sweep.index_version}:{sweep.first}:{sweep.last}"


def active_sweeps(instance: dg.DagsterInstance) -> list[Sweep]:
    """The sweeps that are queued or running."""
    return [Sweep(*value.split(":")) for value in active_values(instance, SWEEP_TAG)]
