"""Between Docling's text cells and the spans and lines of primer_core.layout."""

import re
from collections.abc import Sequence
from functools import lru_cache

from docling.utils.font_style import parse_font_style
from docling_core.types.doc import BoundingBox, CoordOrigin
from docling_core.types.doc.page import BoundingRectangle, PdfTextCell, TextCell

from primer_core.layout.geometry import Box, Line, Span
from primer_core.layout.lines import settle_sizes

BOLD = 600
"""Weight from which a font is bold (semibold)."""

TURNED = 8.0
"""Degrees from the horizontal beyond which a cell is turned text."""

_TEX_BOLD = re.compile(r"(?:^|\+)(?:CM|SF|EC|LM)(?:BX|SSBX|BCSC|Bold|-?\w*Bold)|(?:^|\+)(?:NimbusRomNo9L-Medi|NimbusSanL-Bold)", re.I)
"""TeX's bold fonts say BX, not Bold."""


@lru_cache(maxsize=4096)
def style_of(font_name: str) -> tuple[bool, bool]:
    """Whether a font is bold, and whether it is italic, as far as its name says."""
    style = parse_font_style(font_name)
    weight = style.weight if style.known else None
    bold = weight is not None and weight >= BOLD
    return bold or _TEX_BOLD.search(font_name.lstrip("/")) is not None, bool(style.known and style.italic)


def box_of(box: BoundingBox) -> Box:
    """A top-left box of Docling as ours, its sides in order."""
    return Box(min(box.l, box.r), min(box.t, box.b), max(box.l, box.r), max(box.t, box.b))


def docling_box(box: Box) -> BoundingBox:
    """A box of ours as Docling's."""
    return BoundingBox(l=box.left, t=box.top, r=box.right, b=box.bottom, coord_origin=CoordOrigin.TOPLEFT)


def is_turned(cell: TextCell) -> bool:
    """Whether the text does not run along the horizontal."""
    angle = abs(float(cell.rect.angle_360)) % 180
    return min(angle, 180 - angle) > TURNED


def spans_of(cells: Sequence[TextCell], settle: bool = True) -> list[Span]:
    """A span for each upright cell with words; `order` is its place in `cells`. Where `settle`, sizes of one font are settled."""
    spans, fonts = [], []
    for place, cell in enumerate(cells):
        if not cell.text.strip() or is_turned(cell):
            continue
        font = cell.font_name if isinstance(cell, PdfTextCell) else ""
        bold, italic = style_of(font)
        box = box_of(cell.rect.to_bounding_box())
        spans.append(Span(cell.text, box, max(0.1, float(cell.rect.height)), bold, italic, place))
        fonts.append(font)
    return settle_sizes(spans, fonts) if settle else spans


def cell_of(line: Line, cells: Sequence[TextCell]) -> TextCell:
    """A line as one text cell, which keeps what its cells say of OCR."""
    behind = [cells[span.order] for span in line.spans]
    return TextCell(
        index=line.order,
        rect=BoundingRectangle.from_bounding_box(docling_box(line.box)),
        text=line.text,
        orig=line.text,
        confidence=sum(cell.confidence for cell in behind) / len(behind),
        from_ocr=any(cell.from_ocr for cell in behind),
    )
