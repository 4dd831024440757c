"""Triage: what a look inside tells of a file's lane, before anything is parsed. Runs in a worker, whose limits bound it."""

from pathlib import Path

import pypdfium2

from primer_core.lanes import FastLane, SlowWork
from primer_core.page_kinds import page_kind
from primer_core.routing import PDF_MAGIC, PDF_MAGIC_WITHIN

NESTED_FORMS = 3
"""How deep pictures are looked for: a scanner's driver may wrap the picture of a page in a form or two."""


def slow_work(path: Path, fast: FastLane) -> SlowWork | None:
    """Why the file is work for the slow lane; None where the fast lane takes it, or where it cannot be opened (the parse says why).

    Cheap: the look ends at the first page that needs OCR, and a file with more pages than the fast lane takes is not looked into at all.
    """
    with path.open("rb") as file:
        if PDF_MAGIC not in file.read(PDF_MAGIC_WITHIN):
            return None
    try:
        with pypdfium2.PdfDocument(path) as pdf:
            pages = len(pdf)
            if pages > fast.pages:
                return SlowWork(f"it has {pages} pages, more than the {fast.pages} of the fast lane", pages)
            unread = next((number for number in range(pages) if _needs_ocr(pdf, number)), None)
    except pypdfium2.PdfiumError:
        return None
    return None if unread is None else SlowWork(f"page {unread + 1} needs OCR", pages)


def ocr_pages(path: Path) -> int | None:
    """How many pages of a PDF file need OCR; None where it cannot be opened."""
    try:
        with pypdfium2.PdfDocument(path) as pdf:
            return sum(_needs_ocr(pdf, number) for number in range(len(pdf)))
    except pypdfium2.PdfiumError:
        return None


def _needs_ocr(pdf: pypdfium2.PdfDocument, number: int) -> bool:
    page = pdf[number]
    try:
        layer = page.get_textpage()
        try:
            text = layer.get_text_bounded()
        finally:
            layer.close()
        if not page_kind(text, has_picture=True).needs_ocr:
            return False  # pictures are looked for only where they matter: that is the dearer look
        pictures = page.get_objects(filter=[pypdfium2.raw.FPDF_PAGEOBJ_IMAGE], max_depth=NESTED_FORMS)
        return page_kind(text, any(True for _ in pictures)).needs_ocr
    finally:
        page.close()
