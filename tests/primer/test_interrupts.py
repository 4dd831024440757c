"""A signal ends long work within seconds, with one line, the right exit code, and what the work held given back."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from primer.interrupts import run_interruptibly

PATIENCE_S = 60

WORK = """
import signal, sys, time
from pathlib import Path
from primer.interrupts import run_interruptibly
if "ignore" in sys.argv:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
def work():
    print("at work", flush=True)
    if sys.argv[1] == "short":
        Path(sys.argv[2]).open().read()
        return "done"
    while True:
        try:
            time.sleep(1000)
        except BaseException:
            pass
def give_back():
    print("given back", flush=True)
    if sys.argv[1] == "stuck":
        time.sleep(1000)
print(run_interruptibly(work, give_back, "stopped"))
"""


@contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A process at work, that does not outlive the test whatever comes of it."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", WORK, *arguments]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "at work\n"
            yield process
        finally:
            process.kill()


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    place = tmp_path / "pipe"
    os.mkfifo(place)
    return place


def test_what_the_work_returns_or_raises_comes_through() -> None:
    assert run_interruptibly(lambda: 3, lambda: None, "stopped") == 3
    with pytest.raises(ZeroDivisionError):
        run_interruptibly(lambda: 1 / 0, lambda: None, "stopped")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_work_that_swallows_every_exception(number: signal.Signals) -> None:
    with started("endless") as process:
        process.send_signal(number)
        out, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out, errors) == (128 + number, "given back\n", "primer: stopped\n")


def test_a_second_signal_does_not_wait_for_what_is_given_back() -> None:
    with started("stuck") as process:
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        assert process.stdout.readline() == "given back\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 128 + signal.SIGINT


def test_a_signal_that_was_ignored_at_the_start_stays_ignored(pipe: Path) -> None:
    with started("short", str(pipe), "ignore") as process:
        process.send_signal(signal.SIGINT)
        pipe.write_text("go")
        out, _ = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out) == (0, "done\n")
