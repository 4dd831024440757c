"""A drive in a local folder."""

import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import BinaryIO

import obstore
from obstore.exceptions import BaseError
from obstore.store import LocalStore

from primer_core.failures import SystemFault
from primer_resources.document_store.drive import Drive, ObjectGone, Stored

_NUMBERS = count()


class FolderDrive(Drive):
    """Objects as files. The folder is made by whoever sets the drive up: one that is missing later was moved or is not mounted, and a drive
    that made it anew would call everything missing. Folders inside come and go with their objects."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.place = str(folder)
        self._check_stands("")
        super().__init__(LocalStore(prefix=folder, automatic_cleanup=True), self.place)

    def create(self, key: str, body: bytes | Path) -> bool:
        """Put a new object, whole or not at all. False where the key is taken: what stands there is left."""
        self._check_stands(key)
        return super().create(key, body)

    def replace(self, key: str, body: bytes | Path) -> None:
        """Put an object over what may stand there, and read it back. Raises SystemFault where other bytes are kept than were given."""
        self._check_stands(key)
        self._put(key, lambda store: obstore.put(store, key, body))
        kept = self._ask(key, lambda _store: _sha(self._folder / key))
        if kept != (_sha(body) if isinstance(body, Path) else hashlib.sha256(body).hexdigest()):
            raise SystemFault(f"drive {self.place} keeps other bytes at {key} than it was given; check the disk")

    def delete(self, keys: Sequence[str]) -> None:
        """Delete objects, one after the other; those that are missing are passed over."""
        self._check_stands("")
        for key in keys:
            try:
                self._ask(key, lambda store, key=key: obstore.delete(store, key))  # type: ignore[misc] # bound now
            except ObjectGone:
                continue

    def list(self, prefix: str = "") -> Iterator[Stored]:
        """The objects below `prefix`."""
        self._check_stands(prefix)
        yield from super().list(prefix)

    def _copy_within(self, key: str, to: Drive, to_key: str) -> bool | None:
        """A copy of the file, not a second name for it: damage to one must not be damage to both."""
        if not isinstance(to, FolderDrive):
            return None
        to._check_stands(to_key)
        source, target = self._folder / key, to._folder / to_key
        # Listings pass over names that end in "#" and digits: those are objects that are being written.
        private = target.with_name(f"{target.name}#{os.getpid()}{next(_NUMBERS):09}")
        try:
            # Opened before a folder is made, so that a missing object leaves none behind.
            with source.open("rb") as given, _open_new(private) as out:
                shutil.copyfileobj(given, out)
            os.link(private, target)
        except FileExistsError:
            return False
        except FileNotFoundError as error:
            self._check_stands(key)
            if source.is_file():
                raise to._fault(to_key, error) from error
            raise ObjectGone(key, self.place) from error
        except OSError as error:
            raise to._fault(to_key, error) from error
        finally:
            private.unlink(missing_ok=True)
        return True

    def _check_stands(self, key: str) -> None:
        if not self._folder.is_dir():
            at = f", so nothing is known of {key}" if key else ""
            raise SystemFault(f"the folder of drive {self.place} is not there{at}; mount it, or move it back")

    def _fault(self, key: str, error: Exception) -> SystemFault:
        if isinstance(error, OSError) and not isinstance(error, BaseError) and error.strerror:
            return SystemFault(f"drive {self.place} failed at {key}: {error.strerror}; see that it can be written and has room")
        return super()._fault(key, error)


def _open_new(path: Path) -> BinaryIO:
    """A new file, and its folder, which whoever deletes the last object in it may take away at that moment."""
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            return path.open("xb")
        except FileNotFoundError:
            continue


def _sha(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
