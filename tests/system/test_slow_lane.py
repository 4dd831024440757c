"""A scan in flight delays nobody: an edit of the same bucket is indexed while a worker of another process is at work on it."""

import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import pytest
from sqlalchemy import select

from primer.workspace import Workspace
from primer_core.lanes import Lane
from primer_core.stages import State
from primer_resources.catalog.schema import jobs
from tests.conftest import PROJECT
from tests.deployment import Deployment, workspace
from tests.primer_resources.parser.conftest import Make
from tests.system.crash_deployment import eventually
from tests.system.long_scan import begun

SETTINGS = {"buckets": 1, "fast_pages": 20}
"""One bucket: the scan and the wiki page share their partition, and so everything that a sweep holds."""


def slow_states(made: Workspace) -> list[str]:
    """Where the jobs of the slow lane stand."""
    with made.catalog.database.read() as connection:
        return list(connection.execute(select(jobs.c.state).where(jobs.c.lane == Lane.SLOW)).scalars())


def seconds_of_an_edit(wiki: Deployment, words: str) -> float:
    """From the edit to the moment when the passage is found."""
    wiki.write("ferry.md", f"# Ferry\n\nThe ferry leaves {words}.")
    began = time.monotonic()
    assert wiki.sync().counts["indexed"] == 1
    assert words in wiki.search("when does the ferry leave")[0].text
    return time.monotonic() - began


def test_a_wiki_edit_is_indexed_while_a_long_scan_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gate = tmp_path / "gate"
    with workspace(tmp_path / "home", **SETTINGS) as made:
        wiki, scans = Deployment(made, tmp_path / "wiki", "wiki"), Deployment(made, tmp_path / "scans", "scans")
        seconds_of_an_edit(wiki, "when it likes")  # workers and model are loaded
        alone = [seconds_of_an_edit(wiki, f"at {hour}") for hour in ("six", "seven", "eight")]
        (scans.folder / "atlas.pdf").write_bytes(Make.pdf(*(f"Plate {n} of the atlas shows the coast at low tide." for n in range(60))))
        environment = {**os.environ, "PRIMER_HOME": str(tmp_path / "home"), "PRIMER_PARSE_WORKERS": "1"}
        environment |= {f"PRIMER_{name.upper()}": str(value) for name, value in SETTINGS.items()}
        reader = subprocess.Popen([sys.executable, "-m", "tests.system.long_scan", str(gate)], cwd=PROJECT, env=environment)
        try:
            eventually(lambda: begun(gate).exists() or reader.poll() is not None)
            assert reader.poll() is None, "the reader of the scan ended too early"
            assert slow_states(made) == [State.PARSING]
            beside = [seconds_of_an_edit(wiki, f"at {hour}") for hour in ("nine", "ten", "eleven")]
            assert slow_states(made) == [State.PARSING], "the scan is still being read"
            assert scans.search("atlas") == []
            gate.touch()
            assert reader.wait(timeout=240) == 0
        finally:
            reader.kill()
            reader.wait()
        assert slow_states(made) == [State.INDEXED]
        assert scans.search("coast at low tide")[0].path == "atlas.pdf"
        assert wiki.reconcile().agrees
    with capsys.disabled():
        print(f"\nan edit was found after {median(alone):.1f} s alone, {median(beside):.1f} s beside a scan in flight")  # noqa: T201 - the figures
