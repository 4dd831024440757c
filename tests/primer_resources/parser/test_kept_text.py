"""Every format's words are counted by a reader of its own; what Docling would lose is mended, what is left out has a name."""

import io
import re
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import docx
import pytest
import xlsxwriter
from docx.oxml import parse_xml

from primer_core.conservation import Conservation
from primer_core.recipe import ChunkerKind
from primer_resources.chunker.factory import make_chunker, options_for
from primer_resources.embedder.model import resolve_model
from primer_resources.parser.base import ParseOutcome, ParseRequest
from primer_resources.parser.docling_parser import DoclingParser
from primer_resources.settings import BUNDLED_MODEL
from tests.primer_resources.parser.conftest import _saved

Parse = Callable[[str, bytes], ParseOutcome]
W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'


@pytest.fixture
def parse(parser: DoclingParser, tmp_path: Path) -> Parse:
    def run(name: str, data: bytes) -> ParseOutcome:
        path = tmp_path / "content"
        path.write_bytes(data)
        (outcome,) = parser.parse_many([ParseRequest("h", path, name)])
        assert outcome.parsed is not None, outcome.fault
        return outcome

    return run


def kept(outcome: ParseOutcome) -> Conservation:
    assert outcome.kept is not None
    return outcome.kept


def text_of(outcome: ParseOutcome) -> str:
    assert outcome.parsed is not None
    return "\n".join(element.text for element in outcome.parsed.elements)


def test_every_format_keeps_its_words_and_names_its_losses(parse: Parse, make: Any) -> None:
    files: dict[str, tuple[bytes, set[str]]] = {
        "report.docx": (make.docx(header="Company"), {"headers and footers"}),
        "talk.pptx": (make.pptx("Plans", "Costs", notes="Say this"), set()),
        "book.xlsx": (make.xlsx(Stock=[["part", "qty"], ["bolt", 37], ["nut", 0.25]]), {"sheet names"}),
        "page.html": (
            b"<title>T</title><style>p {}</style><h1>A</h1><p>b <i>c</i> d</p><p hidden>x</p><footer>Legal notice</footer>",
            {"page head", "hidden", "furniture"},
        ),
        "page.md": (
            b"---\ntags: [x]\n---\n# A\n\n1. Ask [early](http://x.y/z)\n2. ![alt](p.png) `code` {% include x %}\n\n"
            b"<!-- note -->\n\n```sh\nls\n```\n",
            {"front matter", "link targets", "pictures", "template codes", "comments", "code languages", "list numbers"},
        ),
        "mail.eml": (make.eml("Lunch", "At noon.\n\nBring bread.", html="<p>At noon.</p>", attachment="menu.bin"), set()),
        "parts.csv": (b"part;qty\nbolt;0037\n", set()),
        "note.txt": (b"First line\nsecond\n\nNext", set()),
        "paper.pdf": (make.pdf("Page one words", "", "Page three words"), set()),
    }
    for name, (data, losses) in files.items():
        found = kept(parse(name, data))
        assert found.share == 1.0, (name, found)
        assert found.words > 2, name
        assert losses <= set(dict(found.losses)), (name, found.losses)


def test_lost_words_are_noticed_and_named(parse: Parse, make: Any) -> None:
    bodies = make.rezip(
        make.docx(("Kept words here.",)),
        lambda name, part: (
            part.replace(b"</w:body>", b"</w:body><w:body><w:p><w:r><w:t>forgotten elsewhere entirely</w:t></w:r></w:p></w:body>")
            if name == "word/document.xml"
            else part
        ),
    )
    found = kept(parse("two bodies.docx", bodies))
    assert found.is_flagged
    assert set(found.missing) == {"forgotten", "elsewhere", "entirely"}


def test_content_controls_and_annotated_words_are_read(parse: Parse) -> None:
    document = docx.Document()
    cell = document.add_table(rows=1, cols=1).cell(0, 0)
    control = f"<w:sdt {W}><w:sdtContent><w:p><w:r><w:t>chosen item</w:t></w:r></w:p></w:sdtContent></w:sdt>"
    cell._tc.insert(1, parse_xml(control))
    base = "<w:rubyBase><w:r><w:t>Tokyo town</w:t></w:r></w:rubyBase>"
    ruby = f"<w:r {W}><w:ruby><w:rt><w:r><w:t>toukyou</w:t></w:r></w:rt>{base}</w:ruby></w:r>"
    document.add_paragraph("Go to ")._p.append(parse_xml(ruby))
    outcome = parse("form.docx", _saved(document))
    assert "chosen item" in text_of(outcome)
    assert "Go to Tokyo town" in text_of(outcome)
    assert kept(outcome).share == 1.0
    assert dict(kept(outcome).losses)["reading aids"] == 1


def drawing(words: str) -> str:
    xdr = 'xmlns:xdr="http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing"'
    lines = "".join(f"<a:p><a:r><a:t>{line}</a:t></a:r></a:p>" for line in (words, "second line"))
    shape = f"<xdr:sp><xdr:txBody>{lines}</xdr:txBody></xdr:sp>"
    return f"<xdr:wsDr {xdr} {A}><xdr:twoCellAnchor>{shape}</xdr:twoCellAnchor></xdr:wsDr>"


def test_text_boxes_on_a_sheet_stand_on_its_page(parse: Parse, make: Any) -> None:
    sheet = "xl/worksheets/sheet2.xml"
    relations = (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Target="../drawings/'
        'drawing1.xml" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/drawing"/></Relationships>'
    )
    extra = {"xl/drawings/drawing1.xml": drawing("A boxed remark").encode(), f"xl/worksheets/_rels/{sheet[14:]}.rels": relations.encode()}
    outcome = parse("boxes.xlsx", with_members(make, make.xlsx(One=[["first sheet"]], Two=[["second sheet"]]), extra))
    assert outcome.parsed is not None
    assert ("A boxed remark\nsecond line", 2) in [(element.text, element.page) for element in outcome.parsed.elements]
    assert kept(outcome).share == 1.0


