"""Scans and pictures through the whole parser: what is read, what waits for a person, what is refused and why."""

import ctypes
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pypdfium2
import pytest

from primer_core.elements import ElementKind
from primer_core.failures import DocumentFault, PrimerError, Reason
from primer_core.recognised import DEFAULT_BAR
from primer_core.reviews import ReviewPage
from primer_core.routing import Format
from primer_resources.parser.elements import list_elements
from primer_resources.parser.engines.source import Source
from primer_resources.parser.ocr import docling_engine
from primer_resources.parser.ocr.config import OcrConfig
from primer_resources.parser.ocr.installation import check_languages, installed_languages
from primer_resources.parser.ocr.read_image import read_image
from primer_resources.parser.pdf.read import read_pdf


def scan_pdf(*pages: Any) -> bytes:
    """A PDF whose pages are pictures."""
    out = io.BytesIO()
    pages[0].save(out, "PDF", resolution=300, save_all=True, append_images=list(pages[1:]))
    return out.getvalue()


def joined(*files: bytes) -> bytes:
    """One PDF of the pages of several."""
    whole, out = pypdfium2.PdfDocument.new(), io.BytesIO()
    for data in files:
        whole.import_pages(pypdfium2.PdfDocument(data))
    whole.save(out)
    return out.getvalue()


def with_text_layer(data: bytes, text: str) -> bytes:
    """The PDF with invisible text on its first page, as OCR programs write it."""
    pdf, out, raw = pypdfium2.PdfDocument(data), io.BytesIO(), pypdfium2.raw
    page, line = pdf[0], raw.FPDFPageObj_NewTextObj(pdf.raw, b"Helvetica", 8.0)
    encoded = (text + "\0").encode("utf-16-le")
    raw.FPDFText_SetText(line, ctypes.cast(ctypes.create_string_buffer(encoded), raw.FPDF_WIDESTRING))
    raw.FPDFTextObj_SetTextRenderMode(line, raw.FPDF_TEXTRENDERMODE_INVISIBLE)
    raw.FPDFPageObj_Transform(line, 1, 0, 0, 1, 40, 200)
    raw.FPDFPage_InsertObject(page.raw, line)
    page.gen_content()
    pdf.save(out)
    return out.getvalue()


Read = Callable[..., tuple[str, tuple[ReviewPage, ...]]]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Reads a file's bytes; its text and its pages to review."""

    def reader(data: bytes, accepted: frozenset[int] = frozenset(), format_: Format = Format.PDF) -> tuple[str, tuple[ReviewPage, ...]]:
        path = tmp_path / "content"
        path.write_bytes(data)
        source = Source(path, "scan.pdf", format_, accepted, OcrConfig())
        converted = (read_pdf if format_ is Format.PDF else read_image)(source)
        return "\n".join(element.text for element in list_elements(converted.document)), converted.reviews

    return reader


