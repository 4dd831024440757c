"""Whose fault a worker's end is: the document's, with a reason, or the surroundings'. For every task that reads a document."""

import re
import signal
from datetime import timedelta
from typing import Any

from primer_core.failures import SYSTEM_ERRNOS, DocumentFault, Reason, SystemFault
from primer_resources.workers import Ending, Finished, WorkerLimits

MESSAGE_CHARACTERS = 300
"""Of a library's error: validation errors run over pages."""

_OUT_OF_MEMORY = re.compile(r"bad_alloc|MemoryError|[Cc]annot allocate memory|out of memory|std::length_error")

_OURS = frozenset({"ImportError", "ModuleNotFoundError", "LocalEntryNotFoundError", "SystemFault"})
"""A broken installation, whatever the document."""


def fault_of(finished: Finished[Any], name: str, limits: WorkerLimits) -> DocumentFault | None:
    """The fault of the document `name`; None where the task returned. Raises SystemFault where the surroundings are to blame."""
    match finished.ending:
        case Ending.RETURNED:
            return None
        case Ending.TIMED_OUT:
            allowed = timedelta(seconds=round(finished.seconds, 1))
            return _overdue(name, "was not finished within", allowed, f"{limits.settings}_TIMEOUT")
        case Ending.DIED:
            return _death(finished, name, limits)
        case Ending.RAISED:
            return _raised(finished, name, limits)


def _overdue(name: str, what: str, allowed: timedelta, setting: str) -> DocumentFault:
    return DocumentFault(Reason.PARSE_TIMEOUT, f"{name} {what} {allowed.total_seconds():g} s; raise {setting}, or simplify the file")


def _memory(name: str, limits: WorkerLimits) -> DocumentFault:
    megabytes = limits.memory_bytes // 2**20
    return DocumentFault(
        Reason.PARSE_MEMORY,
        f"{name} needs more than the {megabytes} MB a parse worker has; raise {limits.settings}_MEMORY_MB, or split the file",
    )


def _death(finished: Finished[Any], name: str, limits: WorkerLimits) -> DocumentFault:
    code = finished.exit_code or 0
    allowed = limits.cpu_of(finished.size)
    if code == -signal.SIGXCPU and allowed is not None:
        return _overdue(name, "took more of the processor's time than", allowed, f"{limits.settings}_CPU_TIME")
    # Nobody but the kernel's out-of-memory killer sends SIGKILL here: our own kills are time-outs.
    if code == -signal.SIGKILL or _OUT_OF_MEMORY.search(finished.stderr):
        return _memory(name, limits)
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    last = finished.stderr.strip().splitlines()[-1:]
    return DocumentFault(Reason.PARSE_CRASH, f"the worker died on {name} ({how}{': ' + last[0] if last else ''})")


def _raised(finished: Finished[Any], name: str, limits: WorkerLimits) -> DocumentFault:
    for kind, text in finished.causes:
        type_name, _, number = kind.partition(":")
        if type_name in _OURS or (number and int(number) in SYSTEM_ERRNOS):
            raise SystemFault(f"reading {name} failed through no fault of its own: {type_name}: {text}")
    if any(kind == "MemoryError" or _OUT_OF_MEMORY.search(text) for kind, text in finished.causes):
        return _memory(name, limits)
    kind, text = finished.causes[-1]
    shown = " ".join(text.split())[:MESSAGE_CHARACTERS]
    return DocumentFault(Reason.CORRUPT, f"{name} cannot be read: {kind}: {shown}; open and save it again")
