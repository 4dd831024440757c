"""The parser port."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from primer_core.conservation import Conservation
from primer_core.elements import ParsedDocument
from primer_core.failures import DocumentFault
from primer_core.lanes import SlowWork
from primer_core.recipe import ParserSpec
from primer_core.reviews import ReviewPage


@dataclass(frozen=True, slots=True)
class ParseRequest:
    """One content to parse, under a key that is the asker's own. `path` is a private copy that the parser may read and never writes; `name`
    is the document's file name, a hint only where bytes cannot tell (txt, md, csv). `accepted_pages` are those that a person let through
    for this content: what OCR read there counts, however sure it is. `pages` is how many were counted before, None where nobody has."""

    key: str
    path: Path
    name: str
    accepted_pages: frozenset[int] = frozenset()
    pages: int | None = None


@dataclass(frozen=True, slots=True)
class ParseOutcome:
    """What became of one request: the parsed document, the fault that is the document's own, or nothing yet, since it is work for the slow
    lane. The first two may have pages to review, which are in no element. `kept` says how much of the source's text is in the elements;
    None where that is not known."""

    key: str
    seconds: float
    parsed: ParsedDocument | None
    fault: DocumentFault | None
    reviews: tuple[ReviewPage, ...] = ()
    slow: SlowWork | None = None
    kept: Conservation | None = None


class Parser(Protocol):
    """Parses many contents at once, each in a child process with limits on time and memory."""

    @property
    def spec(self) -> ParserSpec:
        """What shapes the output."""
        ...

    def parse_many(self, requests: Iterable[ParseRequest]) -> Iterator[ParseOutcome]:
        """Outcomes in the order in which they finish, one a request. A poison document is an outcome, never an exception."""
        ...
