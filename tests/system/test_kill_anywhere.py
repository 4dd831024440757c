"""Processes killed with SIGKILL at every boundary of a write, and at any other moment, while a reader looks on.

`pytest tests/system/test_kill_anywhere.py` kills twice at each boundary; `--kill-repeats 20` is the whole proof, about half an hour.
"""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from random import Random

import pytest

from tests.system.crash_deployment import GRACE_S, deployed, eventually, reading
from tests.system.crash_worker import Order, Stop

BOUNDARIES = ("claimed", "intended", "vectors_written", "keywords_written", "flipped", "purging")
A_BATCH = ("claimed", "intended", "vectors_written")
"""Boundaries that come once a batch: killed at the first batch and at the second in turn."""
ANYWHERE = "anywhere"
"""At a random moment between a sync's beginning and its end: in a listing, in a commit, between two sweeps."""
LEAST_READS_A_KILL = 3
MOST_VOID = 0.2

pytestmark = [pytest.mark.system, pytest.mark.timeout(0)]  # every wait has a deadline of its own


def test_a_kill_anywhere_loses_doubles_and_halves_nothing(
    crash_template: Path, tmp_path: Path, request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> None:
    repeats = request.config.getoption("--kill-repeats")
    random = Random(repeats)
    kills: dict[str, int] = dict.fromkeys((*BOUNDARIES, ANYWHERE), 0)
    with deployed(crash_template, tmp_path) as deployment, reading(deployment, tmp_path) as finish:
        worker = deployment.start_worker()
        deployment.edit()
        usual = deployment.recover(worker)
        for repeat, boundary in product(range(repeats), kills):
            if boundary == "purging":
                deployment.edit()
                deployment.recover(worker)
                eventually(deployment.purges_wait)
            deployment.edit()
            if boundary == ANYWHERE:
                worker.start(Order())
                kills[boundary] += not worker.is_done(random.uniform(0.0, usual / 2))
                worker.kill()
            else:
                worker.start(Order(stop=Stop(boundary, hit=1 + repeat % 2 if boundary in A_BATCH else 1)))
                worker.wait_for_kill()
                kills[boundary] += 1
            if repeat % 2:
                deployment.edit()  # a newer version comes while the dead process still holds the older one
            worker = deployment.start_worker()
            usual = deployment.recover(worker)
        assert deployment.remains(worker) == []
        verdict = finish()
    figures = {"kills": kills, "reads": verdict.reads, "void": verdict.void, "ungated_wrong": verdict.ungated_wrong}
    for name, figure in {**figures, "wrong": len(verdict.wrong)}.items():
        record_property(name, figure)
    assert verdict.wrong == []
    assert all(kills[boundary] == repeats for boundary in BOUNDARIES)
    assert verdict.reads >= LEAST_READS_A_KILL * sum(kills.values())
    assert verdict.void <= MOST_VOID * verdict.reads, f"{verdict.void} of {verdict.reads} reads took over {GRACE_S} s and prove nothing"
    assert verdict.ungated_wrong > 0, "no read fell into the middle of a write, so the gate was not put to the test"
