"""A folder that other users can reach, and a way to run the connector as one without rights: root reads everything. A source's bench."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.primer_resources.catalog.world import World
from tests.source_bench import Bench

NOBODY = 65534
PROJECT = Path(__file__).parents[3]
AS_NOBODY = f"""
import json, os, sys
from pathlib import Path
from primer_core.failures import DocumentFault, PrimerError
from primer_resources.connectors.drive import DriveConnector, DriveSettings
settings, target = DriveSettings(**json.loads(sys.argv[1])), Path(sys.argv[2])
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid({NOBODY})
    os.setuid({NOBODY})
connector = DriveConnector(settings)
listing = connector.list()
out = {{"items": {{}}, "error": ""}}
try:
    for item in listing:
        try:
            fetched = connector.fetch(item, target)
            outcome = "fetched"
        except DocumentFault as fault:
            outcome = fault.reason.value
        out["items"][item.path] = [item.fault, item.access.readable, outcome]
except PrimerError as error:
    out["error"] = f"{{type(error).__name__}}: {{error}}"
out["problems"] = list(listing.problems)
json.dump(out, sys.stdout)
"""


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder below which everyone may read; pytest's own temporary folder is closed to other users."""
    place = Path(tempfile.mkdtemp(prefix="primer-drive-"))
    place.chmod(0o755)
    yield place
    for folder, _, _ in os.walk(place):
        Path(folder).chmod(0o755)
    shutil.rmtree(place)


@pytest.fixture
def run_without_rights(shared: Path) -> Callable[..., dict[str, Any]]:
    """List and fetch a drive as a user without rights: items (path → fault, access readable, outcome), problems and error."""

    def run(**settings: Any) -> dict[str, Any]:
        inbox = shared / "inbox"
        inbox.mkdir()
        inbox.chmod(0o777)
        done = subprocess.run(
            [sys.executable, "-c", AS_NOBODY, json.dumps(settings, default=str), str(inbox / "copy")],
            cwd=PROJECT,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        result: dict[str, Any] = json.loads(done.stdout)
        return result

    return run


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A catalog with one source; its clock is later than what tests write."""
    world = World(f"sqlite:///{tmp_path / 'catalog.sqlite'}")
    world.make()
    world.clock.moment = world.clock.moment.replace(year=2027)
    return Bench(world, tmp_path)
