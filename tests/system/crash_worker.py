"""A process that does what `primer sync` does, through the real Dagster assets, and stops itself at a boundary when told to.

Forked from a server that has Dagster loaded and neither Primer nor LanceDB, so that a new process costs little. A worker never needs the
model: the tests put every vector into the embedding cache beforehand.
"""

import multiprocessing
import os
import signal
import warnings
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

import psutil

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from primer_resources.catalog.sources import Source
    from primer_resources.connectors.base import ChangePage, Connector, Cursor, Fetched, ListedItem, Listing
    from primer_resources.connectors.registry import Connectors

DEADLINE_S = 120.0
"""Longer than any one sync takes on a busy machine."""
LISTING = "listing"
"""A boundary of our own: the source is taken and not listed yet."""
FEED = "feed"
"""Another: a piece of the change feed was read, and nothing of it is settled."""
FETCH = "fetch"
"""And another: a document's bytes were copied."""

FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(
    ["dagster", "sqlalchemy", "alembic", "pydantic_settings", "pyarrow.dataset", "lance_namespace", "pandas", __name__]
)
"""Nothing of Primer: its partitions are fixed by the environment when it is loaded. Nothing that starts threads that do work."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Where a worker sends itself a signal: at the `hit`-th time that it comes to the boundary."""

    boundary: str
    hit: int = 1
    signal: int = signal.SIGKILL


@dataclass(frozen=True, slots=True)
class Order:
    """What to do next: sync the sources to the end, or else one sweep over all buckets, or, with `purge`, one purge of bodies. `stop` is
    where to stop on the way."""

    sync: bool = True
    purge: bool = False
    stop: Stop | None = None


@dataclass(slots=True)
class Trap:
    """The checkpoint of the assets."""

    stop: Stop | None = None
    hits: int = 0

    def __call__(self, boundary: str) -> None:
        """Called at each boundary."""
        if self.stop is None or boundary != self.stop.boundary:
            return
        self.hits += 1
        if self.hits == self.stop.hit:
            os.kill(os.getpid(), self.stop.signal)


def work(environment: Mapping[str, str], orders: Connection) -> None:
    """Do orders until None comes. Answers each with None, or with the words of the error that ended it."""
    warnings.filterwarnings("ignore")
    os.environ.update(environment)
    import dagster as dg

    from primer.materialise import Materialiser
    from primer.workspace import FIRST_VERSION, Workspace
    from primer_core.buckets import bucket_names
    from primer_core.failures import PrimerError
    from primer_resources.settings import load_settings
    from primer_sensors.sweeps import Sweep

    workspace = Workspace(load_settings())
    workspace.add_partitions()
    trap = Trap()
    overrides = {
        "settings": workspace.settings,
        "catalog": workspace.catalog,
        "store": workspace.store,
        "toolkit": workspace.toolkit,
        "connectors": _stopping_connectors(trap, workspace.settings.home),
        "checkpoint": dg.ResourceDefinition.hardcoded_resource(trap),
    }
    materialiser = Materialiser(workspace.instance, overrides)
    buckets = bucket_names(workspace.settings.buckets)
    for order in iter(orders.recv, None):
        trap.stop, trap.hits, notes = order.stop, 0, None
        try:
            if order.purge:
                materialiser.purge()
            elif order.sync:
                notes = _sync(workspace, materialiser)
            else:
                materialiser.sweep(Sweep(FIRST_VERSION, buckets[0], buckets[-1]))
        except PrimerError as error:
            notes = f"{type(error).__name__}: {error}"
        orders.send(notes)
    workspace.close()


def _sync(workspace: Any, materialiser: Any) -> str | None:
    from primer.syncing import Syncing

    syncing = Syncing(workspace.catalog, workspace.settings, materialiser, lambda _words, _done, _total: None)
    results = syncing.run([source.source_id for source in workspace.catalog.sources.all()])
    return "; ".join(note for result in results for note in result.notes) or None


