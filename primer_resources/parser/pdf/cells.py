"""Between Docling's text cells and the spans and lines of primer_core.layout."""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import itemgetter
from statistics import median

from docling.utils.font_style import parse_font_style
from docling_core.types.doc import BoundingBox, CoordOrigin
from docling_core.types.doc.page import BoundingRectangle, PdfTextCell, TextCell

from primer_core.layout.geometry import Box, Line, Span
from primer_core.layout.lines import settle_sizes

BOLD = 600
"""Weight from which a font is bold (semibold)."""

MOSTLY = 0.8
"""Share of a line's letters that must be bold for the line to be bold."""

TYPEWRITTEN = 0.6
"""A page with more of its letters in a typewriter font is typewritten: its lines are text, not code."""

GLYPH_WIDTH = 0.25
"""Width of a letter, in heights, below which a word is not what is printed: real letters are about 0.5 wide."""

TURNED = 8.0
"""Degrees from the horizontal beyond which a cell is turned text."""

_TEX_BOLD = re.compile(r"(?:^|\+)(?:CM|SF|EC|LM)(?:BX|SSBX|BCSC|Bold|-?\w*Bold)|(?:^|\+)(?:NimbusRomNo9L-Medi|NimbusSanL-Bold)", re.I)
"""TeX's bold fonts say BX, not Bold."""

_MONO = re.compile(r"courier|mono|consolas|menlo|typewriter|(?:^|\+)(?:CMTT|SFTT|ECTT|LMMono)|lucidaconsole|fixed", re.I)
_GLYPH_NAME = re.compile(r"/?(?:[A-Za-z]{1,4}\d{2,8}|GLYPH<\S*>)")
_BAND = 24.0


@lru_cache(maxsize=4096)
def style_of(font_name: str) -> tuple[bool, bool, bool]:
    """Whether a font is bold, whether it is italic, whether it is a typewriter font, as far as its name says."""
    style = parse_font_style(font_name)
    weight = style.weight if style.known else None
    bold = weight is not None and weight >= BOLD
    name = font_name.lstrip("/")
    return bold or _TEX_BOLD.search(name) is not None, bool(style.known and style.italic), _MONO.search(name) is not None


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


def spans_of(cells: Sequence[TextCell], words: Sequence[TextCell] = ()) -> list[Span]:
    """A span for each upright cell with words; `order` is its place in `cells`. Sizes of one font are settled.

    A cell names one font only, that of its first word; `words`, where given, say in what the rest is set. Words themselves need none.
    """
    bands = _Bands(words)
    spans, fonts = [], []
    for place, cell in enumerate(cells):
        if not cell.text.strip() or is_turned(cell):
            continue
        font = cell.font_name if isinstance(cell, PdfTextCell) else ""
        box = box_of(cell.rect.to_bounding_box())
        inside = bands.within(box) if words else [_Word(cell.text.strip(), box, font)]
        bold, italic, mono = _style([(word.text, word.font) for word in inside] or [(cell.text, font)])
        text = cell.text
        if inside and _is_glyph_name(inside[0]) and text.startswith(inside[0].text):
            text = "\u2022" + text[len(inside[0].text) :]
        size = float(cell.rect.height)
        if inside:
            # A raised figure makes the cell higher than its line is.
            measured = inside if len(inside) > 2 else [max(inside, key=lambda word: len(word.text))]
            box = Box(box.left, median(word.box.top for word in measured), box.right, median(word.box.bottom for word in measured))
            size = box.height
        spans.append(Span(text, box, max(0.1, size), bold, italic, place, mono))
        fonts.append(font)
    if sum(len(span.text) for span in spans if span.mono) > TYPEWRITTEN * sum(len(span.text) for span in spans):
        spans = [replace(span, mono=False) for span in spans]
    return settle_sizes(spans, fonts)


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    box: Box
    font: str


class _Bands:
    """Words by the band of the page in which their middle is, from left to right in each."""

    def __init__(self, words: Sequence[TextCell]) -> None:
        bands: defaultdict[int, list[tuple[float, int, _Word]]] = defaultdict(list)
        for place, word in enumerate(words):
            if isinstance(word, PdfTextCell) and word.text.strip():
                box = box_of(word.rect.to_bounding_box())
                bands[int(box.middle // _BAND)].append((box.centre, place, _Word(word.text.strip(), box, word.font_name)))
        self._bands = {band: sorted(found, key=itemgetter(0)) for band, found in bands.items()}

    def within(self, box: Box) -> list[_Word]:
        """The words whose centre is in the box, in the order of the file."""
        found: list[tuple[float, int, _Word]] = []
        for band in range(int(box.top // _BAND), int(box.bottom // _BAND) + 1):
            words = self._bands.get(band, [])
            first = bisect_left(words, box.left, key=itemgetter(0))
            last = bisect_right(words, box.right, key=itemgetter(0))
            found += [word for word in words[first:last] if box.top <= word[2].box.middle <= box.bottom]
        return [word for _, _, word in sorted(found, key=itemgetter(1))]


def _style(parts: Sequence[tuple[str, str]]) -> tuple[bool, bool, bool]:
    """Whether bold, italic, typewriter: what most of the letters are."""
    total = sum(len(text) for text, _ in parts)
    shares = [0, 0, 0]
    for text, font in parts:
        for place, given in enumerate(style_of(font)):
            shares[place] += len(text) if given else 0
    return shares[0] > MOSTLY * total, shares[1] > MOSTLY * total, shares[2] > MOSTLY * total


def _is_glyph_name(word: _Word) -> bool:
    """Whether a word is the name of a glyph that its font says no character for, such as a bullet: it is far too long for its box."""
    return _GLYPH_NAME.fullmatch(word.text) is not None and word.box.width < GLYPH_WIDTH * word.box.height * len(word.text)


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
