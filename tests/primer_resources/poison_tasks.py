"""Tasks for worker tests, good and bad. Imported by name in the workers, so this file stands on its own."""

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

HOARD: list[bytearray] = []


def double(directory: Path, number: int) -> int:
    return 2 * number


def slowly(directory: Path, number: int) -> int:
    time.sleep(0.2)
    return number


def my_pid(directory: Path) -> int:
    return os.getpid()


def litter(directory: Path) -> str:
    """Leave temporary files behind, as libraries do; say where they went."""
    handle, name = tempfile.mkstemp()
    os.write(handle, b"x" * 1000)
    Path(tempfile.mkdtemp(), "more").write_text("words")
    return name


def surroundings(directory: Path) -> dict[str, str | None]:
    found = {name: shutil.which(name) for name in ("sh", "soffice", "libreoffice", "tesseract")}
    return {**found, **{name: os.environ.get(name) for name in ("OMP_THREAD_LIMIT", "OMP_NUM_THREADS", "TMPDIR", "HF_HUB_OFFLINE")}}


def hang_in_c(directory: Path) -> None:
    """Never comes back, and Python's signal handlers never run."""
    ctypes.CDLL(None).sleep(1_000)


def hang_holding_the_lock(directory: Path) -> None:
    """The same with the interpreter lock held, so that no other thread of the worker runs either."""
    ctypes.PyDLL(None).sleep(1_000)


def leave(directory: Path, code: int) -> None:
    os._exit(code)


def crash(directory: Path) -> None:
    ctypes.string_at(0)


def be_killed(directory: Path) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def eat_memory(directory: Path) -> int:
    return len([bytearray(64 * 2**20) for _ in range(1_000)])


def abort_like_cplusplus(directory: Path) -> None:
    os.write(2, b"terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\n")
    os.abort()


def fill_the_disk(directory: Path) -> None:
    raise OSError(28, "No space left on device", str(directory))


def complain(directory: Path, message: str) -> None:
    try:
        raise KeyError("inner")
    except KeyError as error:
        raise ValueError(message) from error


def start_a_child_and_hang(directory: Path) -> None:
    child = subprocess.Popen(["sleep", "1000"])
    (directory / "pid").write_text(str(child.pid))
    time.sleep(1_000)


def spin(directory: Path) -> None:
    """An endless loop that no other thread of the worker can interrupt."""
    while True:
        pass


def burn(directory: Path, seconds: float) -> None:
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def doze(directory: Path, seconds: float) -> None:
    time.sleep(seconds)


def hoard(directory: Path, megabytes: int) -> int:
    """Leave memory behind, as a leaking converter does."""
    HOARD.append(bytearray(os.urandom(2**20) * megabytes))
    return os.getpid()


def misbehave(directory: Path, outside: Path) -> dict[str, str]:
    """Try what a parse must not do; what became of each try."""
    tries: dict[str, Callable[[], object]] = {
        "socket": socket.socket,
        "look up": lambda: socket.getaddrinfo("localhost", 80),
        "url": lambda: urllib.request.urlopen("http://127.0.0.1:9/"),
        "program": lambda: subprocess.run([sys.executable, "--version"]),
        "shell": lambda: os.system("true"),
        "fork": os.fork,
        "write": lambda: outside.write_text("x"),
        "write by way of": lambda: (directory / ".." / ".." / "x").write_text("x"),
        "write through a link": lambda: _through_a_link(directory, outside),
        "append": lambda: (outside.parent / "kept").open("a"),
        "make": lambda: (outside.parent / "made").mkdir(),
        "remove": lambda: (outside.parent / "kept").unlink(),
        "remove in an open folder": lambda: os.unlink("kept", dir_fd=os.open(outside.parent, os.O_RDONLY)),
        "move out": lambda: _move_out(directory, outside),
        "read": lambda: (outside.parent / "kept").read_text(),
        "write inside": lambda: (directory / "inside").write_text("x"),
        "clear up inside": lambda: _clear_up(directory),
        "given program": lambda: subprocess.run(["sleep", "0"], check=True),
        "nothing": lambda: Path(os.devnull).write_text("x"),
    }
    ends = {}
    for name, attempt in tries.items():
        try:
            attempt()
            ends[name] = "done"
        except OSError as error:
            ends[name] = type(error.reason if isinstance(error, urllib.error.URLError) else error).__name__
    return ends


def _through_a_link(directory: Path, outside: Path) -> None:
    (directory / "link").symlink_to(outside)
    (directory / "link").write_text("x")


def _move_out(directory: Path, outside: Path) -> None:
    (directory / "goods").write_text("x")
    (directory / "goods").rename(outside)


def _clear_up(directory: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "a").mkdir()
        Path(folder, "a", "b").write_text("x")


def cannot_start() -> None:
    raise RuntimeError("no models on this machine")


def hang_in_tesseract(directory: Path) -> None:
    """Start a real Tesseract on a pipe that never gets a picture, and wait for it."""
    pipe = directory / "never.png"
    os.mkfifo(pipe)
    subprocess.run(["tesseract", str(pipe), "stdout"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
