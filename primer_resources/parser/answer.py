"""What a parse worker hands back: a small answer through the pipe, and files in the task's directory. Light: both sides import it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from primer_core.conservation import Conservation
from primer_core.elements import Element, ElementKind, ParsedDocument
from primer_core.failures import DocumentFault, Reason
from primer_core.lanes import SlowWork
from primer_core.reviews import ReviewPage

ELEMENTS_FILE = "elements.json"
DOCUMENT_FILE = "document.json.zst"
METADATA_FILE = "metadata.json"
REVIEWS_FILE = "reviews.json"


@dataclass(frozen=True, slots=True)
class Answer:
    """The number of pages (None where the format has none) and what became of the source's words, or the fault, or why this is work for
    the slow lane."""

    pages: int | None = None
    reason: Reason | None = None
    message: str = ""
    slow: SlowWork | None = None
    kept: Conservation | None = None

    @property
    def fault(self) -> DocumentFault | None:
        """The fault as an error, None for a parsed document."""
        return None if self.reason is None else DocumentFault(self.reason, self.message)


def write_result(directory: Path, elements: tuple[Element, ...], document_zst: bytes, metadata: Mapping[str, Any]) -> None:
    """Write a parsed document's files."""
    rows = [(element.kind.value, element.text, element.level, element.page) for element in elements]
    (directory / ELEMENTS_FILE).write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")
    (directory / DOCUMENT_FILE).write_bytes(document_zst)
    (directory / METADATA_FILE).write_text(json.dumps(dict(metadata), ensure_ascii=False), encoding="utf-8")


def read_result(directory: Path, pages: int | None) -> ParsedDocument:
    """Read a parsed document from its files."""
    rows = json.loads((directory / ELEMENTS_FILE).read_text(encoding="utf-8"))
    elements = tuple(Element(order, ElementKind(kind), text, level, page) for order, (kind, text, level, page) in enumerate(rows))
    metadata = json.loads((directory / METADATA_FILE).read_text(encoding="utf-8"))
    return ParsedDocument(elements, pages, (directory / DOCUMENT_FILE).read_bytes(), metadata)


def write_reviews(directory: Path, reviews: Sequence[ReviewPage]) -> None:
    """Write the pages to review: a list of what was read, and a picture a page."""
    if not reviews:
        return
    for number, review in enumerate(reviews):
        _picture(directory, number).write_bytes(review.image)
    rows = [(review.page, review.confidence, review.text) for review in reviews]
    (directory / REVIEWS_FILE).write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")


def read_reviews(directory: Path) -> tuple[ReviewPage, ...]:
    """Read the pages to review; none where the worker wrote none."""
    file = directory / REVIEWS_FILE
    if not file.exists():
        return ()
    rows = json.loads(file.read_text(encoding="utf-8"))
    return tuple(
        ReviewPage(page, confidence, text, _picture(directory, number).read_bytes()) for number, (page, confidence, text) in enumerate(rows)
    )


def _picture(directory: Path, number: int) -> Path:
    return directory / f"review-{number}.png"
