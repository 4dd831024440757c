"""The heartbeat: holds a worker's leases while it works."""

from collections.abc import Callable
from datetime import timedelta
from threading import Event, Thread
from types import TracebackType

from primer_core.failures import SystemFault

BEATS_A_LEASE = 3
"""Renewals a lease: two may be missed before it runs out."""


class Heartbeat:
    """While it is entered, calls every renewal at a third of the lease, in a thread of its own; and once more at the end, so that
    the next step, which begins some time later, finds a whole lease.

    A renewal that fails is tried again at the next beat: if the lease is lost meanwhile, the guard of the next transition says so.
    """

    def __init__(self, lease: timedelta, *renewals: Callable[[], object]) -> None:
        self._pause = lease.total_seconds() / BEATS_A_LEASE
        self._renewals = renewals
        self._stopped = Event()
        self._thread = Thread(target=self._beat, name="heartbeat", daemon=True)

    def _beat(self) -> None:
        while not self._stopped.wait(self._pause):
            self._renew()

    def _renew(self) -> None:
        for renew in self._renewals:
            try:
                renew()
            except SystemFault:
                continue

    def __enter__(self) -> "Heartbeat":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stopped.set()
        self._thread.join()
        self._renew()
