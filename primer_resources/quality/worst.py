"""The pages that were read worst, of those that can be shown: pages of PDF files and pictures."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from primer_core.routing import Format

PICTURED = frozenset({Format.PDF, Format.IMAGE})
WORST_PAGES = 10


@dataclass(frozen=True, slots=True)
class PageRead:
    """A page as it was read. `score` is from 0 to 1, the best, and `scored_by` says of what. `texts` is what was read (page → text);
    `page` is None where the document has a score and its pages have none. `truth` is what the page says, "" where nobody knows."""

    score: float
    scored_by: str
    name: str
    path: Path
    format: Format
    page: int | None
    texts: Mapping[int, str]
    truth: str = ""
    in_review: frozenset[int] = frozenset()
    message: str = ""


@dataclass(slots=True)
class WorstPages:
    """Keeps the lowest scores and forgets the rest, so that memory stays flat. Ties are by name and page."""

    most: int = WORST_PAGES
    pages: list[PageRead] = field(default_factory=list)

    def add(self, page: PageRead) -> None:
        """Offer a page; one without a fault is not kept."""
        if page.score < 1.0:
            self.pages.append(page)
            self.pages.sort(key=lambda page: (page.score, page.name, page.page or 0))
            del self.pages[self.most :]
