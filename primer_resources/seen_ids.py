"""The documents that a listing showed, against those that the catalog has: which are missing. On disk, in sorted segments.

A listing of millions of documents neither fits in memory nor should write a row for each document that is still there. So its ids go to a
spool of segments by their first byte; the catalog's ids stream by in order, and one segment at a time is held against them.
"""

import mmap
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from primer_resources.id_spool import ID_BYTES, IdSpool


class SeenIds:
    """Ids in hexadecimal, spooled into a folder of their own. An id may be added twice."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen = IdSpool(folder)

    def add(self, doc_ids: Iterable[str]) -> None:
        """The listing showed these."""
        self._seen.add(map(bytes.fromhex, doc_ids))

    def missing_of(self, known: Iterable[str]) -> "MissingIds":
        """What of the known ids was not seen. Reads them once; raises ValueError unless they strictly ascend."""
        path, count, before = self._folder / "missing", 0, b""
        with path.open("wb") as out:
            for doc_id in known:
                raw = bytes.fromhex(doc_id)
                if raw <= before:
                    raise ValueError(f"document ids must ascend without repeats, yet {doc_id!r} follows {before.hex()!r}")
                before = raw
                count += 1
                if raw not in self._seen:
                    out.write(raw)
        return MissingIds(path, count)


class MissingIds:
    """Known ids that a listing did not show, ascending, in a file. `known` counts all ids that they were looked for in.

    An id that is found after all (a rename) is taken out.
    """

    def __init__(self, path: Path, known: int) -> None:
        self.known = known
        self._count = path.stat().st_size // ID_BYTES
        with path.open("rb") as file:
            self._ids = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if self._count else b""
        self._found = bytearray(self._count)

    def __len__(self) -> int:
        return self._count - sum(self._found)

    def __iter__(self) -> Iterator[str]:
        return (self._at(index).hex() for index in range(self._count) if not self._found[index])

    def __contains__(self, doc_id: str) -> bool:
        index = self._place(bytes.fromhex(doc_id))
        return index is not None and not self._found[index]

    def take_out(self, doc_id: str) -> None:
        """The document is there after all."""
        index = self._place(bytes.fromhex(doc_id))
        if index is not None:
            self._found[index] = 1

    def pages(self, size: int) -> Iterator[list[str]]:
        """The ids, `size` at a time."""
        ids = iter(self)
        while page := list(islice(ids, size)):
            yield page

    def _at(self, index: int) -> bytes:
        return self._ids[index * ID_BYTES : (index + 1) * ID_BYTES]

    def _place(self, raw: bytes) -> int | None:
        low, high = 0, self._count
        while low < high:
            middle = (low + high) // 2
            if self._at(middle) < raw:
                low = middle + 1
            else:
                high = middle
        return low if low < self._count and self._at(low) == raw else None
