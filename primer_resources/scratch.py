"""Scratch folders: private temporary folders that go when their owner does, however the owner ends.

A process that is killed removes nothing. So every scratch folder holds a lock for as long as its process lives, and whoever makes the
next one first removes those whose lock went with their owner.
"""

import os
import shutil
import tempfile
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from types import TracebackType

PREFIX = "primer-scratch-"
_LOCK = "lock"
_OPEN: "set[Scratch]" = set()


class Scratch:
    """A private folder (mode 700) under the system's temporary folder, made at once and removed by `close` or at the end of a `with`."""

    def __init__(self) -> None:
        root = Path(tempfile.gettempdir())
        _sweep(root)
        self._folder = tempfile.TemporaryDirectory(prefix=PREFIX, dir=root, ignore_cleanup_errors=True)
        self.path = Path(self._folder.name)
        # Locked first and named after, so that nobody's sweep meets it unlocked.
        self._lock = os.open(self.path / "lock.new", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        flock(self._lock, LOCK_EX | LOCK_NB)
        (self.path / "lock.new").rename(self.path / _LOCK)
        _OPEN.add(self)

    def close(self) -> None:
        """Remove the folder and all in it."""
        _OPEN.discard(self)
        self._folder.cleanup()
        os.close(self._lock)

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def remove_all() -> None:
    """Remove what this process has in scratch folders, for a process that ends without leaving its work in order."""
    for scratch in list(_OPEN):
        shutil.rmtree(scratch.path, ignore_errors=True)


def _sweep(root: Path) -> None:
    """Remove scratch folders whose owner is dead. One that has no lock yet is just being made."""
    for lock in root.glob(f"{PREFIX}*/{_LOCK}"):
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            continue  # removed meanwhile, or another user's
        try:
            flock(descriptor, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            continue
        else:
            shutil.rmtree(lock.parent, ignore_errors=True)
        finally:
            os.close(descriptor)
