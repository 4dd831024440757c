"""The words of a PDF's text layer, by PDFium."""

import re
from collections import Counter
from pathlib import Path

import pypdfium2

from primer_core.garbled import is_garbled
from primer_resources.parser.conservation.reader import SourceText

_HYPHENATED = re.compile("(?<=\\w)(?:\x02|\ufffe|-\r?\n)\\s*(?=\\w)")
"""A word that goes on in the next line: PDFium marks the hyphen with a control character of its own."""

_DIGITS = re.compile(r"\d+")
_EDGE_LINES = 2
_LEAST_PAGES = 3
_LEAST_SHARE = 0.2
"""A line among the first or last of a page, equal but for its numbers on three pages and a fifth of all, is a running header or footer."""


def read_pdf(path: Path, pages_apart: frozenset[int]) -> SourceText | None:
    """The text of each page. Running headers and footers are losses, and as a whole so are pages whose text layer is broken (they are
    read by OCR) and `pages_apart` (counted from 1), which wait for a review."""
    found = SourceText()
    pages: list[list[str]] = []
    try:
        with pypdfium2.PdfDocument(path) as pdf:
            for number in range(len(pdf)):
                page = pdf[number]
                text_page = page.get_textpage()
                text = text_page.get_text_range()
                text_page.close()
                page.close()
                if number + 1 in pages_apart:
                    found.lose("pages in review", text)
                    continue
                if is_garbled(text):
                    found.lose("broken text layers", text)
                    continue
                lines = _HYPHENATED.sub("", text).splitlines()
                pages.append([line.strip() for line in lines if line.strip()])
    except pypdfium2.PdfiumError:
        return None
    running = _running(pages)
    for lines in pages:
        edges = {*range(min(_EDGE_LINES, len(lines))), *range(max(0, len(lines) - _EDGE_LINES), len(lines))}
        for place, line in enumerate(lines):
            if place in edges and _shape(line) in running:
                found.lose("running headers and footers", line)
            else:
                found.pieces.append(line)
    return found


def _shape(line: str) -> str:
    return _DIGITS.sub("#", line)


def _running(pages: list[list[str]]) -> set[str]:
    shapes = Counter(shape for lines in pages for shape in {_shape(line) for line in (*lines[:_EDGE_LINES], *lines[-_EDGE_LINES:])})
    least = max(_LEAST_PAGES, _LEAST_SHARE * len(pages))
    return {shape for shape, number in shapes.items() if number >= least}
