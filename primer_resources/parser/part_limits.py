"""How much an office file makes its reader build: paragraphs and cells, counted in a bounded stream before anything is loaded.

A zip's sizes do not tell: 100 kB of equal paragraphs are hours of work, and one cell at the far corner of a sheet spans it all.
"""

import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from primer_core.failures import DocumentFault, Reason, is_of_system
from primer_core.routing import Format

MAX_PARAGRAPHS = 100_000
"""Paragraphs of a document, a table's cells among them. Docling takes 0.5 ms each at 20,000, more the more there are."""

MAX_CELLS = 1_500_000
"""Cells of a workbook, styled empty ones among them. openpyxl and Docling together take 5 kB and 80 CPU microseconds each: 100,000 rows of
six cells came to 3.6 GB and 47 s."""

MAX_SPAN = 2_000_000
"""Cells between the first and the last that holds something, over all sheets: Docling walks every one of them."""

_CHUNK = 1 << 20
_WORD_PARTS = re.compile(r"word/(?:document|footnotes|endnotes)\.xml")
_SLIDE_PARTS = re.compile(r"ppt/(?:slides|notesSlides)/[^/]+\.xml")
_SHEET_PARTS = re.compile(r"xl/worksheets/[^/]+\.xml")
_PARAGRAPH = re.compile(rb"<(?:[\w.-]+:)?p(?=[\s/>])")
_CELL = re.compile(rb"<(?:[\w.-]+:)?c(?=[\s/>])([^<>]*)>")
_PLACE = re.compile(rb"""\br\s*=\s*["']([A-Z]{1,3})([0-9]{1,7})["']""")


def check_parts(path: Path, name: str, format_: Format) -> None:
    """Raise DocumentFault where the file is too much to read (too_large) or a part of it cannot be unpacked (corrupt)."""
    try:
        with zipfile.ZipFile(path) as archive:
            match format_:
                case Format.XLSX:
                    _check_cells(archive, name)
                case Format.DOCX:
                    _check_paragraphs(archive, name, _WORD_PARTS)
                case _:
                    _check_paragraphs(archive, name, _SLIDE_PARTS)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, OSError) as error:
        if is_of_system(error):
            raise
        raise DocumentFault(Reason.CORRUPT, f"{name} has a part that cannot be unpacked ({error}); open and save it again") from error


def _check_paragraphs(archive: zipfile.ZipFile, name: str, parts: re.Pattern[str]) -> None:
    found = 0
    for part in archive.namelist():
        if not parts.fullmatch(part):
            continue
        for piece in _pieces(archive, part):
            found += len(_PARAGRAPH.findall(piece))
            if found > MAX_PARAGRAPHS:
                raise DocumentFault(Reason.TOO_LARGE, f"{name} holds more than {MAX_PARAGRAPHS:,} paragraphs; split it")


def _check_cells(archive: zipfile.ZipFile, name: str) -> None:
    found = span = 0
    for part in archive.namelist():
        if not _SHEET_PARTS.fullmatch(part):
            continue
        rows: set[int] = set()
        columns: set[bytes] = set()
        for piece in _pieces(archive, part):
            for cell in _CELL.finditer(piece):
                found += 1
                attributes = cell[1]
                if attributes.endswith(b"/"):
                    continue  # a style and no value
                place = _PLACE.search(attributes)
                if place:
                    columns.add(place[1])
                    rows.add(int(place[2]))
            if found > MAX_CELLS:
                raise DocumentFault(Reason.TOO_LARGE, f"{name} holds more than {MAX_CELLS:,} cells; split it")
        if rows:
            numbers = [_number(column) for column in columns]
            span += (max(rows) - min(rows) + 1) * (max(numbers) - min(numbers) + 1)
        if span > MAX_SPAN:
            last = max(columns, key=_number).decode() + str(max(rows))
            raise DocumentFault(
                Reason.TOO_LARGE,
                f"{name} spans {span:,} cells up to {last} in {part}, more than {MAX_SPAN:,}; clear what stands far from the rest",
            )


def _number(column: bytes) -> int:
    number = 0
    for letter in column:
        number = number * 26 + letter - 64
    return number


def _pieces(archive: zipfile.ZipFile, part: str) -> Iterator[bytes]:
    """The part in pieces that end between two tags."""
    rest = b""
    with archive.open(part) as stream:
        while chunk := stream.read(_CHUNK):
            held = rest + chunk
            cut = held.rfind(b"<")
            if cut <= 0:
                rest = held[-_CHUNK:]
                continue
            yield held[:cut]
            rest = held[cut:]
    yield rest
