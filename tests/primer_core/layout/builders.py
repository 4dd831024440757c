"""Spans and lines for the layout tests, by place and text."""

from primer_core.layout.geometry import Box, Line, Span
from primer_core.layout.lines import make_line

WIDTH = 0.5
"""Of a letter, in font sizes."""


def span(text: str, left: float, top: float, size: float = 10.0, bold: bool = False, order: int = 0, mono: bool = False) -> Span:
    box = Box(left, top, left + WIDTH * size * len(text), top + size)
    return Span(text, box, size, bold=bold, order=order, mono=mono)


def line(text: str, left: float, top: float, size: float = 10.0, bold: bool = False, order: int = 0, mono: bool = False) -> Line:
    return make_line([span(text, left, top, size, bold, order, mono)])
