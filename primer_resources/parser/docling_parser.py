"""The parser: Docling in worker processes. Light: Docling itself is imported in the workers only."""

import errno
import re
import signal
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import cast

from primer_core.failures import DocumentFault, Reason, SystemFault
from primer_core.recipe import ParserSpec
from primer_resources.parser.answer import Answer, read_result
from primer_resources.parser.base import ParseOutcome, ParseRequest
from primer_resources.parser.version import parser_spec
from primer_resources.settings import Settings
from primer_resources.workers import Call, Ending, Finished, WorkerLimits, WorkerPool

_OUT_OF_MEMORY = re.compile(r"bad_alloc|MemoryError|[Cc]annot allocate memory|out of memory|std::length_error")

_SYSTEM_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.EROFS, errno.EIO})
"""A full or failing disk, no descriptors left: nothing that a document does."""

_OURS = frozenset({"ImportError", "ModuleNotFoundError", "LocalEntryNotFoundError"})
"""A broken installation, whatever the document."""

PROGRAMS: tuple[str, ...] = ()
"""Commands that a parse may start. LibreOffice must not be among them: Docling would call it for drawings, 21 s for a 48 kB file."""


class DoclingParser:
    """Parses with Docling, each document in a child process with limits on time and memory. Children start at the first request."""

    def __init__(self, limits: WorkerLimits, max_file_mb: int, programs: tuple[str, ...] = PROGRAMS) -> None:
        self._limits = limits
        self._max_bytes = max_file_mb * 2**20
        self._pool: WorkerPool[ParseRequest] = WorkerPool(limits, "primer_resources.parser.convert:prepare", programs)

    @classmethod
    def from_settings(cls, settings: Settings) -> "DoclingParser":
        """The parser that the settings describe."""
        limits = WorkerLimits(
            settings.parse_workers, settings.parse_memory_mb * 2**20, settings.parse_worker_documents, settings.parse_timeout
        )
        return cls(limits, settings.max_file_mb)

    @cached_property
    def spec(self) -> ParserSpec:
        """What shapes the output; asked without importing Docling."""
        return parser_spec()

    def parse_many(self, requests: Iterable[ParseRequest]) -> Iterator[ParseOutcome]:
        """Outcomes in the order in which they finish, one a request; requests are read as workers come free.

        A poison document is an outcome, never an exception. Raises SystemFault where the surroundings fail (no disk, no worker).
        """
        for finished in self._pool.run(self._call(request) for request in requests):
            fault = judge(finished, self._limits)
            parsed = None if fault else read_result(finished.directory, cast(Answer, finished.value).pages)
            yield ParseOutcome(finished.key.content_hash, finished.seconds, parsed, fault)

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids of the living workers."""
        return self._pool.pids

    def close(self) -> None:
        """End the child processes and remove their directories."""
        self._pool.close()

    def _call(self, request: ParseRequest) -> Call[ParseRequest]:
        return Call(request, parse_in_worker, (request.path.absolute(), request.name, self._max_bytes))


def parse_in_worker(directory: Path, path: Path, name: str, max_bytes: int) -> Answer:
    """The task. The import is here so that the parent, which sends this function by name, never imports Docling."""
    from primer_resources.parser.convert import parse

    task: Callable[[Path, Path, str, int], Answer] = parse
    return task(directory, path, name, max_bytes)


def judge(finished: Finished[ParseRequest], limits: WorkerLimits) -> DocumentFault | None:
    """Whose fault an end is: None for a parsed document, the document's fault, or SystemFault raised."""
    name = finished.key.name
    match finished.ending:
        case Ending.RETURNED:
            return cast(Answer, finished.value).fault
        case Ending.TIMED_OUT:
            return _timeout(name, limits.timeout)
        case Ending.DIED:
            return _death(name, finished, limits)
        case Ending.RAISED:
            return _raised(name, finished, limits)


def _timeout(name: str, timeout: timedelta) -> DocumentFault:
    return DocumentFault(
        Reason.PARSE_TIMEOUT,
        f"{name} was not parsed within {timeout.total_seconds():g} s; raise PRIMER_PARSE_TIMEOUT, or simplify the file",
    )


def _memory(name: str, limits: WorkerLimits) -> DocumentFault:
    megabytes = limits.memory_bytes // 2**20
    return DocumentFault(
        Reason.PARSE_MEMORY,
        f"{name} needs more than the {megabytes} MB a parse worker has; raise PRIMER_PARSE_MEMORY_MB, or split the file",
    )


def _death(name: str, finished: Finished[ParseRequest], limits: WorkerLimits) -> DocumentFault:
    code = finished.exit_code or 0
    # Nobody but the kernel's out-of-memory killer sends SIGKILL here: our own kills are time-outs.
    if code == -signal.SIGKILL or _OUT_OF_MEMORY.search(finished.stderr):
        return _memory(name, limits)
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    last = finished.stderr.strip().splitlines()[-1:]
    return DocumentFault(Reason.PARSE_CRASH, f"the parser died on {name} ({how}{': ' + last[0] if last else ''})")


def _raised(name: str, finished: Finished[ParseRequest], limits: WorkerLimits) -> DocumentFault:
    for kind, text in finished.causes:
        type_name, _, number = kind.partition(":")
        if type_name in _OURS or (number and int(number) in _SYSTEM_ERRORS):
            raise SystemFault(f"parsing {name} failed through no fault of its own: {type_name}: {text}")
    if any(kind == "MemoryError" or _OUT_OF_MEMORY.search(text) for kind, text in finished.causes):
        return _memory(name, limits)
    kind, text = finished.causes[-1]
    return DocumentFault(Reason.CORRUPT, f"{name} cannot be read: {kind}: {text}; open and save it again")
