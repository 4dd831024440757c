"""Two processes at the same work: one has the lane or the source, the other leaves it, and nothing is written twice.

A process that was stopped past its leases and goes on later (a suspended laptop, a paused VM) must change nothing.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from primer_core.visibility import DocumentView
from tests.system.crash_deployment import LEASE_S, Deployment, deployed, eventually, reading
from tests.system.crash_documents import DOCUMENTS
from tests.system.crash_reader import GROUPS
from tests.system.crash_worker import DEADLINE_S, LISTING, Order, Stop

LONG_LEASE_S = 90.0
TAKEN = "is being synced by another run"

pytestmark = [pytest.mark.system, pytest.mark.timeout(0)]  # every wait has a deadline of its own


@pytest.fixture
def patient(crash_template: Path, tmp_path: Path) -> Iterator[Deployment]:
    """A deployment whose leases outlast the test."""
    with deployed(crash_template, tmp_path, LONG_LEASE_S) as deployment:
        yield deployment


@pytest.fixture
def hasty(crash_template: Path, tmp_path: Path) -> Iterator[Deployment]:
    """A deployment whose leases soon run out."""
    with deployed(crash_template, tmp_path, LEASE_S) as deployment:
        yield deployment


def test_a_sweeper_that_finds_the_lanes_taken_leaves_them_and_writes_nothing(patient: Deployment) -> None:
    holder, other = patient.start_worker(), patient.start_worker()
    patient.edit()
    holder.start(Order(stop=Stop("claimed", signal=signal.SIGSTOP)))
    holder.wait_for_stop()
    assert other.do(Order(sync=False)) is None
    assert _lanes_busy(patient) == patient.workspace.settings.buckets
    assert patient.reconcile().vector_rows == 0
    holder.resume()
    assert holder.result() is None
    assert _lanes_busy(patient) == 0
    patient.settle()
    assert patient.problems() == []


def test_two_sweepers_at_once_double_nothing_and_leave_nothing(patient: Deployment) -> None:
    first, second = patient.start_worker(), patient.start_worker()
    for _ in range(3):
        patient.edit()
        first.start(Order(stop=Stop("claimed", signal=signal.SIGSTOP)))
        first.wait_for_stop()  # all is parsed, chunked and embedded; the two meet at the lanes
        second.start(Order(sync=False))
        first.resume()
        assert (first.result(), second.result()) == (None, None)
        assert first.do(Order()) is None  # what the one made ready while the other had the lanes
        patient.settle()
        assert patient.problems() == []
    assert patient.remains(first) == []


def test_two_syncs_of_a_source_at_once_list_it_once(patient: Deployment) -> None:
    holder = patient.start_worker()
    patient.edit()
    holder.start(Order(stop=Stop(LISTING, signal=signal.SIGSTOP)))
    holder.wait_for_stop()
    other = _cli(patient)
    words, code = _ended(other)
    assert code == 0, words
    assert TAKEN in words
    holder.resume()
    assert holder.result() is None
    source = patient.workspace.catalog.sources.all()[0]
    assert source.scan == 1
    patient.settle()
    assert patient.problems() == []


def test_two_sync_commands_started_together_both_end_well(patient: Deployment) -> None:
    patient.edit()
    syncs = [_cli(patient), _cli(patient)]
    ended = [_ended(sync) for sync in syncs]
    assert [code for _, code in ended] == [0, 0], ended
    assert sum(TAKEN in words for words, _ in ended) <= 1
    patient.settle()
    assert patient.problems() == []


@pytest.mark.parametrize(
    ("boundary", "forgotten"),
    [("vectors_written", False), ("intended", True)],
    ids=["after its rows were written", "before its rows are written, when their purges are done and forgotten"],
)
def test_a_process_that_wakes_after_its_leases_ran_out_changes_nothing(
    hasty: Deployment, tmp_path: Path, boundary: str, forgotten: bool
) -> None:
    zombie, heir = hasty.start_worker(), hasty.start_worker()
    hasty.edit()
    assert heir.do(Order()) is None
    hasty.settle()
    with reading(hasty, tmp_path) as finish:
        hasty.edit()
        zombie.start(Order(stop=Stop(boundary, signal=signal.SIGSTOP)))
        zombie.wait_for_stop()
        eventually(lambda: not hasty.workspace.catalog.holders.alive())
        assert heir.do(Order()) is None
        hasty.settle()
        assert hasty.problems() == []
        if forgotten:
            assert hasty.remains(heir) == []
        before = _generations(hasty)
        zombie.resume()
        zombie.result()  # whether it says that it lost its leases or finds nothing left to do
        assert _generations(hasty) == before
        assert heir.do(Order()) is None
        assert hasty.problems() == []
        assert hasty.remains(heir) == []
        verdict = finish()
    assert verdict.wrong == []
    assert verdict.reads > 0


def _lanes_busy(deployment: Deployment) -> int:
    """How many lanes the newest `vector_index` step found taken, by its metadata."""
    with dg.DagsterInstance.from_config(str(deployment.workspace.settings.dagster_home)) as instance:
        records = instance.fetch_materializations(dg.AssetKey("vector_index"), limit=1).records
    materialization = records[0].asset_materialization
    assert materialization is not None
    busy = materialization.metadata["lanes_busy"].value
    assert isinstance(busy, int)
    return busy


def _generations(deployment: Deployment) -> dict[str, DocumentView]:
    ids = {document.doc_id for document in deployment.documents}
    catalog = deployment.workspace.catalog
    owners = catalog.gate.look("v1", ids, set(), GROUPS, catalog.now()).owners
    assert len(owners) == DOCUMENTS
    return {doc_id: owner.view for doc_id, owner in owners.items()}


def _cli(deployment: Deployment) -> "subprocess.Popen[str]":
    """`primer sync` of all sources, started."""
    return subprocess.Popen(
        [sys.executable, "-m", "primer.cli.launch", "sync"],
        env={**os.environ, **deployment.environment, "COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _ended(process: "subprocess.Popen[str]") -> tuple[str, int]:
    """What the command said on stderr, and its exit code."""
    _, said = process.communicate(timeout=DEADLINE_S)
    return said, process.returncode
