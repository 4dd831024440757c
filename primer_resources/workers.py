"""The worker pool: child processes that can be killed, for work that may hang, crash or eat all memory.

Each worker is a fresh interpreter (never a fork: threads and native libraries do not survive one) that does one task at a time, so a
worker that dies or is killed belongs to exactly one task and no other task notices. Results come as the tasks finish. No more tasks are
in flight than there are workers, so a batch of any length keeps memory and disk flat.

What a task does belongs elsewhere; this file knows only how to start, feed, watch and kill.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from itertools import count
from multiprocessing.connection import Connection, wait
from pathlib import Path
from socket import socketpair
from typing import Any, Generic, TypeVar

import psutil

from primer_core.failures import SystemFault
from primer_core.size_limits import by_size
from primer_resources.scratch import Scratch

K = TypeVar("K")

START_SECONDS = 180.0
"""A worker that is not ready by then will never be: importing Docling takes 4 s on an idle core, 30 s on a busy one."""

STDERR_TAIL = 4_000
"""Characters of a dead worker's last words that are kept: the reason of an abort stands there and nowhere else."""

CHILD_ENVIRONMENT: Mapping[str, str] = {
    # OpenMP starts a thread a core in every child, which makes several children slower than one.
    "OMP_THREAD_LIMIT": "1",
    "OMP_NUM_THREADS": "1",
    # Each malloc arena reserves 64 MB of the address space that RLIMIT_AS counts.
    "MALLOC_ARENA_MAX": "2",
    # A document must never make a worker fetch anything.
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
}
"""Set in every worker before its interpreter starts, since native libraries read them once."""


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """What a worker may use. `memory_bytes` bounds its address space, `tasks` is after how many it is replaced.
    `settings` is what the names of the settings behind them begin with, for messages.

    A task may take `timeout` of wall time and `cpu_time` of the processor's (None: no bound but the wall's), each with `per_megabyte`
    of its file more and at most `longest`. A worker that holds `growth_bytes` more than when it was ready is replaced.
    `nice` is how far workers, and what they start, stand back where the processor is wanted by others (0 to 19).
    """

    workers: int
    memory_bytes: int
    tasks: int
    timeout: timedelta
    settings: str = "PRIMER_PARSE"
    cpu_time: timedelta | None = None
    per_megabyte: timedelta = timedelta(0)
    longest: timedelta = timedelta(hours=1)
    growth_bytes: int = 2**30
    nice: int = 0

    def wall_of(self, size: int) -> timedelta:
        """Wall time that a task on a file of `size` bytes may take."""
        return by_size(self.timeout, self.per_megabyte, self.longest, size)

    def cpu_of(self, size: int) -> timedelta | None:
        """CPU time that a task on a file of `size` bytes may take."""
        return None if self.cpu_time is None else by_size(self.cpu_time, self.per_megabyte, self.longest, size)


@dataclass(frozen=True, slots=True)
class Call(Generic[K]):
    """One task: `function(directory, *args)`, where `directory` is private to the task and gone once its result has been looked at.
    `function` is sent by name, so it must be importable; what it returns goes through a pipe, so big results belong in a file.
    `size` is that of the file it works on in bytes, from which its time limits follow; `timeout` is a wall time of its own instead."""

    key: K
    function: Callable[..., object]
    args: tuple[object, ...]
    size: int = 0
    timeout: timedelta | None = None


class Ending(StrEnum):
    """How a task ended."""

    RETURNED = "returned"
    RAISED = "raised"
    TIMED_OUT = "timed_out"
    DIED = "died"


@dataclass(frozen=True, slots=True)
class Finished(Generic[K]):
    """What became of one call. `value` is what it returned; `causes` is the chain of what it raised, outermost first, as (type, text);
    `exit_code` and `stderr` are of a worker that died (negative: the signal). `size` is the call's."""

    key: K
    ending: Ending
    seconds: float
    directory: Path
    size: int = 0
    value: Any = None
    causes: tuple[tuple[str, str], ...] = ()
    exit_code: int | None = None
    stderr: str = ""


@dataclass(slots=True, eq=False)
class _Worker(Generic[K]):
    process: subprocess.Popen[bytes]
    connection: Connection
    stderr: Path
    deadline: float
    ready: bool = False
    tasks: int = 0
    resident: int = 0
    call: Call[K] | None = None
    directory: Path | None = None
    started: float = 0.0


