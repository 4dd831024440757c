"""Lanes: which jobs must not stand in the way of the others, and how long a slow document may take. Pure.

What tells at once (the kind of a file, its size) decides when the bytes are fetched. What only a look inside tells (pages, scans) is
asked in a parse worker, before the parse: a hostile file is opened nowhere else.
"""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from math import ceil

from primer_core.routing import Format
from primer_core.stages import Operation

SCANNED_PAGE_BYTES = 30_000
"""A page of text scanned in black and white (CCITT G4 or JBIG2, 300 dpi) takes 30 kB or more: so a file has at most so many pages."""
MOST_PAGES = 2_000
"""Pages that lengthen a time limit: a page count is the file's own claim and must not buy for ever."""


class Lane(StrEnum):
    """Which runs do a job. A content is fast or slow: the two differ in the runs and the workers that parse it. A delete or a change of
    permissions goes by the access lane, past all contents."""

    FAST = "fast"
    SLOW = "slow"
    ACCESS = "access"


def lane_of(operation: Operation, content: Lane) -> Lane:
    """The lane of a job on a content of lane `content`. A copy waits for the rows of its content, so it goes with contents."""
    return Lane.ACCESS if operation in (Operation.DELETE, Operation.ACL) else content


@dataclass(frozen=True, slots=True)
class FastLane:
    """What the fast lane takes: files of at most `file_bytes`, PDF files of at most `pages` pages, none of them a scan."""

    file_bytes: int
    pages: int


@dataclass(frozen=True, slots=True)
class SlowWork:
    """Why a content is work for the slow lane, and the number of its pages, where it is known."""

    why: str
    pages: int | None = None


@dataclass(frozen=True, slots=True)
class SlowTime:
    """The time that a slow parse may take: `document` and, for each page, `page`."""

    document: timedelta
    page: timedelta

    def limit(self, size: int, pages: int | None) -> timedelta:
        """For a file of `size` bytes; where nobody counted its pages, it has as many as its bytes could hold."""
        counted = ceil(size / SCANNED_PAGE_BYTES) if pages is None else pages
        return self.document + self.page * min(counted, MOST_PAGES)

    @property
    def longest(self) -> timedelta:
        """More than any document gets."""
        return self.document + self.page * MOST_PAGES


def lane_at_fetch(format_: Format, size: int, fast: FastLane) -> Lane:
    """The lane of a content, by what its first bytes and its size tell: pictures need OCR, large files take long whatever they are."""
    return Lane.SLOW if format_ is Format.IMAGE or size > fast.file_bytes else Lane.FAST
