"""A drive: where objects are kept under keys, whatever kind of store it is. Create-only puts, so that of several writers one wins.

Keys are Primer's own: parts of letters, digits and `._=+-`, joined by slashes. Any other raises ValueError on every store.
"""

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError

from primer_core.failures import SystemFault
from primer_resources.s3 import LIST_PAGE, first_line, is_refused
from primer_resources.scratch import Scratch

if TYPE_CHECKING:
    from obstore import GetResult, ObjectMeta
    from obstore.store import ObjectStore

T = TypeVar("T")
READ_BYTES = 1 << 20
_NO_VERSION = "null"
"""What S3 calls the version of an object in a bucket that keeps versions no more."""
_KEY = re.compile(r"[A-Za-z0-9._=+-]+(/[A-Za-z0-9._=+-]+)*")


@dataclass(frozen=True, slots=True)
class Stored:
    """An object as a drive tells of it: `size` in bytes, `modified` aware and in UTC."""

    key: str
    size: int
    modified: datetime


class ObjectGone(SystemFault):
    """An object that should be on a drive is not there, though the drive is."""

    def __init__(self, key: str, place: str) -> None:
        super().__init__(
            f"object {key} is not on drive {place}, though the drive is; a sweep makes it again when a document needs it, "
            "and `primer store reconcile` tells what else is missing"
        )
        self.key = key
        self.place = place