def test_smart_art_stands_on_its_slide(parse: Parse, make: Any) -> None:
    slides = make.pptx("Plans", "Costs")
    dgm = 'xmlns:dgm="http://schemas.openxmlformats.org/drawingml/2006/diagram"'
    point = "<dgm:pt><dgm:t><a:p><a:r><a:t>Step one</a:t></a:r></a:p></dgm:t></dgm:pt>"
    model = f"<dgm:dataModel {dgm} {A}><dgm:ptLst>{point}</dgm:ptLst></dgm:dataModel>"
    link = (
        '<Relationship Id="rId99" Target="../diagrams/data1.xml" '
        'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/diagramData"/></Relationships>'
    )
    linked = make.rezip(
        slides,
        lambda name, part: part.replace(b"</Relationships>", link.encode()) if name == "ppt/slides/_rels/slide2.xml.rels" else part,
    )
    outcome = parse("art.pptx", with_members(make, linked, {"ppt/diagrams/data1.xml": model.encode()}))
    assert outcome.parsed is not None
    assert ("Step one", 2) in [(element.text, element.page) for element in outcome.parsed.elements]
    assert kept(outcome).share == 1.0


def with_members(make: Any, data: bytes, extra: dict[str, bytes]) -> bytes:
    old: dict[str, bytes] = {}
    make.rezip(data, lambda name, part: old.setdefault(name, part))
    result: bytes = make.zip(**old, **extra)
    return result


def test_an_end_tag_with_more_in_it_ends_the_script(parse: Parse) -> None:
    outcome = parse("bad.html", b"<body><script>x</script language><p>This is a test.</p></body>")
    assert text_of(outcome) == "This is a test."


def test_codes_in_a_page_leave_the_link_and_go_to_the_metadata(parse: Parse) -> None:
    page = b'---\ntitle: T\nowner: Ann\n---\nSee [travel]({% page "/travel-101/" %}) first.\n'
    outcome = parse("page.md", page)
    assert text_of(outcome) == "T\nSee travel first."
    assert outcome.parsed is not None
    assert outcome.parsed.metadata == {
        "front_matter": {"title": "T", "owner": "Ann"},
        "template_codes": ['{% page "/travel-101/" %}'],
    }


@pytest.mark.parametrize("suffix", [".docx", ".pptx", ".xlsx", ".html", ".md", ".eml"])
def test_the_corpus_keeps_its_text(parser: DoclingParser, corpus: Path, suffix: str) -> None:
    folders = [corpus / "files" / "drive" / name for name in ("Finance", "HR", "Legal", "Engineering", "Slides", "Mail")]
    paths = [path for folder in [*folders, corpus / "files" / "wiki"] for path in sorted(folder.rglob(f"*{suffix}"))]
    chosen = [path for path in paths if path.stat().st_size < 60_000][:12]
    assert chosen
    shares = {}
    for outcome in parser.parse_many(ParseRequest(str(path), path, path.name) for path in chosen):
        if outcome.parsed is not None:
            shares[Path(outcome.key).name] = kept(outcome).share
    assert sum(shares.values()) / len(shares) >= 0.98, shares


def test_what_a_sheet_shows_is_in_its_rows(parse: Parse) -> None:
    out = io.BytesIO()
    book = xlsxwriter.Workbook(out, {"in_memory": True})
    day, moment = book.add_format({"num_format": "dd.mm.yyyy"}), book.add_format({"num_format": "yyyy-mm-dd hh:mm"})
    sheet = book.add_worksheet("Figures")
    sheet.merge_range(0, 0, 0, 2, "Quarter")
    sheet.write_row(1, 0, ["when", "at", "sum"])
    sheet.write_datetime(2, 0, date(2024, 3, 5), day)
    sheet.write_datetime(2, 1, datetime(2024, 3, 5, 14, 30), moment)  # noqa: DTZ001 - a sheet's dates have no zone
    sheet.write_formula(2, 2, "=1+1", None, 42)
    sheet.merge_range(3, 0, 4, 0, "both rows")
    sheet.write_row(3, 1, ["up", 1])
    sheet.write_row(4, 1, ["down", 2])
    hidden = book.add_worksheet("Lists")
    hidden.write(0, 0, "hidden but there")
    hidden.hide()
    book.close()
    outcome = parse("figures.xlsx", out.getvalue())
    text = text_of(outcome)
    assert "| 2024-03-05 | 2024-03-05 14:30:00 | 42 |" in text
    assert re.search(r"\| both rows \| up \| 1 \|\n\| both rows \| down \| 2 \|", text)
    assert "hidden but there" in text
    assert kept(outcome).share == 1.0


def test_each_piece_of_a_long_sheet_has_its_header(parse: Parse, make: Any) -> None:
    rows = [["part number", "description", "price"], *([f"P-{n}", f"Bolt of size {n} for the {n}th frame", n * 1.5] for n in range(120))]
    outcome = parse("long.xlsx", make.xlsx(Stock=rows))
    assert outcome.parsed is not None
    options = options_for(ChunkerKind.HYBRID, resolve_model(BUNDLED_MODEL), max_tokens=400, overlap_percent=15)
    chunks = make_chunker(options).chunk(outcome.parsed)
    assert len(chunks) > 3
    assert all("| part number | description | price |" in chunk.text for chunk in chunks)
    assert sum(chunk.text.count("| P-") for chunk in chunks) == 120
