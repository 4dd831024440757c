"""The element list: the one shape that every parser gives, whatever the format."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class ElementKind(StrEnum):
    """What a piece of a document is."""

    HEADING = "heading"
    PARAGRAPH = "paragraph"
    LIST_ITEM = "list_item"
    TABLE = "table"
    CAPTION = "caption"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class Element:
    """One piece of a document in reading order.

    `level` is a heading's depth from 1, else None. `page` counts from 1 (a slide, a sheet); None where the format has no pages.
    A table's `text` is Markdown rows.
    """

    order: int
    kind: ElementKind
    text: str
    level: int | None = None
    page: int | None = None


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """What parsing one content gave: its elements, the number of pages (None where the format has none),
    the DoclingDocument as zstd-compressed JSON, which the chunker reads, and what the file says of itself besides its text
    (front matter and the like, plain JSON values), which no chunk holds."""

    elements: tuple[Element, ...]
    pages: int | None
    docling_json_zst: bytes
    metadata: Mapping[str, Any] = field(default_factory=dict)
