"""A set of ids on disk, in segments by their first byte: for more ids than memory holds, asked about in the order of segments."""

from collections.abc import Iterable
from pathlib import Path

ID_BYTES = 16
SEGMENTS = 256
"""One a first byte: of 20 million ids 80,000 are in memory at once."""
BUFFERED_BYTES = 4 << 20
"""Ids kept before they are written, all segments together."""


class IdSpool:
    """Ids of ID_BYTES, spooled into a folder of their own. An id may be added twice."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self._waiting = [bytearray() for _ in range(SEGMENTS)]
        self._buffered = 0
        self._number = -1
        self._segment: frozenset[bytes] = frozenset()

    def add(self, ids: Iterable[bytes]) -> None:
        """Put ids into the set."""
        for raw in ids:
            self._waiting[raw[0]] += raw
            self._buffered += ID_BYTES
        self._number = -1
        if self._buffered > BUFFERED_BYTES:
            self._flush()

    def __contains__(self, raw: bytes) -> bool:
        """Whether the id is in the set. Each change of segment reads one."""
        if raw[0] != self._number:
            self._flush()
            self._number, self._segment = raw[0], self._read(raw[0])
        return raw in self._segment

    def _flush(self) -> None:
        if not self._buffered:
            return
        for number, waiting in enumerate(self._waiting):
            if waiting:
                with (self._folder / f"{number:02x}").open("ab") as segment:
                    segment.write(waiting)
                waiting.clear()
        self._buffered = 0

    def _read(self, number: int) -> frozenset[bytes]:
        path = self._folder / f"{number:02x}"
        raw = path.read_bytes() if path.exists() else b""
        return frozenset(raw[start : start + ID_BYTES] for start in range(0, len(raw), ID_BYTES))
