"""Runs whose process died: the next process on the same machine closes them, and gives back the pool slots that they hold.
Runs of a process that is told to stop: it closes them itself, and gives back what they hold in the catalog as well.

Dagster frees the slots of a run that its daemon sees end. Nobody sees the end of a run that was killed inside `primer sync`, or together
with the daemon that launched it, and two of those would keep a pool's slots for ever, so that every later sync waited.
"""

import os
import socket
from datetime import timedelta

import dagster as dg
import psutil

from primer_resources.catalog.catalog import Catalog
from primer_sensors.runs import ACTIVE, living_runs

PROCESS_TAG = "primer/process"
CLOCK_S = 2.0
"""How far the start of a process may seem to move when the machine's clock is set."""


def process_tag() -> str:
    """This process as a tag's value: host, process id and when it began, since ids come again."""
    return f"{socket.gethostname()}:{os.getpid()}:{psutil.Process().create_time():.2f}"


def close_dead_runs(instance: dg.DagsterInstance, catalog: Catalog, lease: timedelta) -> None:
    """Mark runs of processes that are gone as failed, and free the pool slots of all runs that are finished."""
    for run in living_runs(instance, catalog, lease):
        if PROCESS_TAG in run.tags and _is_gone(run.tags[PROCESS_TAG]):
            instance.report_run_failed(run, "the process of this run died; what it had in hand is taken up again when its leases end")
    storage = instance.event_log_storage
    if storage.supports_global_concurrency_limits:
        for run_id in storage.get_concurrency_run_ids():
            holder = instance.get_run_by_id(run_id)
            if holder is None or holder.is_finished:
                storage.free_concurrency_slots_for_run(run_id)


def give_back_own_runs(instance: dg.DagsterInstance, catalog: Catalog) -> None:
    """Close the runs under way in this process and put back their jobs, lanes and sources, so that nobody waits for their leases."""
    for run in instance.get_runs(filters=dg.RunsFilter(statuses=ACTIVE, tags={PROCESS_TAG: process_tag()})):
        for holding in (catalog.jobs, catalog.lanes, catalog.sources):
            holding.release(run.run_id)
        catalog.holders.end(run.run_id)
        instance.report_run_canceled(run, message="the process of this run was told to stop")
        instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)


def _is_gone(tag: str) -> bool:
    host, pid, began = tag.rsplit(":", 2)
    if host != socket.gethostname():
        return False  # nothing is known of another machine's processes
    try:
        return abs(psutil.Process(int(pid)).create_time() - float(began)) > CLOCK_S
    except psutil.NoSuchProcess:
        return True
