"""Triage: what a look inside tells of a file's lane, before anything is parsed. Runs in a worker, whose limits bound it."""

from pathlib import Path

import pypdfium2

from primer_core.lanes import FastLane, SlowWork, is_scan
from primer_core.routing import PDF_MAGIC, PDF_MAGIC_WITHIN

NESTED_FORMS = 3
"""How deep pictures are looked for: a scanner's driver may wrap the picture of a page in a form or two."""


def slow_work(path: Path, fast: FastLane) -> SlowWork | None:
    """Why the file is work for the slow lane; None where the fast lane takes it, or where it cannot be opened (the parse says why).

    Cheap: the look ends at the first scanned page, and a file with more pages than the fast lane takes is not looked into at all.
    """
    with path.open("rb") as file:
        if PDF_MAGIC not in file.read(PDF_MAGIC_WITHIN):
            return None
    try:
        with pypdfium2.PdfDocument(path) as pdf:
            pages = len(pdf)
            if pages > fast.pages:
                return SlowWork(f"it has {pages} pages, more than the {fast.pages} of the fast lane", pages)
            scanned = next((number for number in range(pages) if _is_scan(pdf, number)), None)
    except pypdfium2.PdfiumError:
        return None
    return None if scanned is None else SlowWork(f"page {scanned + 1} is a scan", pages)


def _is_scan(pdf: pypdfium2.PdfDocument, number: int) -> bool:
    page = pdf[number]
    try:
        text = page.get_textpage()
        try:
            characters = text.count_chars()
        finally:
            text.close()
        if not is_scan(characters, has_picture=True):
            return False
        pictures = page.get_objects(filter=[pypdfium2.raw.FPDF_PAGEOBJ_IMAGE], max_depth=NESTED_FORMS)
        return is_scan(characters, any(True for _ in pictures))
    finally:
        page.close()