@pytest.fixture
def rendered(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the pages that OCR looks at, from 1."""
    seen: list[int] = []
    render = docling_engine.render_page

    def watch(path: Path, number: int) -> Any:
        seen.append(number + 1)
        return render(path, number)

    monkeypatch.setattr(docling_engine, "render_page", watch)
    return seen


SENTENCE = "A sentence of the text layer that is longer than any stamp or page number on a scanned page"


def test_of_a_mixed_pdf_only_the_scanned_page_is_read_by_ocr(read: Read, make: Any, draw: Any, rendered: list[int]) -> None:
    text, reviews = read(joined(make.pdf(f"{SENTENCE} one."), scan_pdf(draw.text()), make.pdf(f"{SENTENCE} three.")))
    assert rendered == [2]
    assert text.index("page one") < text.index("harbour master") < text.index("page three")
    assert "before the ropes are made fast" in text
    assert reviews == ()


def test_a_page_that_nobody_could_read_waits_and_the_others_are_indexed(read: Read, draw: Any) -> None:
    data = scan_pdf(draw.text(), draw.unreadable())
    text, reviews = read(data)
    assert "harbour master" in text
    (review,) = reviews
    assert review.page == 2
    assert review.confidence < DEFAULT_BAR
    assert review.image.startswith(b"\x89PNG")
    assert review.text
    assert not any(len(word) > 3 and word in text for word in review.text.split())


def test_what_a_person_let_through_is_text(read: Read, draw: Any) -> None:
    data = scan_pdf(draw.unreadable())
    assert read(data)[0] == ""
    text, reviews = read(data, accepted=frozenset({1}))
    assert text
    assert reviews == ()


def test_a_broken_text_layer_is_replaced_by_what_the_page_shows(read: Read, draw: Any, rendered: list[int]) -> None:
    garbage = "".join(chr(ord(char) - 29) if char != " " else " " for char in SENTENCE).replace("\\", "")
    text, _ = read(with_text_layer(scan_pdf(draw.text()), garbage))
    assert rendered == [1]
    assert "before the ropes are made fast" in text
    assert garbage.split()[1] not in text


def test_a_scan_with_a_sound_text_layer_is_left_to_it(read: Read, draw: Any, rendered: list[int]) -> None:
    text, _ = read(with_text_layer(scan_pdf(draw.text()), SENTENCE))
    assert rendered == []
    assert SENTENCE in text


def test_a_table_on_a_scan_is_a_table(tmp_path: Path, draw: Any) -> None:
    path = tmp_path / "content"
    path.write_bytes(draw.encoded(draw.table()))
    converted = read_image(Source(path, "table.png", Format.IMAGE))
    (table,) = [element for element in list_elements(converted.document) if element.kind is ElementKind.TABLE]
    assert "| Bexley | 1866 | 120451 |" in table.text


@pytest.mark.parametrize(
    ("format_", "options"),
    [("PNG", {}), ("JPEG", {}), ("BMP", {}), ("WEBP", {"lossless": True}), ("TIFF", {}), ("TIFF", {"compression": "tiff_lzw"})],
)
def test_every_image_format_is_read(read: Read, draw: Any, format_: str, options: dict[str, Any]) -> None:
    text, reviews = read(draw.encoded(draw.text(draw.lines[:2]), format_=format_, **options), format_=Format.IMAGE)
    assert " ".join(text.split()) == " ".join(draw.lines[:2])
    assert reviews == ()


def test_a_fax_of_several_pages_is_read(tmp_path: Path, draw: Any) -> None:
    pages = [draw.text([line, f"and this is sheet {number}"]).convert("1") for number, line in enumerate(draw.lines[:3], start=1)]
    path = tmp_path / "content"
    path.write_bytes(draw.encoded(*pages, format_="TIFF", compression="group4"))
    converted = read_image(Source(path, "fax.tif", Format.IMAGE))
    assert converted.pages == 3
    places = {element.page: element.text for element in list_elements(converted.document)}
    assert sorted(places) == [1, 2, 3]
    assert draw.lines[1] in " ".join(places[2].split())


def test_a_picture_without_text_says_so(read: Read, draw: Any) -> None:
    from PIL import Image

    with pytest.raises(DocumentFault, match="no text was found") as caught:
        read(draw.encoded(Image.new("L", (900, 900), 200)), format_=Format.IMAGE)
    assert caught.value.reason is Reason.EMPTY


def test_without_tesseract_scans_end_with_a_reason_and_texts_are_read(
    read: Read, make: Any, draw: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DocumentFault, match="apt-get install tesseract-ocr") as caught:
        read(joined(make.pdf(SENTENCE), scan_pdf(draw.text())))
    assert caught.value.reason is Reason.OCR_UNAVAILABLE
    assert "page 2" in caught.value.message
    assert SENTENCE in read(make.pdf(SENTENCE))[0]
    check_languages(("deu",))


def test_a_language_that_is_not_installed_is_refused_with_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "tesseract"
    program.write_text("#!/bin/sh\necho 'List of available languages (2):'; echo eng; echo osd\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert installed_languages() == {"eng", "osd"}
    check_languages(("eng",))
    with pytest.raises(PrimerError, match=r"chi_sim.*apt-get install tesseract-ocr-chi-sim"):
        check_languages(("eng", "chi_sim"))
