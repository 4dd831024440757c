"""PDF pages with text and rules at given places, written by hand."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from primer_core.routing import Format
from primer_resources.parser.engines.source import Converted, Source
from primer_resources.parser.pdf.read import read_pdf

FONTS = ("Helvetica", "Helvetica-Bold", "Courier")


def put(text: str, left: float, top: float, size: float = 10.0, font: int = 0) -> bytes:
    """Text whose line begins at a place, in points from the top left of a page of 612 × 792."""
    words = text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)").encode("cp1252")
    return b"BT /F%d %g Tf %g %g Td (%s) Tj ET\n" % (font, size, left, 792 - top - size, words)


def rule(left: float, top: float, right: float, bottom: float) -> bytes:
    """A stroke from one place to another."""
    return b"%g %g m %g %g l S\n" % (left, 792 - top, right, 792 - bottom)


def paragraph(words: str, left: float, top: float, lines: int) -> bytes:
    """Lines of a paragraph, each numbered, so that their order can be told; the last ends with a full stop."""
    return b"".join(put(f"{words} line {n} goes on{'.' if n == lines - 1 else ''}", left, top + 12 * n) for n in range(lines))


def grid(rows: Sequence[Sequence[str]], left: float, top: float, width: float = 100.0, height: float = 20.0) -> bytes:
    """A table ruled on all sides."""
    right, bottom = left + width * len(rows[0]), top + height * len(rows)
    drawn = b"".join(rule(left, top + height * n, right, top + height * n) for n in range(len(rows) + 1))
    drawn += b"".join(rule(left + width * n, top, left + width * n, bottom) for n in range(len(rows[0]) + 1))
    cells = (put(text, left + 5 + width * n, top + 5 + height * m) for m, row in enumerate(rows) for n, text in enumerate(row))
    return drawn + b"".join(cells)


def build(*pages: bytes) -> bytes:
    """A PDF of pages with these contents."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b""]
    objects += [b"<< /Type /Font /Subtype /Type1 /BaseFont /%s /Encoding /WinAnsiEncoding >>" % name.encode() for name in FONTS]
    kids = []
    for content in pages:
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content))
        resources = b"<< /Font << /F0 3 0 R /F1 4 0 R /F2 5 0 R >> >>"
        page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources %s /Contents %d 0 R >>"
        objects.append(page % (resources, len(objects)))
        kids.append(b"%d 0 R" % len(objects))
    objects[1] = b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(kids), b" ".join(kids))
    out, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, start=1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    trailer = b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, len(out))
    return out + b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + table + trailer


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., Converted]:
    """Read a PDF of pages with these contents, in this process."""

    def run(*pages: bytes) -> Converted:
        path = tmp_path / "content"
        path.write_bytes(build(*pages))
        return read_pdf(Source(path, "paper.pdf", Format.PDF))

    return run
