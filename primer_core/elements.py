"""The element list: the one shape that every parser gives, whatever the format."""

from dataclasses import dataclass
from enum import StrEnum


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
    """What parsing one content gave: its elements, the number of pages (None where the format has none)
    and the DoclingDocument as zstd-compressed JSON, which the chunker reads."""

    elements: tuple[Element, ...]
    pages: int | None
    docling_json_zst: bytes
