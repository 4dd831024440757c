"""`make ui` at work: the sensors find a dropped file and a deleted one with nobody touching anything, and nothing survives the end."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from primer.workspace import Workspace
from primer_resources.settings import load_settings
from tests.conftest import PROJECT
from tests.deployment import Deployment

PATIENCE_S = 240
"""Twice what a person is promised, since two test processes share two cores."""


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Wait for a condition of another process."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, f"after {PATIENCE_S} s still not: {what}"
        time.sleep(0.5)


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployment]:
    """A deployment whose web server and daemon run as `make ui` runs them."""
    home = tmp_path / "home"
    for name, value in {"PRIMER_HOME": str(home), "PRIMER_BUCKETS": "2", "PRIMER_PARSE_WORKERS": "1"}.items():
        monkeypatch.setenv(name, value)
    workspace = Workspace(load_settings())
    workspace.create()
    place = Deployment(workspace, tmp_path / "docs", "docs")
    with socket.socket() as free, socket.socket() as also_free:
        for each in (free, also_free):
            each.bind(("127.0.0.1", 0))
        ports = {"PORT": str(free.getsockname()[1]), "API_PORT": str(also_free.getsockname()[1])}
    environment = {**os.environ, "VENV": sys.prefix, **ports}
    log = (tmp_path / "ui.log").open("wb")
    ui = subprocess.Popen([PROJECT / "deploy/setup/ui.sh"], env=environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        yield place
    finally:
        family = [psutil.Process(ui.pid), *psutil.Process(ui.pid).children(recursive=True)]
        ui.send_signal(signal.SIGTERM)
        ui.wait(timeout=60)
        workspace.close()
        log.close()
        survivors = psutil.wait_procs(family, timeout=30)[1]
        for process in survivors:
            process.kill()
        assert not survivors


def test_a_dropped_file_is_found_and_a_deleted_one_vanishes_with_nobody_touching_anything(live: Deployment) -> None:
    live.write("zebra.md", "# Crossing\n\nThe crossing at the harbour office is painted anew each spring by the harbour master.")
    wait_until(lambda: bool(live.search("who paints the crossing")), "the dropped file is found")
    (live.folder / "zebra.md").unlink()
    wait_until(lambda: not live.search("who paints the crossing"), "the deleted file is gone")
    shutil.copy(PROJECT / "samples/Mail/battery-recall.eml", live.folder / "mail.eml")
    wait_until(lambda: any(hit.path == "mail.eml" for hit in live.search("swollen batteries")), "the mail is found")
