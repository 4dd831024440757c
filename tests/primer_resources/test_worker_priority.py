import os
from datetime import timedelta
from pathlib import Path

import pytest

from primer_resources.workers import Call, WorkerLimits, WorkerPool


def priority(_directory: Path) -> int:
    """The task: how far this process stands back."""
    return os.getpriority(os.PRIO_PROCESS, 0)


@pytest.mark.parametrize("nice", [0, 7])
def test_workers_stand_back_as_far_as_their_pool_says(nice: int) -> None:
    pool: WorkerPool[str] = WorkerPool(WorkerLimits(1, 2**30, 10, timedelta(seconds=60), nice=nice))
    try:
        (finished,) = pool.run([Call("task", priority, ())])
    finally:
        pool.close()
    assert finished.value == os.getpriority(os.PRIO_PROCESS, 0) + nice
