"""Every format gives the same kind of element list; every bad file gives its own fault and leaves the rest of the batch alone."""

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest
from docling_core.types.doc import DoclingDocument

from primer_core.elements import ElementKind
from primer_core.failures import Reason, SystemFault
from primer_resources.parser.base import ParseOutcome, ParseRequest
from primer_resources.parser.docling_parser import PREPARE, DoclingParser, judge
from primer_resources.parser.ocr.config import OcrConfig
from primer_resources.parser.pdf.config import PdfConfig
from primer_resources.parser.version import parser_spec
from primer_resources.workers import Call, WorkerLimits, WorkerPool

Parse = Callable[[dict[str, bytes]], dict[str, ParseOutcome]]
K = ElementKind


def requests(folder: Path, files: dict[str, bytes]) -> list[ParseRequest]:
    """Private copies with names that say nothing, as the store gives them."""
    made = []
    for number, (name, data) in enumerate(files.items()):
        path = folder / f"content-{number}"
        path.write_bytes(data)
        made.append(ParseRequest(name, path, name))
    return made


@pytest.fixture
def parse(parser: DoclingParser, tmp_path: Path) -> Parse:
    """Parse named files in one batch; the outcomes by name."""

    def run(files: dict[str, bytes]) -> dict[str, ParseOutcome]:
        outcomes = {outcome.key: outcome for outcome in parser.parse_many(requests(tmp_path, files))}
        assert set(outcomes) == set(files)
        return outcomes

    return run


def listed(outcome: ParseOutcome) -> list[tuple[ElementKind, str, int | None, int | None]]:
    assert outcome.parsed is not None, outcome.fault
    elements = outcome.parsed.elements
    assert [element.order for element in elements] == list(range(len(elements)))
    return [(element.kind, element.text, element.level, element.page) for element in elements]


def texts(outcome: ParseOutcome) -> list[str]:
    return [text for _, text, _, _ in listed(outcome)]


def reasons(outcomes: dict[str, ParseOutcome]) -> dict[str, Reason | None]:
    return {name: outcome.fault.reason if outcome.fault else None for name, outcome in outcomes.items()}


def test_every_format_gives_elements_and_a_document(parse: Parse, make: Any) -> None:
    files = {
        "page.html": b"<title>T</title><h1>Leave</h1><p>Ask <b>early</b>, please.</p><ul><li>one</li></ul><pre>x = 1</pre>"
        b"<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table><h2>More</h2><p>Words.</p>",
        "page.md": b"# Leave\n\nAsk *early*, please.\n\n- one\n\n```\nx = 1\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n## More\n\nWords.\n",
        "note.txt": b"First <line>\nsecond *line*\n\nNext paragraph_with_name\fNew page",
        "parts.csv": b"part;qty\nbolt;0037\n",
        "parts.tsv": b"part\tqty\nbolt\t0037\n",
        "report.docx": make.docx(),
        "talk.pptx": make.pptx("Plans", "Costs"),
        "book.xlsx": make.xlsx(Stock=[["part", "qty"], ["bolt", 37]], Other=[["alone"]]),
        "mail.eml": make.eml("Lunch", "At noon.\n\nBring bread.", html="<p>At noon.</p>", attachment="menu.bin"),
        "paper.pdf": make.pdf("Page one words", "", "Page three words"),
    }
    outcomes = parse(files)

    page = [
        (K.HEADING, "Leave", 1, None),
        (K.PARAGRAPH, "Ask early, please.", None, None),
        (K.LIST_ITEM, "one", None, None),
        (K.CODE, "x = 1", None, None),
        (K.TABLE, "| a | b |\n| --- | --- |\n| 1 | 2 |", None, None),
        (K.HEADING, "More", 2, None),
        (K.PARAGRAPH, "Words.", None, None),
    ]
    assert listed(outcomes["page.html"]) == page
    assert listed(outcomes["page.md"]) == page
    assert texts(outcomes["note.txt"]) == ["First <line>\nsecond *line*", "Next paragraph_with_name", "New page"]
    table = (K.TABLE, "| part | qty |\n| --- | --- |\n| bolt | 0037 |", None, None)
    assert listed(outcomes["parts.csv"]) == listed(outcomes["parts.tsv"]) == [table]
    assert listed(outcomes["report.docx"]) == [
        (K.HEADING, "Storage rules", 1, None),
        (K.PARAGRAPH, "The quick brown fox.", None, None),
        (K.LIST_ITEM, "First point", None, None),
        (K.TABLE, "| Part | Qty |\n| --- | --- |\n| Bolt \\| nut | 0037 |", None, None),
    ]
    assert [(text, page) for _, text, _, page in listed(outcomes["talk.pptx"])] == [
        ("Plans", 1),
        ("About Plans", 1),
        ("Costs", 2),
        ("About Costs", 2),
    ]
    assert [(text, page) for _, text, _, page in listed(outcomes["book.xlsx"])] == [
        ("| part | qty |\n| --- | --- |\n| bolt | 37 |", 1),
        ("| alone |\n| --- |", 2),
    ]
    assert texts(outcomes["mail.eml"])[0] == "Lunch"
    assert {"At noon.", "Bring bread.", "menu.bin (application/octet-stream)"} <= set(texts(outcomes["mail.eml"]))
    assert [(text, page) for _, text, _, page in listed(outcomes["paper.pdf"])] == [("Page one words", 1), ("Page three words", 3)]
    pages = {name: outcome.parsed.pages for name, outcome in outcomes.items() if outcome.parsed}
    assert pages == dict.fromkeys(files) | {"talk.pptx": 2, "book.xlsx": 2, "paper.pdf": 3}

    for name, outcome in outcomes.items():
        assert outcome.parsed is not None
        raw = pa.CompressedInputStream(pa.BufferReader(outcome.parsed.docling_json_zst), "zstd").read()
        document = DoclingDocument.model_validate_json(raw)
        assert document.name == "document", name
        assert document.texts or document.tables