class Drive(ABC):
    """Objects by key. `place` says where they are, for people.

    Every method raises SystemFault, with place and key, where the drive itself fails: it cannot be reached, refuses, or is not there. An
    object counts as missing only where its drive stands. Threads may share a drive.
    """

    def __init__(self, store: "ObjectStore", place: str) -> None:
        self._store = store
        self.place = place

    def create(self, key: str, body: bytes | Path) -> bool:
        """Put a new object, whole or not at all. False where the key is taken: what stands there is left, be it from an earlier try of
        this very call whose answer was lost."""
        try:
            self._put(key, lambda store: obstore.put(store, key, body, mode="create"))
        except AlreadyExistsError:
            return False
        return True

    @abstractmethod
    def replace(self, key: str, body: bytes | Path) -> None:
        """Put an object over what may stand there, whole or not at all, and have verified that what is kept is what was given."""

    def head(self, key: str) -> Stored | None:
        """The object as the drive tells of it; None where it is missing."""
        try:
            return _stored(self._ask(key, lambda store: obstore.head(store, key)))
        except ObjectGone:
            return None

    def keeps_deleted(self, key: str) -> bool:
        """Whether the drive will keep the object's bytes after it was deleted or replaced, as a bucket with versions does. Raises
        ObjectGone where it is missing."""
        return self._ask(key, lambda store: obstore.head(store, key))["version"] not in (None, _NO_VERSION)

    def get(self, key: str) -> bytes:
        """The bytes of an object. Raises ObjectGone where it is missing."""
        return self._ask(key, lambda store: bytes(obstore.get(store, key).bytes()))

    def get_range(self, key: str, start: int, length: int) -> bytes:
        """`length` bytes (at least one) from `start` on; fewer where the object ends before. Raises ObjectGone where it is missing,
        SystemFault where nothing stands at `start`."""
        return self._ask(key, lambda store: bytes(obstore.get_range(store, key, start=start, length=length)))

    def fetch(self, key: str, target: Path) -> str:
        """Stream an object to a file. Returns the SHA-256 of what was written, in hex. Raises ObjectGone where it is missing; after any
        error there is no file."""
        answer: GetResult = self._ask(key, lambda store: obstore.get(store, key))
        sha, size = hashlib.sha256(), 0
        try:
            with target.open("wb") as out:
                for part in answer.stream(min_chunk_size=READ_BYTES):
                    sha.update(part)
                    size += out.write(part)
        except BaseError as error:
            target.unlink(missing_ok=True)
            raise self._fault(key, error) from error
        except OSError as error:
            target.unlink(missing_ok=True)
            raise SystemFault(f"copying {key} of drive {self.place} to {target} failed: {error.strerror}; make room there") from error
        if size != answer.meta["size"]:
            target.unlink(missing_ok=True)
            raise SystemFault(f"drive {self.place}: {key} broke off after {size} of {answer.meta['size']} bytes; try again")
        return sha.hexdigest()

    def copy(self, key: str, to: "Drive", to_key: str) -> bool:
        """Copy an object to a new key of this drive or another, without its bytes passing through here where both can do that. False where
        the key is taken: what stands there is left. Raises ObjectGone where the object is missing."""
        check_key(key)
        check_key(to_key)
        done = self._copy_within(key, to, to_key)
        if done is not None:
            return done
        with Scratch() as folder:
            private = folder / "object"
            self.fetch(key, private)
            return to.create(to_key, private)

    @abstractmethod
    def delete(self, keys: Sequence[str]) -> None:
        """Delete objects; those that are missing are passed over. After a fault some of them may be gone."""

    def list(self, prefix: str = "") -> Iterator[Stored]:
        """The objects below `prefix`, which is whole parts of keys ("" is all of them), in no particular order. Raises SystemFault also
        half-way: a listing is whole only when it came to its end."""
        if prefix:
            check_key(prefix)
        try:
            for page in self._pages(prefix):
                yield from (_stored(meta) for meta in page)
        except (BaseError, OSError) as error:
            raise self._fault(prefix or "the list of its objects", error) from error

    def _pages(self, prefix: str) -> "Iterator[Sequence[ObjectMeta]]":
        """The pages of a listing; where the first is refused, once more with credentials read anew."""

        def begin(store: "ObjectStore") -> "tuple[Iterator[Sequence[ObjectMeta]], Sequence[ObjectMeta] | None]":
            pages = iter(obstore.list(store, prefix=prefix or None, chunk_size=LIST_PAGE))
            return pages, next(pages, None)

        pages, first = self._run(begin)
        if first is not None:
            yield first
            yield from pages

    @abstractmethod
    def _copy_within(self, key: str, to: "Drive", to_key: str) -> bool | None:
        """`copy` where both drives can do it between themselves; None where they cannot."""

    @abstractmethod
    def _check_stands(self, key: str) -> None:
        """Raise SystemFault where the drive itself is missing, so that nothing can be said of `key`."""

    def _renew(self) -> bool:
        """Read the credentials anew. Returns whether they are others than before; the drive is open with them then."""
        return False

    def _run(self, call: "Callable[[ObjectStore], T]") -> T:
        """A call on the store; where it is refused, once more with credentials read anew."""
        store = self._store
        try:
            return call(store)
        except BaseError as error:
            # Another thread may have renewed them meanwhile.
            if not is_refused(error) or not (self._renew() or self._store is not store):
                raise
        return call(self._store)

    def _ask(self, key: str, call: "Callable[[ObjectStore], T]") -> T:
        """A reading call. Raises ObjectGone or SystemFault."""
        check_key(key)
        try:
            return self._run(call)
        except FileNotFoundError as error:
            self._check_stands(key)
            raise ObjectGone(key, self.place) from error
        except (BaseError, OSError) as error:
            raise self._fault(key, error) from error

    def _put(self, key: str, call: "Callable[[ObjectStore], object]") -> None:
        """A writing call. Raises AlreadyExistsError or SystemFault."""
        check_key(key)
        try:
            self._run(call)
        except AlreadyExistsError:
            raise
        except (BaseError, OSError) as error:
            self._check_stands(key)
            raise self._fault(key, error) from error

    def _fault(self, key: str, error: Exception) -> SystemFault:
        """What it means that the store did not do what was asked about a key."""
        return SystemFault(f"drive {self.place} failed at {key}: {first_line(error)}; see that it can be reached and has room")


def check_key(key: str) -> None:
    """Raise ValueError for what is no key."""
    if not _KEY.fullmatch(key) or any(part in (".", "..") for part in key.split("/")):
        raise ValueError(f"{key!r} is no key of an object")


def _stored(meta: "ObjectMeta") -> Stored:
    return Stored(meta["path"], meta["size"], meta["last_modified"])
