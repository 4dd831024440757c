"""What a parse costs: the CPU seconds of the worker and of what it starts, without the parser knowing."""

import resource
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from primer_resources.workers import Call, Finished, WorkerPool

_CPU_FILE = "cpu-seconds"


class MeteredPool(WorkerPool[Any]):
    """A worker pool that keeps what each call cost until it is asked."""

    def __init__(self, *args: Any, **options: Any) -> None:
        """As WorkerPool."""
        super().__init__(*args, **options)
        self._spent: dict[Any, float] = {}

    def run(self, calls: Iterable[Call[Any]]) -> Iterator[Finished[Any]]:
        """As WorkerPool.run. Keys must be hashable."""
        metered = (replace(call, function=metered_task, args=(call.function, *call.args)) for call in calls)
        for finished in super().run(metered):
            file = finished.directory / _CPU_FILE
            if file.exists():
                self._spent[finished.key] = float(file.read_text())
            yield finished

    def spent(self, key: Any) -> float | None:
        """CPU seconds of the call with this key, told once; None where its worker was killed."""
        return self._spent.pop(key, None)


def metered_task(directory: Path, function: Callable[..., Any], *args: Any) -> Any:
    """The task, in the worker: do another one and write down what it cost."""
    before = _cpu_seconds()
    try:
        return function(directory, *args)
    finally:
        (directory / _CPU_FILE).write_text(repr(_cpu_seconds() - before))


def _cpu_seconds() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in used)
