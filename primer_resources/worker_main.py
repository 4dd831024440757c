"""The child side of the worker pool: limits itself, makes ready, then does one task after another.

Run as `python -m primer_resources.worker_main FD PARENT_PID MEMORY_BYTES PREPARE`. Nothing else belongs here: what a task does is
the business of the function that is sent.
"""

import ctypes
import math
import os
import pickle
import resource
import signal
import sys
import tempfile
import warnings
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from primer_resources.memory import give_back_memory
from primer_resources.worker_guard import Guard

PR_SET_PDEATHSIG = 1
"""From <linux/prctl.h>: the signal that the kernel sends when the thread that started this process ends."""

MAX_CAUSES = 8
"""Links of an exception's chain that are told to the parent."""


def die_with_parent(parent_pid: int) -> None:
    """Have the kernel kill this process when its parent is gone, however the parent died.

    The parent may have died before the request was made; then the parent is somebody else by now.
    Other systems than Linux have no such call: there a worker ends at its next read, when the socket is closed.
    """
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent_pid:
        os._exit(1)


def limit_memory(memory_bytes: int) -> None:
    """Bound the address space, so that a greedy document gets MemoryError and not the machine, and write no core files."""
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def limit_cpu(seconds: float | None) -> None:
    """Let this process use so many more CPU seconds; then the kernel ends it with SIGXCPU, also where Python never runs again.

    Only the soft limit moves: a hard one could not be raised for the next task. What the process starts inherits the figure and begins
    at zero, so a child may use at least as much.
    """
    if seconds is None:
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    whole = math.ceil(used.ru_utime + used.ru_stime + seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (whole, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def describe(error: BaseException) -> tuple[tuple[str, str], ...]:
    """An exception's chain, outermost first, as (type name, text): safe to send, whatever the exception holds."""
    chain: list[tuple[str, str]] = []
    link: BaseException | None = error
    while link is not None and len(chain) < MAX_CAUSES:
        text = os.strerror(link.errno) if isinstance(link, OSError) and link.errno else str(link)
        chain.append((_kind(link), text[:2000]))
        link = link.__cause__ or link.__context__
    return tuple(chain)


def _kind(error: BaseException) -> str:
    """The type's name; for an OSError the symbol of its errno too, which tells a full disk from a bad file."""
    name = type(error).__name__
    return f"{name}:{error.errno}" if isinstance(error, OSError) and error.errno else name


def serve(connection: Connection, guard: Guard) -> None:
    """Do tasks until the parent closes the socket."""
    while True:
        try:
            message = connection.recv_bytes()
        except EOFError:
            return
        os.ftruncate(sys.stderr.fileno(), 0)
        answer = _answer(message, guard)
        # Before the parent looks at what stays resident.
        give_back_memory()
        connection.send(answer)


def _answer(message: bytes, guard: Guard) -> tuple[str, Any]:
    try:
        function, directory, cpu_seconds, args = pickle.loads(message)
        guard.enter(directory)
        limit_cpu(cpu_seconds)
        os.environ["TMPDIR"] = str(directory)
        tempfile.tempdir = str(directory)
        return "returned", function(directory, *args)
    except Exception as error:  # noqa: BLE001 - the edge of the process: whatever a task raises is told to the parent, which judges it
        return "raised", describe(error)


def main(arguments: list[str]) -> None:
    """Entry point. `arguments` are the socket's descriptor, the parent's pid, the address space in bytes and "module:function"
    of what to call once before the first task ("" for nothing)."""
    descriptor, parent_pid, memory_bytes, prepare = arguments
    die_with_parent(int(parent_pid))
    limit_memory(int(memory_bytes))
    # A library's complaints about a document are no news to whoever reads the run's log; a fault tells what matters.
    warnings.simplefilter("ignore")
    os.set_inheritable(int(descriptor), False)
    # The descriptor itself is left for the kernel to close: the parent then reads the end only when the exit code stands
    # and the last words are written, so its clearing up cannot change either.
    connection = Connection(os.dup(int(descriptor)))
    if prepare:
        module, _, function = prepare.partition(":")
        getattr(import_module(module), function)()
    guard = Guard(Path(os.environ["PATH"]))
    guard.install()
    connection.send(("ready", None))
    serve(connection, guard)


if __name__ == "__main__":
    main(sys.argv[1:])
