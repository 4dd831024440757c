"""Long work that Ctrl-C and SIGTERM end within seconds, in good order.

The work runs in a thread of its own and the main thread does nothing but wait, since a signal's handler runs in the main thread wherever
that stands: in the middle of an import of a native library an exception from a handler is swallowed, or kills the process.
"""

import os
import signal
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import NoReturn, TypeVar

T = TypeVar("T")

SIGNALS = (signal.SIGINT, signal.SIGTERM)
ENDED = 0
"""Told in the place of a signal's number."""


def run_interruptibly(work: Callable[[], T], on_signal: Callable[[], None], message: str) -> T:
    """Do the work and return what it returns; raises what it raises.

    At a signal: call `on_signal` (which gives back what the work holds), print `message`, and leave the process with exit code
    128 + signal. The work is left where it stands, as if the machine had lost power, so it must be safe against that. A second signal
    does not wait for `on_signal`. A signal that was ignored when the process began stays ignored.
    """
    events: SimpleQueue[int] = SimpleQueue()
    handled = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, lambda received, _frame: events.put(received)) for number in handled}
    try:
        future = ThreadPoolExecutor(max_workers=1, thread_name_prefix="work").submit(work)
        future.add_done_callback(lambda _future: events.put(ENDED))
        received = events.get()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if received != ENDED:
        _leave(received, on_signal, message)
    return future.result()


def _leave(received: int, on_signal: Callable[[], None], message: str) -> NoReturn:
    exit_code = 128 + received
    for number in SIGNALS:
        signal.signal(number, lambda *_: os._exit(exit_code))
    try:
        on_signal()
    finally:
        sys.stdout.flush()
        sys.stderr.write(f"primer: {message}\n")
        sys.stderr.flush()
        os._exit(exit_code)
