"""A worker that hangs, crashes or eats all memory is the end of its own task and of no other; nothing outlives the pool."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import psutil
import pytest

from primer_core.failures import Reason, SystemFault
from primer_resources.scratch import PREFIX
from primer_resources.worker_faults import fault_of
from primer_resources.workers import Call, Ending, Finished, WorkerLimits, WorkerPool

HERE = Path(__file__).parent
SECONDS = 20
"""How long a process may take to be gone; it is awaited, not slept."""


@pytest.fixture
def poison(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of tasks, importable by name here and in the workers."""
    monkeypatch.syspath_prepend(str(HERE))
    return import_module("poison_tasks")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where pools make their directories in this test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def make_pool(root: Path, poison: Any) -> Iterator[Callable[..., WorkerPool[str]]]:
    pools: list[WorkerPool[str]] = []

    def make(workers: int = 2, memory_mb: int = 1024, tasks: int = 100, timeout: float = 30.0, **more: Any) -> WorkerPool[str]:
        pools.append(WorkerPool(WorkerLimits(workers, memory_mb * 2**20, tasks, timedelta(seconds=timeout)), **more))
        return pools[-1]

    yield make
    for pool in pools:
        pool.close()


def calls(*tasks: tuple[str, Callable[..., object], tuple[object, ...]]) -> Iterator[Call[str]]:
    return (Call(key, function, args) for key, function, args in tasks)


def run(pool: WorkerPool[str], *tasks: tuple[str, Callable[..., object], tuple[object, ...]]) -> dict[str, Finished[str]]:
    return {finished.key: finished for finished in pool.run(calls(*tasks))}


def are_gone(pids: list[int]) -> bool:
    living = [psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)]
    _, alive = psutil.wait_procs(living, timeout=SECONDS)
    return not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]


def test_each_bad_end_belongs_to_its_own_task_and_the_batch_goes_on(make_pool: Any, poison: Any) -> None:
    bad = {
        "hangs": (poison.hang_in_c, ()),
        "hangs with the lock": (poison.hang_holding_the_lock, ()),
        "leaves with 0": (poison.leave, (0,)),
        "leaves with 3": (poison.leave, (3,)),
        "crashes": (poison.crash, ()),
        "is killed": (poison.be_killed, ()),
        "aborts": (poison.abort_like_cplusplus, ()),
        "eats memory": (poison.eat_memory, ()),
        "raises": (poison.complain, ("bad table",)),
        "cannot be imported": (poison.double, ("no number", "too many")),
    }
    tasks: list[tuple[str, Callable[..., object], tuple[object, ...]]] = []
    for number, (key, (function, args)) in enumerate(bad.items()):
        tasks += [(f"good {number}", poison.double, (number,)), (key, function, args), (f"good too {number}", poison.double, (number,))]

    ends = run(make_pool(timeout=10.0, memory_mb=512), *tasks)

    assert len(ends) == len(tasks)
    for number in range(len(bad)):
        assert [ends[f"good {number}"].value, ends[f"good too {number}"].value] == [2 * number] * 2
    assert {key: ends[key].ending for key in bad} == {
        "hangs": Ending.TIMED_OUT,
        "hangs with the lock": Ending.TIMED_OUT,
        "leaves with 0": Ending.DIED,
        "leaves with 3": Ending.DIED,
        "crashes": Ending.DIED,
        "is killed": Ending.DIED,
        "aborts": Ending.DIED,
        "eats memory": Ending.RAISED,
        "raises": Ending.RAISED,
        "cannot be imported": Ending.RAISED,
    }
    codes = {key: ends[key].exit_code for key in ("leaves with 0", "leaves with 3", "crashes", "is killed", "aborts")}
    assert codes == {
        "leaves with 0": 0,
        "leaves with 3": 3,
        "crashes": -signal.SIGSEGV,
        "is killed": -signal.SIGKILL,
        "aborts": -signal.SIGABRT,
    }
    assert "std::bad_alloc" in ends["aborts"].stderr
    assert ends["eats memory"].causes[0][0] == "MemoryError"
    assert ends["raises"].causes == (("ValueError", "bad table"), ("KeyError", "'inner'"))


def test_no_process_and_no_file_outlives_the_pool(make_pool: Any, poison: Any, root: Path) -> None:
    pool = make_pool(timeout=1.0)
    places = []
    for finished in pool.run(
        calls(("a", poison.litter, ()), ("b", poison.hang_in_c, ()), ("c", poison.leave, (1,)), ("d", poison.complain, ("x",)))
    ):
        places.append(finished.directory)
        assert finished.directory.is_dir()
        if finished.key == "a":
            assert Path(finished.value).is_relative_to(finished.directory)
    assert len(places) == 4
    assert not [place for place in places if place.exists()]
    pids = list(pool.pids)
    pool.close()
    assert are_gone(pids)
    assert not list(root.iterdir())


