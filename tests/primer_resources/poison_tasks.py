"""Tasks for worker tests, good and bad. Imported by name in the workers, so this file stands on its own."""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path


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


def start_a_child_and_hang(directory: Path, pid_file: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
    pid_file.write_text(str(child.pid))
    time.sleep(1_000)


def cannot_start() -> None:
    raise RuntimeError("no models on this machine")


def hang_in_tesseract(directory: Path, told: Path) -> None:
    """Start a real Tesseract on a pipe that never gets a picture, and wait for it."""
    pipe = directory / "never.png"
    os.mkfifo(pipe)
    with subprocess.Popen(["tesseract", str(pipe), "stdout"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        told.write_text(str(child.pid))
        child.wait()