class WorkerPool(Generic[K]):
    """Runs calls in child processes. Nothing starts before the first call; one `run` at a time."""

    def __init__(
        self,
        limits: WorkerLimits,
        prepare: str = "",
        programs: tuple[str, ...] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`prepare` is "module:function", called once in each worker before its first task (heavy imports belong there).
        `programs` are the only commands on a worker's PATH. `clock` gives seconds that never go back."""
        self._limits = limits
        self._prepare = prepare
        self._programs = programs
        self._clock = clock
        self._workers: list[_Worker[K]] = []
        self._scratch: Scratch | None = None
        self._starter: ThreadPoolExecutor | None = None
        self._numbers = count()
        self._running = False

    @property
    def limits(self) -> WorkerLimits:
        """What each worker may use."""
        return self._limits

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids of the living workers."""
        return tuple(worker.process.pid for worker in self._workers)

    def run(self, calls: Iterable[Call[K]]) -> Iterator[Finished[K]]:
        """Do the calls; yield each one's end as it comes. `calls` is read only as workers come free.

        A result's directory is removed when the next result is asked for. Time limits are looked at while the caller waits for a result.
        Raises SystemFault where a worker cannot be started.
        """
        if self._running:
            raise SystemFault("the worker pool is already at work: let its first run end before the second begins")
        self._running = True
        source = iter(calls)
        waiting: deque[Call[K]] = deque()
        ended: deque[Finished[K]] = deque()
        try:
            while self._feed(source, waiting):
                ended.extend(self._collect())
                while ended:
                    # The freed worker gets its next task before the caller looks at this result.
                    self._feed(source, waiting)
                    yield ended[0]
                    shutil.rmtree(ended.popleft().directory, ignore_errors=True)
        finally:
            for finished in ended:
                shutil.rmtree(finished.directory, ignore_errors=True)
            for worker in [w for w in self._workers if w.call is not None]:
                self._discard(worker)
            self._running = False

    def kill(self) -> None:
        """Kill the workers and nothing more, for a process that is about to end while another thread still uses the pool."""
        for worker in list(self._workers):
            self._kill(worker)

    def close(self) -> None:
        """Kill the workers and remove every trace on disk. A later `run` starts afresh."""
        for worker in list(self._workers):
            self._discard(worker)
        if self._starter is not None:
            self._starter.shutdown()
            self._starter = None
        if self._scratch is not None:
            self._scratch.close()
            self._scratch = None

    def _feed(self, source: Iterator[Call[K]], waiting: deque[Call[K]]) -> bool:
        """Give waiting calls to ready workers and start workers for the rest; whether anything is under way afterwards."""
        while len(waiting) < self._limits.workers and (call := next(source, None)) is not None:
            waiting.append(call)
        for worker in [w for w in self._workers if w.ready and w.call is None]:
            if not waiting:
                break
            if worker.tasks >= self._limits.tasks or worker.process.poll() is not None or self._has_grown(worker):
                self._discard(worker)
                continue
            call = waiting.popleft()
            if not self._send(worker, call):
                # It died idle: the call never reached it and is nobody's fault.
                self._discard(worker)
                waiting.appendleft(call)
        starting = sum(1 for worker in self._workers if not worker.ready)
        for _ in range(min(len(waiting) - starting, self._limits.workers - len(self._workers))):
            self._workers.append(self._start())
        return bool(waiting) or any(worker.call is not None for worker in self._workers)

    def _send(self, worker: _Worker[K], call: Call[K]) -> bool:
        directory = self._base() / f"task-{next(self._numbers)}"
        directory.mkdir(mode=0o700)
        try:
            cpu_time = self._limits.cpu_of(call.size)
            worker.connection.send((call.function, directory, cpu_time.total_seconds() if cpu_time else None, call.args))
        except (BrokenPipeError, ConnectionResetError):
            directory.rmdir()
            return False
        worker.call, worker.directory, worker.started = call, directory, self._clock()
        worker.deadline = worker.started + (call.timeout or self._limits.wall_of(call.size)).total_seconds()
        worker.tasks += 1
        return True

    def _has_grown(self, worker: _Worker[K]) -> bool:
        return worker.tasks > 0 and _resident(worker.process.pid) - worker.resident > self._limits.growth_bytes

    def _collect(self) -> list[Finished[K]]:
        """Wait until something happens; the calls that ended."""
        watched = {worker.connection: worker for worker in self._workers if worker.call is not None or not worker.ready}
        nearest = min((worker.deadline for worker in watched.values()), default=self._clock())
        readable = wait(list(watched), max(0.0, nearest - self._clock()))
        ended: list[Finished[K]] = []
        for worker in watched.values():
            if worker.connection in readable:
                finished = self._receive(worker)
            elif self._clock() >= worker.deadline:
                finished = self._overdue(worker)
            else:
                continue
            if finished is not None:
                ended.append(finished)
        return ended

    def _receive(self, worker: _Worker[K]) -> Finished[K] | None:
        try:
            kind, value = worker.connection.recv()
        except (EOFError, ConnectionResetError):
            return self._died(worker)
        if kind == "ready":
            worker.ready = True
            worker.resident = _resident(worker.process.pid)
            return None
        finished = self._finish(worker, Ending(kind), value=value if kind == "returned" else None, causes=value if kind == "raised" else ())
        worker.call = worker.directory = None
        if kind == "raised":
            # What raised may have left the heap full or a library in a strange state.
            self._discard(worker)
        return finished

    def _overdue(self, worker: _Worker[K]) -> Finished[K]:
        if worker.call is None:
            self._discard(worker)
            raise SystemFault(f"a worker was not ready within {START_SECONDS:.0f} s; is the machine overloaded, or its disk very slow?")
        finished = self._finish(worker, Ending.TIMED_OUT)
        self._discard(worker, keep_directory=True)
        return finished

    def _died(self, worker: _Worker[K]) -> Finished[K]:
        self._kill(worker)
        exit_code = worker.process.wait()
        stderr = _tail(worker.stderr)
        if worker.call is None:
            self._discard(worker)
            megabytes = self._limits.memory_bytes // 2**20
            last = stderr.strip().splitlines()[-1:] or [f"exit code {exit_code}"]
            raise SystemFault(
                f"a worker could not start with {megabytes} MB of address space: {last[0]}; "
                f"raise {self._limits.settings}_MEMORY_MB, or mend the installation",
            )
        finished = self._finish(worker, Ending.DIED, exit_code=exit_code, stderr=stderr)
        self._discard(worker, keep_directory=True)
        return finished

    def _finish(self, worker: _Worker[K], ending: Ending, **more: Any) -> Finished[K]:
        assert worker.call is not None
        assert worker.directory is not None
        return Finished(worker.call.key, ending, self._clock() - worker.started, worker.directory, worker.call.size, **more)

    def _start(self) -> _Worker[K]:
        base = self._base()
        stderr = base / f"stderr-{next(self._numbers)}"
        ours, theirs = socketpair()
        environment = {**os.environ, **CHILD_ENVIRONMENT, "PATH": str(base / "bin"), "TMPDIR": str(base)}
        environment["PYTHONPATH"] = os.pathsep.join(entry or os.getcwd() for entry in sys.path)  # noqa: PTH109 - a string is wanted
        environment.pop("DOCLING_LIBREOFFICE_CMD", None)
        arguments = (str(theirs.fileno()), str(os.getpid()), str(self._limits.memory_bytes), self._prepare)

        def launch() -> subprocess.Popen[bytes]:
            with stderr.open("ab") as errors:
                return subprocess.Popen(
                    # -P: what lies in the working directory is never imported.
                    [sys.executable, "-P", "-m", "primer_resources.worker_main", *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                    cwd=base,
                    env=environment,
                    pass_fds=(theirs.fileno(),),
                    process_group=0,
                )

        # The kernel ties a child's life to the *thread* that started it, so all are started from one that lives until `close`.
        if self._starter is None:
            self._starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="primer-worker-starter")
        with theirs:
            process = self._starter.submit(launch).result()
        if self._limits.nice:
            psutil.Process(process.pid).nice(self._limits.nice)
        return _Worker(process, Connection(ours.detach()), stderr, deadline=self._clock() + START_SECONDS)

    def _discard(self, worker: _Worker[K], keep_directory: bool = False) -> None:
        self._kill(worker)
        worker.process.wait()
        worker.connection.close()
        worker.stderr.unlink(missing_ok=True)
        if worker.directory is not None and not keep_directory:
            shutil.rmtree(worker.directory, ignore_errors=True)
        if worker in self._workers:
            self._workers.remove(worker)

    @staticmethod
    def _kill(worker: _Worker[K]) -> None:
        """Kill the worker and whatever it started: it leads its own process group. Done before it is reaped, so the id is still its own."""
        if worker.process.returncode is None:
            try:
                os.killpg(worker.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                worker.process.kill()

    def _base(self) -> Path:
        """The pool's own folder, made at first use."""
        if self._scratch is None:
            self._scratch = Scratch()
            (self._scratch.path / "bin").mkdir()
            for program in self._programs:
                found = shutil.which(program)
                if found:
                    (self._scratch.path / "bin" / program).symlink_to(found)
        return self._scratch.path


def _resident(pid: int) -> int:
    """Resident bytes of a process; 0 for one that is gone."""
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0


def _tail(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - STDERR_TAIL))
        return file.read().decode("utf-8", "replace")
