"""What a born-digital PDF becomes: reading order, kinds, levels, tables, running lines."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from docling_core.types.doc import ContentLayer

from primer_core.elements import Element, ElementKind
from primer_core.failures import DocumentFault, Reason, SystemFault
from primer_core.pdf_engines import PdfEngine
from primer_core.quality.order import order_score
from primer_core.routing import Format
from primer_resources.parser.elements import list_elements
from primer_resources.parser.engines.source import Converted, Source
from primer_resources.parser.ocr.config import OcrConfig
from primer_resources.parser.pdf.config import PdfConfig
from primer_resources.parser.pdf.models import open_models
from primer_resources.parser.pdf.read import read_pdf
from primer_resources.parser.version import parser_spec
from tests.primer_resources.parser.pdf.conftest import build, grid, paragraph, put, rule

Read = Callable[..., Converted]
K = ElementKind


def elements(converted: Converted) -> tuple[Element, ...]:
    return list_elements(converted.document)


def furniture(converted: Converted) -> list[str]:
    return [item.text for item in converted.document.texts if item.content_layer is ContentLayer.FURNITURE]


def test_two_columns_under_a_narrow_centred_title_are_read_one_after_the_other(read: Read) -> None:
    page = put("Storage of goods", 230, 60, size=18, font=1) + put("Scope", 60, 110, size=12, font=1)
    page += paragraph("Left words of the text", 60, 130, 20) + paragraph("Right words of the text", 330, 112, 20)
    found = elements(read(page))
    assert [(e.kind, e.text.split()[0], e.level) for e in found] == [
        (K.HEADING, "Storage", 1),
        (K.HEADING, "Scope", 2),
        (K.PARAGRAPH, "Left", None),
        (K.PARAGRAPH, "Right", None),
    ]
    assert [int(n) for n in re.findall(r"line (\d+)", found[2].text + found[3].text)] == [*range(20), *range(20)]


def test_numbered_headings_lists_and_hyphens(read: Read) -> None:
    page = put("Handbook", 60, 40, size=20, font=1)
    page += put("1 Storage", 60, 90, size=13, font=1) + paragraph("Goods are stored", 60, 112, 3)
    page += put("1.1 Cold rooms", 60, 170, size=13, font=1)
    page += put("The temperature of each room is read by the in-", 60, 192) + put("strument on the door and noted.", 60, 204)
    page += put("\u2022", 70, 228) + put("Close the door", 90, 228) + put("\u2022", 70, 240) + put("Note the time", 90, 240)
    found = elements(read(page))
    assert [(e.text, e.level) for e in found if e.kind is K.HEADING] == [("Handbook", 1), ("1 Storage", 2), ("1.1 Cold rooms", 3)]
    assert any("read by the instrument on the door" in e.text for e in found)
    assert [e.text for e in found if e.kind is K.LIST_ITEM] == ["Close the door", "Note the time"]


def test_running_headers_footers_and_page_numbers_are_kept_once_and_in_no_element(read: Read) -> None:
    pages = [
        put("Handbook of storage", 60, 30, size=8)
        + paragraph(f"Text of page {name}", 60, 100, 12)
        + put(f"Page {n} of 4", 280, 760, size=8)
        for n, name in enumerate(("one", "two", "three", "four"), start=1)
    ]
    converted = read(*pages)
    text = "\n".join(e.text for e in elements(converted))
    assert "Handbook of storage" not in text
    assert " of 4" not in text
    assert sorted(furniture(converted)) == ["Handbook of storage", "Page 1 of 4"]
    assert [e.page for e in elements(converted)] == [1, 2, 3, 4]


def test_a_document_of_running_lines_only_keeps_them(read: Read) -> None:
    assert [e.text for e in elements(read(put("Confidential", 60, 30), put("Confidential", 60, 30)))] == ["Confidential", "Confidential"]


def test_a_ruled_table_that_goes_on_over_the_page_is_one_with_one_header(read: Read) -> None:
    head = ["Part", "Qty", "Price"]
    first = [head, *([f"bolt {n}", str(n), f"{n}.50"] for n in range(20))]
    second = [head, *([f"nut {n}", str(n), f"{n}.75"] for n in range(5))]
    page_one = put("Table 1. Stock", 60, 90) + grid(first, 60, 110)
    page_two = grid(second, 60, 60) + paragraph("After the table", 60, 300, 3)
    found = elements(read(page_one, page_two))
    assert [e.kind for e in found] == [K.CAPTION, K.TABLE, K.PARAGRAPH]
    rows = found[1].text.split("\n")
    assert rows[0] == "| Part | Qty | Price |"
    assert len(rows) == 2 + 25
    assert rows[-1] == "| nut 4 | 4 | 4.75 |"
    assert rows.count("| Part | Qty | Price |") == 1


def test_two_tables_with_other_columns_stay_two(read: Read) -> None:
    one = grid([["Part", "Qty"], ["bolt", "1"], ["nut", "2"]], 60, 600)
    other = grid([["Name", "Room"], ["Ann", "4"], ["Bob", "5"]], 200, 60)
    assert [e.kind for e in elements(read(one, other))] == [K.TABLE, K.TABLE]


def test_tables_without_sides_and_without_any_rule(read: Read) -> None:
    rows = [
        ("Country", "Area", "Capital"),
        ("Austria", "83,879", "Vienna"),
        ("Belgium", "30,689", "Brussels"),
        ("Denmark", "42,951", "Oslo"),
    ]
    placed = b"".join(put(text, 60 + 150 * n, 112 + 14 * m) for m, row in enumerate(rows) for n, text in enumerate(row))
    rules = rule(55, 108, 480, 108) + rule(55, 123, 480, 123) + rule(55, 172, 480, 172)
    wanted = "\n".join(["| Country | Area | Capital |", "| --- | --- | --- |", *("| " + " | ".join(row) + " |" for row in rows[1:])])
    for page in (rules + placed, placed):
        assert [e.text for e in elements(read(page + paragraph("Text below", 60, 300, 4))) if e.kind is K.TABLE] == [wanted]


def test_code_keeps_its_lines(read: Read) -> None:
    page = paragraph("Words before the listing", 60, 60, 4)
    page += put("def f(x):", 60, 130, font=2) + put("return x", 84, 142, font=2) + paragraph("Words after it", 60, 180, 4)
    assert [e.text for e in elements(read(page)) if e.kind is K.CODE] == ["def f(x):\n    return x"]


def test_a_paragraph_goes_on_over_the_page_and_an_unrelated_one_does_not(read: Read) -> None:
    begun = b"".join(put(f"Words that run on and on to the edge of the page, line {n} and", 60, 600 + 12 * n) for n in range(8))
    goes_on = put("then end on the next page, after words enough to be taken for the rest of it and no label.", 60, 60)
    assert len(elements(read(begun, goes_on))) == 1
    assert [e.page for e in elements(read(put("Page one words", 60, 400), put("Page two words", 60, 400)))] == [1, 2]


def test_a_page_that_fails_is_named_and_never_left_out_in_silence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from primer_resources.parser.pdf import postprocess

    whole = postprocess.lay_out

    def fail_on_the_second(page: object) -> object:
        if getattr(page, "page_no", 0) == 2:
            raise ValueError("bad page")
        return whole(page)  # type: ignore[arg-type]

    monkeypatch.setattr(postprocess, "lay_out", fail_on_the_second)
    path = tmp_path / "content"
    path.write_bytes(build(*(paragraph(f"Page {name}", 60, 60, 3) for name in ("one", "two", "three"))))
    with pytest.raises(DocumentFault, match=r"1 of 3 pages could not be read \(pages 2\)") as caught:
        read_pdf(Source(path, "paper.pdf", Format.PDF))
    assert caught.value.reason is Reason.INCOMPLETE


def test_models_that_are_not_there_stop_the_start_and_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(SystemFault, match=r"PRIMER_PDF_ENGINE.*cannot be loaded.*PRIMER_DOCLING_ARTIFACTS"):
        open_models(PdfConfig(PdfEngine.MODELS, tmp_path))


def test_the_engine_and_its_models_are_in_the_version(tmp_path: Path) -> None:
    (tmp_path / "weights").write_bytes(b"1")
    one = parser_spec(OcrConfig(), PdfConfig(PdfEngine.MODELS, tmp_path)).version
    (tmp_path / "weights").write_bytes(b"12")
    other = parser_spec(OcrConfig(), PdfConfig(PdfEngine.MODELS, tmp_path)).version
    rules = parser_spec(OcrConfig(), PdfConfig()).version
    assert "pdf=rules" in rules
    assert len({one, other, rules}) == 3


@pytest.mark.parametrize(
    ("name", "opening", "later"),
    [
        ("Research/multicolumn.pdf", "Two-Column Document", "EU Countries Information"),
        ("Research/multi-column-2p.pdf", "Dense Passage Retrieval", "Retrieval in open-domain QA is usually implemented"),
        ("Engineering/amt_handbook_sample.pdf", "pulleys, provided", "Elastic Stop Nut"),
    ],
)
def test_real_columns_are_read_down_and_then_across(corpus: Path, name: str, opening: str, later: str) -> None:
    path = corpus / "files" / "drive" / name
    texts = [e.text for e in elements(read_pdf(Source(path, path.name, Format.PDF)))]
    assert texts[0].startswith(opening)
    assert any(later in text for text in texts)


def test_a_real_table_of_a_paper_cell_by_cell(corpus: Path) -> None:
    path = corpus / "files" / "drive" / "Engineering" / "2305.03393v1-pg9.pdf"
    found = elements(read_pdf(Source(path, path.name, Format.PDF)))
    (table,) = [e.text for e in found if e.kind is K.TABLE]
    rows = table.split("\n")
    assert rows[3] == "| 6 | 6 | OTSL | 0.965 | 0.934 | 0.955 | 0.88 | 2.73 |"
    assert rows[-1] == "| 4 | 2 | HTML | 0.944 | 0.903 | 0.931 | 0.824 | 2 |"
    headings = [e.text for e in found if e.kind is K.HEADING]
    assert headings == ["5.1 Hyper Parameter Optimization", "5.2 Quantitative Results"]
    assert order_score(" ".join(headings), "5.1 Hyper Parameter Optimization 5.2 Quantitative Results") == 1.0