def test_a_run_that_is_given_up_kills_what_it_was_doing(make_pool: Any, poison: Any) -> None:
    pool = make_pool(workers=1)
    going = pool.run(calls(("a", poison.double, (1,)), ("b", poison.hang_in_c, ())))
    first = next(going)
    busy = list(pool.pids)
    going.close()
    assert first.key == "a"
    assert not first.directory.exists()
    assert are_gone(busy)
    assert run(pool, ("d", poison.double, (4,)))["d"].value == 8


def test_no_more_calls_are_taken_than_workers_can_do(make_pool: Any, poison: Any) -> None:
    taken = 0

    def source() -> Iterator[Call[str]]:
        nonlocal taken
        for number in range(30):
            taken += 1
            yield Call(str(number), poison.double, (number,))

    for done, _ in enumerate(make_pool(workers=2).run(source())):
        # Two under way and two next in line, besides what ended.
        assert taken - done <= 1 + 2 + 2 + 1


def test_nothing_starts_for_nothing(make_pool: Any, poison: Any, root: Path) -> None:
    pool = make_pool(workers=4)
    assert not list(root.iterdir())
    run(pool, ("only", poison.double, (1,)))
    assert len(pool.pids) == 1


def test_a_worker_is_replaced_after_its_number_of_tasks(make_pool: Any, poison: Any) -> None:
    ends = run(make_pool(workers=1, tasks=2), *[(str(n), poison.my_pid, ()) for n in range(5)])
    pids = [ends[str(n)].value for n in range(5)]
    assert pids[0] == pids[1] != pids[2] == pids[3] != pids[4]


def test_a_worker_is_replaced_after_running_out_of_memory(make_pool: Any, poison: Any) -> None:
    ends = run(make_pool(workers=1), ("a", poison.my_pid, ()), ("b", poison.eat_memory, ()), ("c", poison.my_pid, ()))
    assert ends["a"].value != ends["c"].value


def test_a_worker_that_dies_idle_costs_no_task(make_pool: Any, poison: Any) -> None:
    pool = make_pool(workers=1)
    pid = run(pool, ("a", poison.my_pid, ()))["a"].value
    os.kill(pid, signal.SIGKILL)
    assert are_gone([pid])
    assert run(pool, ("b", poison.double, (2,)))["b"].value == 4


def test_a_worker_outlives_the_thread_that_first_asked_for_it(make_pool: Any, poison: Any) -> None:
    pool = make_pool(workers=1)
    pids: list[int] = []
    thread = threading.Thread(target=lambda: pids.append(run(pool, ("a", poison.my_pid, ()))["a"].value))
    thread.start()
    thread.join()
    assert run(pool, ("b", poison.my_pid, ()))["b"].value == pids[0]


def test_a_worker_can_start_nothing_and_uses_one_thread(make_pool: Any, poison: Any, root: Path) -> None:
    found = run(make_pool(), ("a", poison.surroundings, ()))["a"].value
    assert (found["sh"], found["soffice"], found["libreoffice"]) == (None, None, None)
    assert (found["OMP_THREAD_LIMIT"], found["OMP_NUM_THREADS"], found["HF_HUB_OFFLINE"]) == ("1", "1", "1")
    assert Path(found["TMPDIR"]).is_relative_to(root)


def test_only_named_programs_are_found(make_pool: Any, poison: Any) -> None:
    found = run(make_pool(programs=("sh",)), ("a", poison.surroundings, ()))["a"].value
    assert found["sh"]
    assert found["soffice"] is None


def test_a_time_limit_reaches_what_the_worker_started(make_pool: Any, poison: Any) -> None:
    pool = make_pool(workers=1, timeout=2.0, programs=("sleep",))
    for finished in pool.run(calls(("a", poison.start_a_child_and_hang, ()))):
        assert finished.ending is Ending.TIMED_OUT
        assert are_gone([int((finished.directory / "pid").read_text())])


def test_an_endless_loop_ends_by_its_cpu_time_and_not_by_the_clock(root: Path, poison: Any) -> None:
    limits = WorkerLimits(1, 2**30, 100, timedelta(hours=1), cpu_time=timedelta(seconds=1))
    pool: WorkerPool[str] = WorkerPool(limits)
    ends = run(pool, ("a", poison.spin, ()), ("b", poison.double, (2,)), ("c", poison.spin, ()))
    pool.close()
    assert [ends[key].exit_code for key in "ac"] == [-signal.SIGXCPU] * 2
    assert ends["b"].value == 4
    fault = fault_of(ends["a"], "a.docx", limits)
    assert fault is not None
    assert fault.reason is Reason.PARSE_TIMEOUT
    assert "a.docx took more of the processor's time than 1 s; raise PRIMER_PARSE_CPU_TIME" in fault.message


