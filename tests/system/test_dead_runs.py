"""Runs whose process was killed do not keep the pools' slots: without that, two kills would make every later sync wait for ever."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from importlib.resources import files
from pathlib import Path
from random import SystemRandom

import dagster as dg
import psutil
import pytest

from primer.dead_runs import PROCESS_TAG, close_dead_runs, process_tag
from primer_assets.run_tags import SWEEP_TAG
from primer_resources.catalog.catalog import Catalog
from primer_resources.clock import SystemClock

POOL = "index"
SLOTS = 2
"""The default limit of dagster.yaml."""
LEASE = timedelta(seconds=90)


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    """An instance as `primer init` makes it."""
    (tmp_path / "dagster.yaml").write_bytes((files("primer") / "dagster.yaml").read_bytes())
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        instance.event_log_storage.initialize_concurrency_limit_to_default(POOL)
        yield instance


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    made = Catalog(f"sqlite:///{tmp_path}/catalog.sqlite", SystemClock(), SystemRandom())
    made.database.migrate()
    yield made
    made.close()


@dg.op
def nothing() -> None:
    """Does nothing."""


@dg.job
def idle() -> None:
    """A job to make runs of."""
    nothing()


def _run_of(instance: dg.DagsterInstance, tag: str, key: str = PROCESS_TAG) -> dg.DagsterRun:
    """A run under way that holds a slot."""
    run = instance.create_run_for_job(idle, tags={key: tag}, status=dg.DagsterRunStatus.STARTED)
    began = dg.DagsterEvent(event_type_value=dg.DagsterEventType.RUN_START.value, job_name="idle")
    instance.report_dagster_event(began, run.run_id)
    assert instance.event_log_storage.claim_concurrency_slot(POOL, run.run_id, "nothing").is_claimed
    return run


def _status(instance: dg.DagsterInstance, run: dg.DagsterRun) -> dg.DagsterRunStatus:
    found = instance.get_run_by_id(run.run_id)
    assert found is not None
    return found.status


def _tag_of_a_dead_process() -> str:
    host = process_tag().split(":")[0]
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        return f"{host}:{process.pid}:{psutil.Process(process.pid).create_time():.2f}"


def test_the_runs_of_dead_processes_give_their_slots_back(instance: dg.DagsterInstance, catalog: Catalog) -> None:
    dead = [_run_of(instance, _tag_of_a_dead_process()) for _ in range(SLOTS)]
    close_dead_runs(instance, catalog, LEASE)
    assert [_status(instance, run) for run in dead] == [dg.DagsterRunStatus.FAILURE] * SLOTS
    assert instance.event_log_storage.get_concurrency_info(POOL).active_slot_count == 0


def test_the_runs_of_living_processes_and_of_other_machines_are_left(instance: dg.DagsterInstance, catalog: Catalog) -> None:
    host, rest = process_tag().split(":", 1)
    left = [_run_of(instance, process_tag()), _run_of(instance, f"not-{host}:{rest}")]
    close_dead_runs(instance, catalog, LEASE)
    assert [_status(instance, run) for run in left] == [dg.DagsterRunStatus.STARTED] * 2
    assert instance.event_log_storage.get_concurrency_info(POOL).active_slot_count == 2


def test_a_process_id_that_came_again_is_not_the_process(instance: dg.DagsterInstance, catalog: Catalog) -> None:
    host, pid, began = process_tag().rsplit(":", 2)
    run = _run_of(instance, f"{host}:{pid}:{float(began) - 60:.2f}")
    close_dead_runs(instance, catalog, LEASE)
    assert _status(instance, run) is dg.DagsterRunStatus.FAILURE


def test_a_run_that_was_killed_with_the_daemon_that_launched_it_gives_its_slot_back(instance: dg.DagsterInstance, catalog: Catalog) -> None:
    silent, alive = (_run_of(instance, "v1:00:07", SWEEP_TAG) for _ in range(SLOTS))
    catalog.holders.beat(alive.run_id, LEASE)
    close_dead_runs(instance, catalog, LEASE)
    assert instance.event_log_storage.get_concurrency_info(POOL).active_slot_count == SLOTS, "young runs may not have beaten yet"
    close_dead_runs(instance, catalog, timedelta(microseconds=1))
    assert [_status(instance, run) for run in (silent, alive)] == [dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.STARTED]
    assert instance.event_log_storage.get_concurrency_info(POOL).active_slot_count == 1