def test_the_bytes_choose_the_reader(parse: Parse, make: Any) -> None:
    outcomes = parse(
        {
            "a.pdf": make.docx(),
            "b.docx": make.pdf("Really a pdf"),
            "c.txt": b"<!doctype html><p>Really a page",
            "d": make.xlsx(S=[["Really a sheet"]]),
        }
    )
    assert texts(outcomes["a.pdf"])[1] == "The quick brown fox."
    assert texts(outcomes["b.docx"]) == ["Really a pdf"]
    assert texts(outcomes["c.txt"]) == ["Really a page"]
    assert texts(outcomes["d"]) == ["| Really a sheet |\n| --- |"]


def test_one_content_gives_one_document_whatever_its_name(parse: Parse, make: Any) -> None:
    one, two = parse({"a.docx": make.docx(), "b.docx": make.docx()}).values()
    # Made twice, the zip's times may differ; the content is what the names must not touch.
    assert one.parsed is not None
    assert two.parsed is not None
    assert one.parsed.elements == two.parsed.elements
    same = parse({"x/y.md": b"# A\n\nb", "z.md": b"# A\n\nb"})
    assert same["x/y.md"].parsed == same["z.md"].parsed


def test_front_matter_is_not_text_but_its_title_heads_the_page(parse: Parse) -> None:
    outcomes = parse(
        {
            "untitled.md": b"---\ntitle: Leave rules\npermalink: /secret-path/\n---\nBody.\n\n### Small\n",
            "titled.md": b"---\ntitle: Leave rules\n---\n# Own title\n\nBody.\n",
        }
    )
    assert [element[:3] for element in listed(outcomes["untitled.md"])] == [
        (K.HEADING, "Leave rules", 1),
        (K.PARAGRAPH, "Body.", None),
        (K.HEADING, "Small", 3),
    ]
    assert texts(outcomes["titled.md"]) == ["Own title", "Body."]