def test_cpu_time_is_counted_for_each_task_alone(root: Path, poison: Any) -> None:
    pool: WorkerPool[str] = WorkerPool(WorkerLimits(1, 2**30, 100, timedelta(seconds=60), cpu_time=timedelta(seconds=1)))
    ends = run(pool, *[(str(number), poison.burn, (0.4,)) for number in range(5)])
    pool.close()
    assert [ends[str(number)].ending for number in range(5)] == [Ending.RETURNED] * 5


def test_a_larger_file_may_take_longer(root: Path, poison: Any) -> None:
    limits = WorkerLimits(1, 2**30, 100, timedelta(seconds=1), per_megabyte=timedelta(seconds=60))
    pool: WorkerPool[str] = WorkerPool(limits)
    tasks = [Call("small", poison.doze, (2.0,)), Call("large", poison.doze, (2.0,), size=2**20)]
    ends = {finished.key: finished.ending for finished in pool.run(iter(tasks))}
    pool.close()
    assert ends == {"small": Ending.TIMED_OUT, "large": Ending.RETURNED}


def test_a_worker_is_replaced_when_it_has_grown(root: Path, poison: Any) -> None:
    pool: WorkerPool[str] = WorkerPool(WorkerLimits(1, 2**31, 100, timedelta(seconds=60), growth_bytes=100 * 2**20))
    ends = run(pool, *[(str(n), poison.hoard, (size,)) for n, size in enumerate((40, 40, 40, 1))])
    pool.close()
    pids = [ends[str(n)].value for n in range(4)]
    assert pids[0] == pids[1] == pids[2] != pids[3]


def test_a_task_can_reach_no_network_start_no_program_and_write_nowhere_else(make_pool: Any, poison: Any, tmp_path: Path) -> None:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "kept").write_text("words")
    found = run(make_pool(programs=("sleep",)), ("a", poison.misbehave, (folder / "written",)))["a"].value
    allowed = {"read", "write inside", "clear up inside", "given program", "nothing"}
    assert found == {name: "done" if name in allowed else "PermissionError" for name in found}
    assert [(path.name, path.read_text()) for path in folder.iterdir()] == [("kept", "words")]


def test_workers_that_cannot_start_are_the_systems_fault(make_pool: Any, poison: Any) -> None:
    with pytest.raises(SystemFault, match="no models on this machine"):
        run(make_pool(prepare="poison_tasks:cannot_start"), ("a", poison.double, (1,)))


def test_two_runs_at_once_are_refused(make_pool: Any, poison: Any) -> None:
    pool = make_pool()
    first = pool.run(calls(("a", poison.double, (1,)), ("b", poison.double, (1,))))
    next(first)
    with pytest.raises(SystemFault, match="already at work"):
        next(pool.run(calls(("c", poison.double, (1,)))))
    first.close()


OWNER = """
import sys
from datetime import timedelta
import poison_tasks
from primer_resources.scratch import PREFIX
from primer_resources.workers import Call, WorkerLimits, WorkerPool
pool = WorkerPool(WorkerLimits(2, 2**30, 100, timedelta(seconds=600)))
calls = [Call(n, poison_tasks.my_pid, ()) for n in range(2)] + [Call(n, poison_tasks.hang_holding_the_lock, ()) for n in range(2)]
for finished in pool.run(calls):
    print(finished.value, *pool.pids, flush=True)
"""


def test_workers_die_with_a_killed_parent_and_the_next_pool_clears_up(make_pool: Any, poison: Any, root: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(root)}
    with subprocess.Popen([sys.executable, "-c", OWNER], env=environment, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        lines = [owner.stdout.readline() for _ in range(2)]
        pids = [int(pid) for line in lines for pid in line.split()]
        assert pids
        assert len(list(root.glob(f"{PREFIX}*"))) == 1
        owner.kill()
    assert are_gone(pids)
    left = set(root.glob(f"{PREFIX}*"))
    assert len(left) == 1
    run(make_pool(), ("a", poison.double, (1,)))
    assert not [place for place in left if place.exists()]


def test_a_living_pools_directory_is_not_cleared_away(make_pool: Any, poison: Any) -> None:
    first, second = make_pool(workers=1), make_pool(workers=1)
    assert run(first, ("a", poison.double, (1,)))["a"].value == 2
    assert run(second, ("b", poison.double, (2,)))["b"].value == 4
    assert run(first, ("c", poison.double, (3,)))["c"].value == 6
