"""What an engine is given and what it gives."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from docling_core.types.doc import DoclingDocument

from primer_core.reviews import ReviewPage
from primer_core.routing import Format
from primer_resources.parser.ocr.config import OcrConfig
from primer_resources.parser.pdf.config import PdfConfig

_HASH = re.compile(r"(?:document|file)(?: with hash)? [0-9a-f]{64}")


_OCR, _PDF = OcrConfig(), PdfConfig()


@dataclass(frozen=True, slots=True)
class Source:
    """One file to convert: where its bytes are, the document's own name (for messages), what it is, the pages that a person let
    through, how pages are read by OCR, what lays PDF out, and a name that cannot mislead (made of the format, so that the same content
    gives the same output whatever it is called)."""

    path: Path
    name: str
    format: Format
    accepted_pages: frozenset[int] = frozenset()
    ocr: OcrConfig = _OCR
    pdf: PdfConfig = _PDF

    @property
    def plain_name(self) -> str:
        """The name that Docling sees and writes into its document."""
        return f"document.{self.format.value}"

    def tidy(self, error: str) -> str:
        """A library's error on one line, without the private copy's path and hash, which mean nothing to people."""
        return " ".join(_HASH.sub("it", error.replace(str(self.path), self.name)).split())


@dataclass(frozen=True, slots=True)
class Converted:
    """A DoclingDocument, the number of pages that the file has by a count of its own (None where the format has none), the pages that
    were read too badly to stand in the document, and what the file says of itself besides its text (plain JSON values)."""

    document: DoclingDocument
    pages: int | None = None
    reviews: tuple[ReviewPage, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