def test_no_words_are_lost_where_docling_would_lose_them(parse: Parse, make: Any) -> None:
    commented = make.rezip(
        make.docx(), lambda name, part: part.replace(b"<w:p>", b"<!-- x --><w:p>", 1) if name == "word/document.xml" else part
    )
    transitional = re.compile(rb"http://schemas\.openxmlformats\.org/(spreadsheetml|drawingml|officeDocument)/2006/")
    strict = make.rezip(
        make.xlsx(S=[["part", "bolt"]]),
        lambda name, part: transitional.sub(rb"http://purl.oclc.org/ooxml/\1/", part),
    )
    outcomes = parse(
        {
            "comment.docx": commented,
            "strict.xlsx": strict,
            "spoken.pptx": make.pptx("Plans", notes="Say this aloud"),
            "header only.docx": make.docx((), heading="", header="Only in the header"),
            "intro.html": b"<nav><a href=x>Home</a></nav><p>A whole sentence that stands before the first heading.</p><h1>H</h1><p>x</p>",
            "latin.csv": "Stück;Größe\nMöbel;groß\nTür;klein und schön\n".encode("cp1252"),
            "quotes.csv": b'a,b\n"x"y,2\n3,4\n',
            "nul.html": b"<html><body><p>be\x00fore and after</p></body></html>",
            "wide.eml": make.eml("Lunch", "At noon.").decode().encode("utf-16-be"),
        }
    )
    assert "The quick brown fox." in texts(outcomes["comment.docx"])
    assert texts(outcomes["strict.xlsx"]) == ["| part | bolt |\n| --- | --- |"]
    assert texts(outcomes["spoken.pptx"]) == ["Plans", "About Plans", "Say this aloud"]
    assert texts(outcomes["header only.docx"]) == ["Only in the header"]
    assert "A whole sentence that stands before the first heading." in texts(outcomes["intro.html"])
    assert "Home" not in texts(outcomes["intro.html"])
    assert "Größe" in texts(outcomes["latin.csv"])[0]
    assert "| 3 | 4 |" in texts(outcomes["quotes.csv"])[0]
    assert texts(outcomes["nul.html"]) == ["before and after"]
    assert texts(outcomes["wide.eml"])[0] == "Lunch"


def test_pictures_are_not_kept(parse: Parse) -> None:
    picture = "data:image/png;base64," + "iVBORw0KGgo" * 5_000
    outcome = parse({"a.html": f"<h1>A</h1><p>words</p><img src='{picture}'>".encode()})["a.html"]
    assert outcome.parsed is not None
    assert len(pa.CompressedInputStream(pa.BufferReader(outcome.parsed.docling_json_zst), "zstd").read()) < 5_000


