"""Processes killed with SIGKILL among the pages of a snapshot and around the swap: nothing is taken up twice or left out, and the alias
always names a version that is whole.

`--kill-repeats` says how often at each.
"""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from random import Random

import pytest

from primer_core.backfills import BackfillReason, BackfillState
from primer_core.index_versions import REQUIRED, CheckResult, VersionState
from primer_core.lanes import Lane
from primer_core.part_keys import chunk_set
from primer_core.stored_states import PartEntry, PartState, WrittenBy, pipeline_state
from primer_resources.catalog.schema import documents, jobs
from tests.conftest import PROJECT
from tests.primer_resources.catalog.world import BUCKETS, HASHES, RECIPE, REMODELLED, TENANT, World
from tests.system.backfill_worker import DAY, DONE_EXIT

DOCUMENTS = 300
pytestmark = [pytest.mark.system, pytest.mark.timeout(0)]  # every wait has an end of its own


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    made = World(database_url)
    made.clock.moment = datetime.now(UTC)
    made.make()
    made.content("one", Lane.FAST)
    for number in range(DOCUMENTS):
        made.document(f"{number}.md", bucket=BUCKETS[number % len(BUCKETS)])
    by = WrittenBy("chunk", "run", RECIPE.chunker.version)
    entry = PartEntry(*chunk_set(RECIPE.chunker.version), PartState.PRESENT, 1, "aa", made.catalog.now(), "ab/key", by)
    made.catalog.states.save(pipeline_state(TENANT, HASHES["one"], RECIPE.parser.version), HASHES["one"], [entry])
    made.catalog.deployments.add_version("v2", REMODELLED, VersionState.BUILDING, len(BUCKETS))
    yield made
    made.catalog.close()


@contextmanager
def worker(world: World, what: str) -> Iterator[subprocess.Popen[str]]:
    """A process at work, killed at the end."""
    url = world.catalog.database.url.render_as_string(hide_password=False)
    command = [sys.executable, "-m", "tests.system.backfill_worker", url, what]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    with subprocess.Popen(command, cwd=PROJECT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGKILL)


def kill_among_its_lines(process: subprocess.Popen[str], random: Random) -> bool:
    """Read some lines, wait a part of what one takes, kill. Returns False where the process came to its end before."""
    assert process.stdout is not None
    began, lines = time.monotonic(), 0
    for lines, line in enumerate(process.stdout, start=1):
        if not line or lines >= random.randint(1, 6):
            break
    time.sleep(random.random() * (time.monotonic() - began) / (lines + 1))
    if process.poll() == DONE_EXIT:
        return False
    process.send_signal(signal.SIGKILL)
    process.wait()
    return True


def test_a_snapshot_killed_among_its_pages_takes_up_every_document_once(world: World, request: pytest.FixtureRequest) -> None:
    random = Random(5)
    backfill = world.catalog.backfills.begin(world.catalog.deployments.version("v2"), BackfillReason.EMBEDDING_MODEL, None, BUCKETS)
    for _ in range(request.config.getoption("--kill-repeats")):
        with worker(world, "feed") as process:
            if not kill_among_its_lines(process, random):
                break
        found = world.catalog.backfills.find(backfill.backfill_id)
        assert found.taken_up == len(world.rows(jobs, index_version="v2")), "a page and its jobs are one"
    with worker(world, "feed") as process:
        process.communicate()
        assert process.returncode == DONE_EXIT
    made = Counter(row.doc_id for row in world.rows(jobs, index_version="v2"))
    assert made == Counter(row.doc_id for row in world.rows(documents))
    assert world.catalog.backfills.find(backfill.backfill_id).taken_up == DOCUMENTS


def test_a_swap_killed_at_any_moment_leaves_one_live_version_that_is_whole(world: World, request: pytest.FixtureRequest) -> None:
    random, catalog = Random(7), world.catalog
    backfill = catalog.backfills.begin(catalog.deployments.version("v2"), BackfillReason.EMBEDDING_MODEL, None, BUCKETS)
    catalog.backfills.feed(backfill, BUCKETS, 10 * DOCUMENTS)
    with catalog.database.begin() as connection:
        connection.execute(jobs.update().values(state="indexed"))
    assert catalog.backfills.finish(backfill.backfill_id)
    assert catalog.backfills.find(backfill.backfill_id).state is BackfillState.FINISHED
    catalog.promotions.keep("v2", [CheckResult(name, True, "", {}, catalog.now() + DAY) for name in REQUIRED])
    seen = set()
    for _ in range(request.config.getoption("--kill-repeats")):
        with worker(world, "swap") as process:
            assert kill_among_its_lines(process, random)
        states = {version.name: version.state for version in catalog.deployments.versions()}
        live = catalog.deployments.live().name
        seen.add(live)
        assert states[live] is VersionState.LIVE
        other = VersionState.RETIRING if live == "v2" else VersionState.BUILDING
        assert states == {live: VersionState.LIVE, "v1" if live == "v2" else "v2": other}
    assert seen <= {"v1", "v2"}
