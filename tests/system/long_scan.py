"""A process that reads one very long scan: `primer sync scans`, whose slow worker renders pages at 300 dpi until the test lets it end.

Run as `python -m tests.system.long_scan GATE`. Only the end of the reading is the test's: the worker, its pool, the run, the leases and
all that follows are the real ones.
"""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import timedelta
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any

import pypdfium2

from primer.workspace import open_workspace
from primer_core.recipe import ParserSpec
from primer_resources.catalog.deployments import IndexVersion
from primer_resources.containers.expander import Expander
from primer_resources.parser.base import ParseOutcome, Parser, ParseRequest
from primer_resources.toolkit import Toolkit, Tools
from primer_resources.workers import Call, WorkerPool
from tests.deployment import Deployment

OCR_SCALE = 300 / 72
PATIENCE = timedelta(minutes=10)


def begun(gate: Path) -> Path:
    """The file that says that a worker is at work."""
    return gate.with_suffix(".begun")


def render_until(_directory: Path, path: Path, gate: Path, most: float) -> int:
    """What OCR does before it reads, over and over, until the gate is there or enough is done. Returns how many pages were rendered."""
    rendered = 0
    with pypdfium2.PdfDocument(path) as pdf:
        while rendered < most and not gate.exists():
            pdf[rendered % len(pdf)].render(scale=OCR_SCALE).close()
            rendered += 1
    return rendered


class LongScan:
    """A slow parser that first keeps a worker of its pool at work until the gate opens."""

    def __init__(self, parser: Parser, pool: WorkerPool[Any], gate: Path) -> None:
        self._parser = parser
        self._pool = pool
        self._gate = gate

    @property
    def spec(self) -> ParserSpec:
        return self._parser.spec

    def parse_many(self, requests: Iterable[ParseRequest]) -> Iterator[ParseOutcome]:
        for request in requests:
            self._render(request, most=1)
            begun(self._gate).touch()  # by this process, once the worker is warm: a worker may write nowhere but in its own folder
            self._render(request, most=inf)
            yield from self._parser.parse_many([request])

    def _render(self, request: ParseRequest, most: float) -> None:
        for finished in self._pool.run([Call(request, render_until, (request.path.absolute(), self._gate, most), timeout=PATIENCE)]):
            assert finished.value, finished


class LongScanToolkit(Toolkit):
    """The toolkit of a workspace, its slow parser a LongScan."""

    def __init__(self, toolkit: Toolkit, gate: Path) -> None:
        self._toolkit = toolkit
        self._gate = gate

    @cached_property
    def expander(self) -> Expander:
        return self._toolkit.expander

    def of(self, version: IndexVersion) -> Tools:
        tools = self._toolkit.of(version)
        return replace(tools, slow_parser=LongScan(tools.slow_parser, self._toolkit.slow_pool, self._gate))


def main(gate: Path) -> None:
    """Sync the source `scans`, which holds one scan."""
    with open_workspace() as workspace:
        scans = workspace.catalog.sources.get("scans")
        place = Deployment(workspace, Path(str(scans.settings["root"])), "scans")
        assert place.sync(toolkit=LongScanToolkit(workspace.toolkit, gate)).counts["indexed"] == 1


if __name__ == "__main__":
    from tests.system import long_scan  # a worker finds the task by the module's name, which is not __main__

    long_scan.main(Path(sys.argv[1]))
