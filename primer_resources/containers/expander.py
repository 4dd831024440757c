"""Opens containers in workers that can be killed. Light: what takes a container apart is imported in the workers only."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

from primer_core.failures import DocumentFault, Reason
from primer_core.routing import CONTAINERS, Sniffed
from primer_resources.containers.manifest import Member, Unpacked, read_manifest
from primer_resources.worker_faults import fault_of
from primer_resources.workers import Call, WorkerPool


class Expander:
    """Takes mails and archives apart."""

    def __init__(self, open_pool: Callable[[], WorkerPool[Any]], max_file_mb: int) -> None:
        """`open_pool` gives the workers; it is asked at the first container, since most sources have none."""
        self._open_pool = open_pool
        self._max_bytes = max_file_mb * 2**20

    def opens(self, sniffed: Sniffed) -> bool:
        """Whether a file may have members."""
        return sniffed.mime in CONTAINERS

    def expand(self, path: Path, name: str) -> Iterator[Member]:
        """The members of the container at `path`, those of containers in it as well. A member's file lasts until the next one is asked for.

        Raises DocumentFault where it cannot be taken apart, SystemFault where the surroundings fail.
        """
        call = Call(name, unpack_in_worker, (path.absolute(), name, self._max_bytes), path.stat().st_size)
        pool = self._open_pool()
        for finished in pool.run([call]):
            fault = fault_of(finished, name, pool.limits)
            answer = cast(Unpacked, finished.value)
            if fault is None and answer.reason is not None:
                fault = DocumentFault(Reason(answer.reason), answer.message)
            if fault is not None:
                raise fault
            yield from read_manifest(finished.directory)


def unpack_in_worker(directory: Path, path: Path, name: str, max_bytes: int) -> Unpacked:
    """The task. The import is here so that the parent, which sends this function by name, imports no reader of hostile files."""
    from primer_resources.containers.unpack import unpack

    return unpack(directory, path, name, max_bytes)