def _stopping_connectors(trap: Trap, home: "Path") -> "Connectors":
    from primer_resources.connectors.registry import Connectors

    class StoppingConnectors(Connectors):
        """The real connectors; a listing begins with a boundary, a piece of a feed and a fetch end with one."""

        def open(self, source: "Source") -> "Connector":
            connector = super().open(source)
            listing, changes, fetch = connector.list, connector.changes, connector.fetch

            def stopping(cursor: "Cursor | None" = None) -> "Listing":
                trap(LISTING)
                return listing(cursor)

            def feeding(cursor: "Cursor") -> "ChangePage | None":
                page = changes(cursor)
                trap(FEED)
                return page

            def fetching(item: "ListedItem", target: "Path") -> "Fetched":
                fetched = fetch(item, target)
                trap(FETCH)
                return fetched

            for name, method in (("list", stopping), ("changes", feeding), ("fetch", fetching)):
                setattr(connector, name, method)
            return connector

    return StoppingConnectors(home)


class Worker:
    """A worker as the test sees it. Ends its process, and no other, when the test is over."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._orders, theirs = FORKED.Pipe()
        self.process = FORKED.Process(target=work, args=(environment, theirs), daemon=True)
        self.process.start()
        theirs.close()

    @property
    def pid(self) -> int:
        """The process."""
        assert self.process.pid is not None
        return self.process.pid

    def start(self, order: Order) -> None:
        """Give an order and come back at once."""
        self._orders.send(order)

    def is_done(self, within: float) -> bool:
        """Whether the order is done, or the process at its end, after at most so many seconds."""
        return self._orders.poll(within)

    def result(self) -> str | None:
        """Wait for the order to be done: None, or what its notes or its error say. Raises AssertionError where it does not end."""
        if not self._orders.poll(DEADLINE_S):
            raise AssertionError(f"worker {self.pid} did not finish within {DEADLINE_S:.0f} s")
        try:
            result: str | None = self._orders.recv()
        except (EOFError, ConnectionResetError):
            self.process.join(DEADLINE_S)
            raise AssertionError(f"worker {self.pid} died with exit code {self.process.exitcode}") from None
        return result

    def do(self, order: Order) -> str | None:
        """Give an order and wait for its end."""
        self.start(order)
        return self.result()

    def wait_for_kill(self) -> None:
        """Wait until the process has died of SIGKILL."""
        self.process.join(DEADLINE_S)
        if self.process.exitcode != -signal.SIGKILL:
            said = self._orders.recv() if self._orders.poll(0) else ""
            raise AssertionError(f"worker {self.pid} was to be killed, exit code {self.process.exitcode} {said}")

    def wait_for_stop(self) -> None:
        """Wait until the process has stopped itself."""
        process = psutil.Process(self.pid)
        for _ in range(round(DEADLINE_S * 20)):
            if process.status() == psutil.STATUS_STOPPED:
                return
            if self.is_done(0.05):
                raise AssertionError(f"worker {self.pid} was to stop and ended: {self.result()}")
        raise AssertionError(f"worker {self.pid} did not stop within {DEADLINE_S:.0f} s")

    def resume(self) -> None:
        """Let a stopped process go on."""
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """Kill the process now."""
        if self.process.is_alive():
            os.kill(self.pid, signal.SIGKILL)
        self.process.join(DEADLINE_S)

    def close(self) -> None:
        """End the process in good order where it still lives and listens, else kill it."""
        if self.process.is_alive() and psutil.Process(self.pid).status() != psutil.STATUS_STOPPED:
            self._orders.send(None)
            self.process.join(DEADLINE_S)
        self.kill()


@contextmanager
def working(environment: Mapping[str, str]) -> "Iterator[Worker]":
    """A worker for the length of a block."""
    worker = Worker(environment)
    try:
        yield worker
    finally:
        worker.kill()
