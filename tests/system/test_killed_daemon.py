"""The sensor daemon killed with SIGKILL in the middle of a tick: the next daemon's ticks do what that one left, and do it once."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import psutil
import pytest
from dagster._core.scheduler.instigation import TickStatus
from sqlalchemy import select

from primer.workspace import Workspace
from primer_core.stages import State
from primer_resources.catalog.schema import documents, jobs
from primer_resources.settings import load_settings
from tests.deployment import Deployment
from tests.system.test_live_sync import wait_until

KILLS = 3

pytestmark = pytest.mark.system


@contextmanager
def daemon(home: Path, log: Path) -> Iterator[psutil.Process]:
    """Dagster's daemon over a home, with the code server that it starts. Both are gone at the end."""
    environment = {**os.environ, "DAGSTER_HOME": str(home), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "dagster._daemon", "run", "--module-name", "primer.definitions"]
    with log.open("ab") as file, subprocess.Popen(command, env=environment, cwd=home, stdout=file, stderr=file) as process:
        family: set[psutil.Process] = {psutil.Process(process.pid)}
        try:
            yield psutil.Process(process.pid)
        finally:
            family.update(*(each.children(recursive=True) for each in list(family) if each.is_running()))
            family.update(_orphans(home))
            for each in family:
                if each.is_running():
                    each.kill()


def _orphans(home: Path) -> Iterator[psutil.Process]:
    """Processes of this home whose parent was killed."""
    for each in psutil.process_iter():
        try:
            if each.pid != os.getpid() and each.environ().get("DAGSTER_HOME") == str(home):
                yield each
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue


def _in_a_tick(instance: dg.DagsterInstance) -> bool:
    """Whether a sensor is being evaluated now."""
    return any(
        tick.status is TickStatus.STARTED
        for state in instance.all_instigator_state()
        for tick in instance.get_ticks(state.instigator_origin_id, state.selector_id, limit=1)
    )


def _statuses(place: Deployment) -> Counter[str]:
    with place.workspace.catalog.database.read() as connection:
        return Counter(connection.execute(select(documents.c.status)).scalars())


def test_what_a_killed_tick_left_is_done_once_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    settings = {"PRIMER_HOME": str(home), "PRIMER_BUCKETS": "1", "PRIMER_PARSE_WORKERS": "1", "PRIMER_SENSOR_INTERVAL": "1s"}
    for name, value in {**settings, "PRIMER_POLL_INTERVAL": "1s", "PRIMER_LEASE": "10s"}.items():
        monkeypatch.setenv(name, value)
    workspace = Workspace(load_settings())
    workspace.create()
    try:
        place = Deployment(workspace, tmp_path / "docs", "docs")
        dagster_home = workspace.settings.dagster_home
        for number in range(KILLS):
            place.write(f"crossing-{number}.md", f"# Crossing {number}\n\nCrossing number {number} is painted anew each spring.")
            with daemon(dagster_home, tmp_path / "daemon.log") as process:
                wait_until(lambda: _in_a_tick(workspace.instance), "a sensor is being evaluated")
                process.kill()
        with daemon(dagster_home, tmp_path / "daemon.log"):
            wait_until(lambda: _statuses(place) == {"indexed": KILLS}, f"all documents are indexed: {_statuses(place)}")
        with workspace.catalog.database.read() as connection:
            done = Counter(row.doc_id for row in connection.execute(select(jobs.c.doc_id).where(jobs.c.state == State.INDEXED)))
        keys = Counter((run.tags["dagster/sensor_name"], run.tags["dagster/run_key"]) for run in workspace.instance.get_runs())
        assert set(done.values()) == {1}
        assert set(keys.values()) == {1}
        assert place.reconcile().agrees
        assert not place.dead()
    finally:
        workspace.close()
