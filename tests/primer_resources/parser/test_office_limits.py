"""An office file that would make its reader build too much is refused by a count, before anything is loaded."""

import io
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from primer_core.failures import DocumentFault, Reason
from primer_core.routing import Format
from primer_resources.parser import office_mend, part_limits
from primer_resources.parser.office_mend import mend_office
from primer_resources.parser.part_limits import check_parts


def reason_of(folder: Path, data: bytes, format_: Format) -> Reason | None:
    path = folder / "content"
    path.write_bytes(data)
    try:
        check_parts(path, "report", format_)
    except DocumentFault as fault:
        return fault.reason
    return None


def with_paragraphs(make: Any, count: int) -> bytes:
    many = b"<w:p><w:r><w:t>many</w:t></w:r></w:p>" * count
    result: bytes = make.rezip(
        make.docx(), lambda name, part: part.replace(b"<w:body>", b"<w:body>" + many) if name == "word/document.xml" else part
    )
    return result


def sheet_of(make: Any, cells: bytes) -> bytes:
    result: bytes = make.rezip(
        make.xlsx(S=[["x"]]),
        lambda name, part: b"<worksheet><sheetData><row>" + cells + b"</row></sheetData></worksheet>" if "worksheets/" in name else part,
    )
    return result


def test_a_document_of_six_hundred_thousand_paragraphs_is_refused(make: Any, tmp_path: Path) -> None:
    assert reason_of(tmp_path, with_paragraphs(make, 600_000), Format.DOCX) is Reason.TOO_LARGE
    assert reason_of(tmp_path, with_paragraphs(make, 1_000), Format.DOCX) is None


def test_paragraphs_are_counted_across_pieces(make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_limits, "_CHUNK", 7)
    monkeypatch.setattr(part_limits, "MAX_PARAGRAPHS", 45)
    assert reason_of(tmp_path, with_paragraphs(make, 30), Format.DOCX) is None
    assert reason_of(tmp_path, with_paragraphs(make, 60), Format.DOCX) is Reason.TOO_LARGE


def test_slides_are_counted_too(make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_limits, "MAX_PARAGRAPHS", 3)
    assert reason_of(tmp_path, make.pptx("One"), Format.PPTX) is None
    assert reason_of(tmp_path, make.pptx("One", "Two"), Format.PPTX) is Reason.TOO_LARGE


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        (b'<c r="XFD1048576"><v>1</v></c>', None),
        (b'<c r="A1"><v>1</v></c><c r="XFD1048576"><v>1</v></c>', Reason.TOO_LARGE),
        (b'<c r="A1"><v>1</v></c><c r="XFD1048576" s="1"/>', None),
        (b"<c r='A1' s='1'><v>1</v></c><x:c s='1' r='C2000000'><v>1</v></x:c>", Reason.TOO_LARGE),
        (b'<c r="A1"/>' * 101, Reason.TOO_LARGE),
    ],
    ids=["one cell far out", "two cells far apart", "a style far out", "attributes in any order", "many styled cells"],
)
def test_a_sheet_is_measured_by_what_it_spans(
    make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cells: bytes, reason: Reason | None
) -> None:
    monkeypatch.setattr(part_limits, "MAX_CELLS", 100)
    assert reason_of(tmp_path, sheet_of(make, cells), Format.XLSX) is reason


def test_a_part_that_cannot_be_unpacked_is_corrupt(make: Any, tmp_path: Path) -> None:
    data = bytearray(make.docx())
    at = data.index(b"word/document.xml") + len("word/document.xml")
    data[at + 20 : at + 60] = bytes(40)
    assert reason_of(tmp_path, bytes(data), Format.DOCX) is Reason.CORRUPT


def huge_png(width: int, height: int) -> bytes:
    """A picture that says it is huge; nobody may unpack it to see."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    made = b"\x89PNG\r\n\x1a\n"
    for kind, body in ((b"IHDR", header), (b"IDAT", zlib.compress(b"")), (b"IEND", b"")):
        made += struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    return made


@pytest.mark.parametrize(("side", "is_kept"), [(3_000, True), (12_000, False), (60_000, False)])
def test_a_picture_of_absurd_size_is_made_a_dot(make: Any, side: int, is_kept: bool) -> None:
    picture = huge_png(side, side)
    members = {"word/document.xml": b"<x/>", "word/media/image1.png": picture}
    mended = mend_office(make.zip(**members))
    kept = make.zip(**members) == mended or picture in mended
    assert kept is is_kept
    with Image.open(io.BytesIO(office_mend._DOT)) as dot:
        dot.load()
        assert dot.size == (1, 1)