def test_each_fault_has_its_reason_and_names_the_document(parse: Parse, make: Any) -> None:
    whole = make.docx()
    expected = {
        "locked.pdf": (make.pdf("words", encrypt=True), Reason.ENCRYPTED),
        "half.docx": (whole[: len(whole) // 2], Reason.TRUNCATED),
        "tiny.docx": (whole[:200], Reason.TRUNCATED),
        "torn.pdf": (make.pdf("words")[:60], Reason.TRUNCATED),
        "noise.pdf": (b"%PDF-1.4\nnoise\n%%EOF", Reason.CORRUPT),
        "rotten.docx": (make.rezip(whole, lambda name, part: b"<no xml" if name == "word/document.xml" else part), Reason.CORRUPT),
        "empty.md": (b"", Reason.EMPTY),
        "blank.txt": (b"\n \n", Reason.EMPTY),
        "blank.pdf": (make.pdf("", ""), Reason.EMPTY),
        "scan.pdf": (make.pdf("picture", "picture"), Reason.EMPTY),
        "bare.html": (b"<html><body></body></html>", Reason.EMPTY),
        "photo.jpg": (b"\xff\xd8\xff\xe0 picture", Reason.TRUNCATED),
        "film.gif": (b"GIF89a picture", Reason.UNSUPPORTED_FORMAT),
        "stuff.zip": (make.zip(a=b"words"), None),
        "huge.txt": (b"words " * 400_000, Reason.TOO_LARGE),
        "bomb.docx": (make.rezip(whole, lambda name, part: bytes(40 * 2**20) if name == "word/document.xml" else part), Reason.TOO_LARGE),
        "deep.html": (b"<ul><li>x" * 2_000, None),
        "fine.txt": (b"words", None),
    }
    outcomes = parse({name: data for name, (data, _) in expected.items()})
    assert reasons(outcomes) == {name: reason for name, (_, reason) in expected.items()}
    for name, outcome in outcomes.items():
        if outcome.fault:
            assert name in outcome.fault.message
            assert "\n" not in outcome.fault.message
            assert "content-" not in outcome.fault.message
    scan = outcomes["scan.pdf"].fault
    assert scan is not None
    assert "no text was found" in scan.message


def test_the_batch_around_an_endless_document_is_parsed(make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "tmp"
    root.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(root))
    many = b"<w:p><w:r><w:t>many</w:t></w:r></w:p>" * 90_000
    endless = make.rezip(
        make.docx(), lambda name, part: part.replace(b"<w:body>", b"<w:body>" + many) if name == "word/document.xml" else part
    )
    assert len(endless) < 60_000
    files = {"before.md": b"# Before\n\nwords", "endless.docx": endless, "after.md": b"# After\n\nwords"}
    pool: WorkerPool[Any] = WorkerPool(WorkerLimits(1, 2 * 2**30, 100, timedelta(seconds=5)), PREPARE)
    parser = DoclingParser(pool, max_file_mb=10)

    outcomes = {outcome.key: outcome for outcome in parser.parse_many(requests(tmp_path, files))}
    workers = [child for child in psutil.Process().children() if child.pid in pool.pids]
    pool.close()

    assert reasons(outcomes) == {"before.md": None, "endless.docx": Reason.PARSE_TIMEOUT, "after.md": None}
    assert texts(outcomes["after.md"]) == ["After", "words"]
    assert len(workers) == 1
    assert not psutil.wait_procs(workers, timeout=20)[1]
    assert not list(root.iterdir())


def test_each_bad_end_of_a_worker_has_its_reason(poison: Any, tmp_path: Path) -> None:
    limits = WorkerLimits(2, 2**29, 100, timedelta(seconds=10))
    ends = {
        "hangs": (poison.hang_in_c, (), Reason.PARSE_TIMEOUT),
        "leaves": (poison.leave, (0,), Reason.PARSE_CRASH),
        "crashes": (poison.crash, (), Reason.PARSE_CRASH),
        "is killed by the kernel": (poison.be_killed, (), Reason.PARSE_MEMORY),
        "aborts": (poison.abort_like_cplusplus, (), Reason.PARSE_MEMORY),
        "eats memory": (poison.eat_memory, (), Reason.PARSE_MEMORY),
        "raises": (poison.complain, ("bad table",), Reason.CORRUPT),
    }
    pool: WorkerPool[ParseRequest] = WorkerPool(limits)
    calls = [Call(ParseRequest(name, tmp_path, f"{name}.docx"), function, args) for name, (function, args, _) in ends.items()]
    faults = {finished.key.key: judge(finished, limits) for finished in pool.run(calls)}
    pool.close()
    assert {name: fault and fault.reason for name, fault in faults.items()} == {name: reason for name, (_, _, reason) in ends.items()}
    for name, fault in faults.items():
        assert fault is not None
        assert fault.message.count(f"{name}.docx") == 1


def test_a_full_disk_is_no_documents_fault(poison: Any, tmp_path: Path) -> None:
    limits = WorkerLimits(1, 2**29, 100, timedelta(seconds=30))
    pool: WorkerPool[ParseRequest] = WorkerPool(limits)
    (finished,) = pool.run([Call(ParseRequest("a", tmp_path, "a.txt"), poison.fill_the_disk, ())])
    pool.close()
    with pytest.raises(SystemFault, match="No space left"):
        judge(finished, limits)


def test_the_spec_names_what_shapes_the_output_and_imports_nothing_heavy() -> None:
    script = (
        "import sys; from primer_resources.parser.docling_parser import DoclingParser, open_worker_pool\n"
        "from primer_resources.settings import Settings\n"
        "print(DoclingParser(open_worker_pool(Settings()), 1).spec.version)\n"
        "assert not {'docling', 'docling_core', 'torch', 'lxml'} & set(sys.modules), 'heavy'"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == parser_spec(OcrConfig(), PdfConfig()).version
    for name in ("docling-slim=", "docling-core=", "docling-parse=", "rules=", "pdf="):
        assert name in found.stdout


def test_footnotes_are_kept(parser: DoclingParser, corpus: Path) -> None:
    path = corpus / "files" / "drive" / "Office" / "docx-tika" / "testWORD_various.docx"
    (outcome,) = parser.parse_many([ParseRequest("various", path, path.name)])
    assert any("This is a footnote" in text for text in texts(outcome))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("bug53475-password-is-pass.docx", Reason.ENCRYPTED),
        ("password-example.pdf", Reason.ENCRYPTED),
        ("testWORD_truncated.docx", Reason.TRUNCATED),
        ("poc-xmlbomb.xlsx", Reason.CORRUPT),
        ("testODTEncrypted.odt", Reason.UNSUPPORTED_FORMAT),
        ("issue-203-decimalize.pdf", Reason.OCR_BELOW_BAR),
        ("copy-protected.pdf", None),
    ],
)
def test_real_problem_files(parser: DoclingParser, corpus: Path, name: str, reason: Reason | None) -> None:
    path = corpus / "files" / "drive" / "Problem files" / name
    (outcome,) = parser.parse_many([ParseRequest(name, path, name)])
    assert (outcome.fault.reason if outcome.fault else None) is reason
