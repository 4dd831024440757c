"""Processes that do the same at the same moment: create the same keys of a drive, or keep the same contents in a store."""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from threading import BrokenBarrierError
from typing import Any

from primer_core.drives import DriveSpec
from primer_resources.document_store.opening import open_drive

RACERS = 8
WAIT_S = 120
_gate: Any = None


def _prepare(gate: Any) -> None:
    global _gate
    _gate = gate


def start_together() -> None:
    """Wait until all racers are here."""
    try:
        _gate.wait(WAIT_S)
    except BrokenBarrierError as error:
        raise RuntimeError("a racer did not come to the start") from error


def _race(spec: DriveSpec, number: int, keys: list[str]) -> list[str]:
    """The keys that this process won, each with its number in it."""
    drive = open_drive(spec, Path("/"))
    start_together()
    return [key for key in keys if drive.create(key, b"%d" % number)]


@contextmanager
def racers() -> Iterator[ProcessPoolExecutor]:
    """A pool of as many processes as race, which may race many times."""
    context = get_context("spawn")
    with ProcessPoolExecutor(RACERS, context, _prepare, (context.Barrier(RACERS),)) as pool:
        yield pool


def race(pool: ProcessPoolExecutor, spec: DriveSpec, keys: list[str]) -> dict[int, list[str]]:
    """Racer → the keys that it won."""
    running = [pool.submit(_race, spec, number, keys) for number in range(RACERS)]
    return {number: each.result() for number, each in enumerate(running)}
