"""The whole bench over a small folder: real workers, real OCR, one page that was made bad."""

import base64
import ctypes
import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pypdfium2
import pytest
from lxml import etree
from PIL import Image, ImageDraw, ImageFont

from primer_core.failures import SystemFault
from primer_core.pdf_engines import PdfEngine
from primer_resources.quality.bench import run_bench
from primer_resources.quality.folder import Selection
from primer_resources.quality.report import QualityReport
from primer_resources.settings import Settings

GOOD = [
    "The harbour master keeps a list of every vessel that enters",
    "the port between sunset and the morning tide, and each of the",
    "captains reports the draught, the cargo and the passengers.",
]
BAD = [
    "Fishing boats below twelve metres are free of charge always,",
    "larger ships pay by the tonne <script>alert(1)</script> & night,",
    "complaints are heard on Tuesdays in the customs house at noon.",
]
NAME = "port & <rules>.pdf"


class Fixed:
    def now(self) -> datetime:
        return datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)


def draw_pdf(path: Path, *pages: list[str]) -> None:
    """A PDF with a text layer: a line below the other."""
    raw = pypdfium2.raw
    with pypdfium2.PdfDocument.new() as pdf:
        for lines in pages:
            page = pdf.new_page(612, 792)
            for number, line in enumerate(lines):
                text = raw.FPDFPageObj_NewTextObj(pdf, b"Helvetica", ctypes.c_float(14))
                letters = (line + "\x00").encode("utf-16-le")
                raw.FPDFText_SetText(text, ctypes.cast(ctypes.create_string_buffer(letters), ctypes.POINTER(ctypes.c_ushort)))
                raw.FPDFPageObj_Transform(text, 1, 0, 0, 1, 72, 700 - 18 * number)
                raw.FPDFPage_InsertObject(page, text)
            page.gen_content()
        pdf.save(path)


def draw_image(path: Path, lines: list[str]) -> None:
    page = Image.new("L", (1_900, 700), 255)
    pen, font = ImageDraw.Draw(page), ImageFont.load_default(50)
    for number, line in enumerate(lines):
        pen.text((120, 150 + 75 * number), line, fill=0, font=font)
    page.save(path, dpi=(300, 300))


def truth(path: Path, lines: list[str]) -> None:
    path.with_name(path.name + ".truth.txt").write_text("\n".join(lines), encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A PDF whose second page was drawn from below, a picture and a web page."""
    folder = tmp_path_factory.mktemp("documents")
    draw_pdf(folder / NAME, GOOD, BAD[::-1])
    truth(folder / NAME, GOOD + BAD)
    draw_image(folder / "slip.png", GOOD)
    truth(folder / "slip.png", GOOD)
    (folder / "page.html").write_text(f"<!DOCTYPE html><html><body><h1>Port</h1><p>{' '.join(GOOD)}</p></body></html>", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def report(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> QualityReport:
    home = tmp_path_factory.mktemp("home")
    return run_bench(Settings(home=home), Selection(folder, limit=5), lambda _row: None, Fixed())


@pytest.fixture(scope="module")
def data(report: QualityReport, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path, _ = report.write(tmp_path_factory.mktemp("out"))
    assert path.name == "parse_quality-20260504T030201Z.json"
    loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


def test_every_document_is_measured_by_the_engine_that_read_it(data: dict[str, Any]) -> None:
    rows = {(row["path"], row["engine"]): row for row in data["documents"]}
    assert set(rows) == {(NAME, "rules"), (NAME, "native"), ("slip.png", "tesseract-5"), ("page.html", "docling")}
    assert all(row["cpu_seconds"] > 0 and row["seconds"] > 0 and row["reason"] is None for row in rows.values())
    assert rows["slip.png", "tesseract-5"]["cer"] <= 0.02
    assert rows["slip.png", "tesseract-5"]["order"] >= 0.9
    assert 0.4 < rows[NAME, "rules"]["order"] < 0.9
    assert rows[NAME, "rules"]["recall"] == 1
    assert rows[NAME, "rules"]["pages"] == rows[NAME, "native"]["pages"] == 2
    assert (rows["page.html", "docling"]["kept"], rows["page.html", "docling"]["order"]) == (1, None)


def test_figures_are_by_format_and_engine(data: dict[str, Any]) -> None:
    figures = {(row["format"], row["engine"]): row for row in data["figures"]}
    assert set(figures) == {("pdf", "rules"), ("pdf", "native"), ("image", "tesseract-5"), ("html", "docling")}
    assert figures["pdf", "rules"]["pages_per_cpu_second"] > 0
    assert figures["pdf", "rules"]["order_below"] == 1
    assert figures["image", "tesseract-5"]["cer_median"] <= 0.02
    assert figures["html", "docling"]["kept_share"] == 1
    assert (data["made_at"], data["limit"]) == ("2026-05-04T03:02:01+00:00", 5)
    assert "pdf=rules" in data["parser_version"]


def test_the_worst_page_is_the_one_that_was_made_bad(data: dict[str, Any]) -> None:
    worst = data["worst"][0]
    assert (worst["path"], worst["page"], worst["in_review"]) == (NAME, 2, False)
    assert worst["score"] < 0.6
    assert "Fishing boats" in worst["read"]
    assert "harbour" not in worst["read"] + worst["truth"]
    assert (NAME, 1) not in {(page["path"], page["page"]) for page in data["worst"]}


def test_the_page_is_well_formed_names_the_worst_and_shows_it(report: QualityReport) -> None:
    page = etree.fromstring(report.to_html().encode())
    heading = " ".join("".join(page.find(".//section/h3").itertext()).split())
    assert heading.startswith(f"1. {NAME}, page 2:")
    kind, _, picture = page.find(".//section//img").get("src").partition(",")
    assert kind == "data:image/jpeg;base64"
    with Image.open(io.BytesIO(base64.b64decode(picture))) as image:
        assert max(image.size) > 900
        assert image.convert("L").getextrema()[0] < 100


def test_text_of_documents_is_never_markup(report: QualityReport) -> None:
    page = etree.fromstring(report.to_html().encode())
    assert page.findall(".//script") == []
    assert "<script>alert(1)</script>" in "".join(page.find(".//section//pre").itertext())


def test_the_page_needs_no_other_file(report: QualityReport) -> None:
    page = etree.fromstring(report.to_html().encode())
    assert page.findall(".//link") == []
    assert all(image.get("src").startswith("data:") for image in page.iter("img"))


def test_the_engine_that_the_settings_ask_for_is_the_one_that_is_measured(folder: Path, tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, pdf_engine=PdfEngine.MODELS, docling_artifacts=tmp_path)
    with pytest.raises(SystemFault, match="PRIMER_PDF_ENGINE = 'models'"):
        run_bench(settings, Selection(folder), lambda _row: None)


def test_the_table_of_figures_has_a_line_a_format_and_engine(report: QualityReport) -> None:
    lines = report.to_markdown().splitlines()
    assert len({line.count("|") for line in lines}) == 1
    assert [line.split(" | ")[:2] for line in lines[2:]] == [
        ["| html", "docling"],
        ["| image", "tesseract-5"],
        ["| pdf", "native"],
        ["| pdf", "rules"],
    ]
