"""Files of every format, made by the libraries that people's programs are like, and a parser that several tests share."""

import io
import sys
import zipfile
from collections.abc import Callable, Iterator
from datetime import timedelta
from email.message import EmailMessage
from importlib import import_module
from pathlib import Path
from typing import Any

import docx
import pptx
import pytest
import xlsxwriter

from primer_resources.parser.docling_parser import PREPARE, PROGRAMS, DoclingParser
from primer_resources.workers import WorkerLimits, WorkerPool

TASKS = Path(__file__).parents[1]
MEMORY = 4 * 2**30


class Make:
    """Builders of small real files; each gives bytes."""

    @staticmethod
    def docx(paragraphs: tuple[str, ...] = ("The quick brown fox.",), heading: str = "Storage rules", header: str = "") -> bytes:
        document = docx.Document()
        if heading:
            document.add_heading(heading, level=1)
        for text in paragraphs:
            document.add_paragraph(text)
        document.add_paragraph("First point", style="List Bullet") if heading else None
        if heading:
            table = document.add_table(rows=2, cols=2)
            for n, text in enumerate(("Part", "Qty", "Bolt | nut", "0037")):
                table.cell(n // 2, n % 2).text = text
        if header:
            document.sections[0].header.paragraphs[0].text = header
        return _saved(document)

    @staticmethod
    def pptx(*titles: str, notes: str = "") -> bytes:
        slides = pptx.Presentation()
        for title in titles:
            slide = slides.slides.add_slide(slides.slide_layouts[1])
            slide.shapes.title.text = title
            slide.placeholders[1].text = f"About {title}"
            if notes:
                slide.notes_slide.notes_text_frame.text = notes
        return _saved(slides)

    @staticmethod
    def xlsx(**sheets: list[list[Any]]) -> bytes:
        out = io.BytesIO()
        book = xlsxwriter.Workbook(out, {"in_memory": True})
        for name, rows in sheets.items():
            sheet = book.add_worksheet(name)
            for n, row in enumerate(rows):
                sheet.write_row(n, 0, row)
        book.close()
        return out.getvalue()

    @staticmethod
    def eml(subject: str, body: str, html: str = "", attachment: str = "") -> bytes:
        mail = EmailMessage()
        mail["From"], mail["To"], mail["Subject"] = "Ann <ann@example.org>", "bob@example.org", subject
        mail.set_content(body)
        if html:
            mail.add_alternative(html, subtype="html")
        if attachment:
            mail.add_attachment(b"\x00\x01" * 500, maintype="application", subtype="octet-stream", filename=attachment)
        return bytes(mail)

    @staticmethod
    def pdf(*pages: str, encrypt: bool = False) -> bytes:
        """A PDF written by hand; a page of "" is blank, one of "picture" shows a grey dot and no text."""
        objects: list[bytes] = [b"<< /Type /Catalog /Pages 2 0 R >>", b""]
        objects += [b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"]
        dot = b"<< /Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceGray /BitsPerComponent 8 /Length 1 >>"
        objects += [dot + b"\nstream\n\x80\nendstream"]
        kids = []
        for text in pages:
            words = text.replace("(", "\\(").replace(")", "\\)").encode("cp1252")
            show = b"BT /F 12 Tf 72 720 Td (" + words + b") Tj ET" if text else b""
            if text == "picture":
                show = b"q 300 0 0 300 100 300 cm /P Do Q"
            objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(show), show))
            resources = b"<< /Font << /F 3 0 R >> /XObject << /P 4 0 R >> >>"
            objects.append(
                b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources %s /Contents %d 0 R >>" % (resources, len(objects))
            )
            kids.append(b"%d 0 R" % len(objects))
        objects[1] = b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(kids), b" ".join(kids))
        out, places = b"%PDF-1.4\n", []
        for number, body in enumerate(objects, start=1):
            places.append(len(out))
            out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
        start = len(out)
        out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + b"".join(b"%010d 00000 n \n" % place for place in places)
        lock = b" /Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <%s> /U <%s> >> /ID [<00> <00>]" % (b"11" * 32, b"22" * 32)
        lock = lock if encrypt else b""
        return out + b"trailer\n<< /Size %d /Root 1 0 R%s >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, lock, start)

    @staticmethod
    def zip(**members: bytes) -> bytes:
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, body in members.items():
                archive.writestr(name, body)
        return out.getvalue()

    @staticmethod
    def rezip(data: bytes, change: Callable[[str, bytes], bytes]) -> bytes:
        """The same zip with each member changed."""
        out = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
            for entry in old.infolist():
                new.writestr(entry.filename, change(entry.filename, old.read(entry)))
        return out.getvalue()


def _saved(document: Any) -> bytes:
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


@pytest.fixture(scope="session")
def make() -> Make:
    return Make()


@pytest.fixture(scope="session")
def poison() -> Any:
    """The module of bad tasks, importable by name in the workers too."""
    if str(TASKS) not in sys.path:
        sys.path.insert(0, str(TASKS))
    return import_module("poison_tasks")


@pytest.fixture(scope="session")
def parser() -> Iterator[DoclingParser]:
    pool: WorkerPool[Any] = WorkerPool(WorkerLimits(2, MEMORY, 100, timedelta(seconds=60)), PREPARE, PROGRAMS)
    yield DoclingParser(pool, max_file_mb=2)
    pool.close()
