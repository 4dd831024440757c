"""What a parse worker hands back: a small answer through the pipe, and two files in the task's directory. Light: both sides import it."""

import json
from dataclasses import dataclass
from pathlib import Path

from primer_core.elements import Element, ElementKind, ParsedDocument
from primer_core.failures import DocumentFault, Reason

ELEMENTS_FILE = "elements.json"
DOCUMENT_FILE = "document.json.zst"


@dataclass(frozen=True, slots=True)
class Answer:
    """The number of pages (None where the format has none), or the fault."""

    pages: int | None = None
    reason: Reason | None = None
    message: str = ""

    @property
    def fault(self) -> DocumentFault | None:
        """The fault as an error, None for a parsed document."""
        return None if self.reason is None else DocumentFault(self.reason, self.message)


def write_result(directory: Path, elements: tuple[Element, ...], document_zst: bytes) -> None:
    """Write a parsed document's two files."""
    rows = [(element.kind.value, element.text, element.level, element.page) for element in elements]
    (directory / ELEMENTS_FILE).write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")
    (directory / DOCUMENT_FILE).write_bytes(document_zst)


def read_result(directory: Path, pages: int | None) -> ParsedDocument:
    """Read a parsed document from its two files."""
    rows = json.loads((directory / ELEMENTS_FILE).read_text(encoding="utf-8"))
    elements = tuple(Element(order, ElementKind(kind), text, level, page) for order, (kind, text, level, page) in enumerate(rows))
    return ParsedDocument(elements, pages, (directory / DOCUMENT_FILE).read_bytes())
