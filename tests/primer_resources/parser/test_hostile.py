"""Files that fight back: each ends within its limits with the right reason, the documents around it are parsed, nothing is left behind.

All go through the parser's port in one batch, so they hold for whatever engine reads a format.
"""

import struct
import tempfile
import zlib
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest

from primer_core.failures import Reason
from primer_resources.parser.base import ParseOutcome, ParseRequest
from primer_resources.parser.docling_parser import PREPARE, PROGRAMS, DoclingParser
from primer_resources.workers import WorkerLimits, WorkerPool

SECRET = "the words of a file on this machine"
TIMEOUT = timedelta(seconds=300)
CPU_TIME = timedelta(seconds=60)

PARSED = None
NOT_READ = frozenset({Reason.EMPTY, Reason.TOO_LARGE, Reason.PARSE_MEMORY, Reason.PARSE_TIMEOUT, Reason.CORRUPT})
"""How a bomb may end, which says more of the engine than of the file."""


def ole_file(*streams: str) -> bytes:
    """An OLE container ([MS-CFB]) of empty streams: what Office wraps a file with a password in."""
    end = 0xFFFFFFFE
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16)
    header += struct.pack("<HHHHH6xIIIIIIIII", 62, 3, 0xFFFE, 9, 6, 0, 1, 1, 0, 4096, end, 0, end, 0)
    header += struct.pack("<I", 0) + b"\xff" * (512 - len(header) - 4)
    fat = struct.pack("<II", 0xFFFFFFFD, 0xFFFFFFFE) + b"\xff" * 504
    entries = []
    for number, name in enumerate(("Root Entry", *streams)):
        raw = name.encode("utf-16-le") + b"\x00\x00"
        child, right = (1, 0xFFFFFFFF) if number == 0 else (0xFFFFFFFF, number + 1 if number < len(streams) else 0xFFFFFFFF)
        links = struct.pack("<BBIII", 5 if number == 0 else 2, 1, 0xFFFFFFFF, right, child)
        entries.append(raw.ljust(64, b"\x00") + struct.pack("<H", len(raw)) + links + bytes(36) + struct.pack("<IQ", end, 0))
    return header + fat + b"".join(entries).ljust(512, b"\x00")


def bomb_pdf(megabytes: int) -> bytes:
    """A page whose content unpacks a thousandfold."""
    data = zlib.compress(b" " * (megabytes * 2**20), 9)
    bodies = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count 1 /Kids [4 0 R] >>",
        b"<< /Filter /FlateDecode /Length %d >>\nstream\n%s\nendstream" % (len(data), data),
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 3 0 R >>",
    ]
    out, places = b"%PDF-1.4\n", []
    for number, body in enumerate(bodies, start=1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"xref\n0 5\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % place for place in places)
    return out + table + b"trailer\n<< /Size 5 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % len(out)


BOMB = b'<!DOCTYPE x [<!ENTITY a0 "lol">' + b"".join(
    b'<!ENTITY a%d "%s">' % (level, b"&a%d;" % (level - 1) * 10) for level in range(1, 10)
)  # fmt: skip


def hostile_files(make: Any, secret: Path) -> dict[str, tuple[bytes, Reason | frozenset[Reason] | None]]:
    """name → (bytes, how it must end)."""
    docx, pptx, pdf = make.docx(), make.pptx("Plans"), make.pdf("Page one words", "Page two words")
    xlsx = make.xlsx(S=[["part", "qty"], ["bolt", 37]])

    def body(data: bytes, change: Callable[[bytes], bytes], part: str = "word/document.xml") -> bytes:
        changed: bytes = make.rezip(data, lambda name, old: change(old) if name == part else old)
        return changed

    external = b'<!DOCTYPE x [<!ENTITY a SYSTEM "%s">' % secret.as_uri().encode()
    declare = b"?>\n%s]>"
    many = b"<w:p><w:r><w:t>many</w:t></w:r></w:p>" * 600_000
    far = b'<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>1</v></c></row></sheetData>'
    alone = b'<row r="1048576"><c r="XFD1048576"><v>4711</v></c></row></sheetData>'
    sheet = "xl/worksheets/sheet1.xml"

    def rows(new: bytes) -> bytes:
        return body(xlsx, lambda old: old[: old.index(b"<row")] + new + old[old.index(b"</sheetData>") + len("</sheetData>") :], sheet)

    return {
        "password.docx": (ole_file("EncryptionInfo", "EncryptedPackage"), Reason.ENCRYPTED),
        "password.xlsx": (ole_file("EncryptedPackage"), Reason.ENCRYPTED),
        "password.pdf": (make.pdf("words", encrypt=True), Reason.ENCRYPTED),
        "half.docx": (docx[: len(docx) // 2], Reason.TRUNCATED),
        "half.pptx": (pptx[: len(pptx) // 2], Reason.TRUNCATED),
        "half.xlsx": (xlsx[: len(xlsx) // 2], Reason.TRUNCATED),
        "half.pdf": (pdf[: len(pdf) // 2], Reason.TRUNCATED),
        "nothing.pdf": (b"", Reason.EMPTY),
        "a thousandfold.docx": (body(docx, lambda old: old + b" " * (60 * 2**20)), Reason.TOO_LARGE),
        "a thousandfold.pptx": (body(pptx, lambda old: old + b" " * (60 * 2**20), "ppt/presentation.xml"), Reason.TOO_LARGE),
        "paragraphs.docx": (body(docx, lambda old: old.replace(b"<w:body>", b"<w:body>" + many)), Reason.TOO_LARGE),
        "far corner.xlsx": (rows(far), Reason.TOO_LARGE),
        "one cell.xlsx": (rows(alone), PARSED),
        "nine hundred pages.pdf": (make.pdf(*(f"Words of page {number}" for number in range(900))), PARSED),
        "deep.html": (b"<html><body>" + b"<div>" * 5_000 + b"inmost words" + b"</div>" * 5_000, PARSED),
        "deep.md": (b">" * 3_000 + b" inmost words", Reason.CORRUPT),
        "deep.docx": (body(docx, lambda old: old.replace(b"<w:body>", b"<w:body>" + b"<w:tbl>" * 3_000)), Reason.CORRUPT),
        "nul.html": (b"<p>before\x00after</p>", PARSED),
        "nul.md": (b"# Title\n\nwords\x00 more\n", PARSED),
        "nul.csv": (b"a,b\n1\x00,2\n", PARSED),
        "nothing but nul.txt": (bytes(5_000), Reason.UNSUPPORTED_FORMAT),
        "laughs.docx": (body(docx, lambda old: old.replace(b"?>", declare % BOMB, 1).replace(b"fox", b"&a9;")), Reason.CORRUPT),
        "laughs.xlsx": (
            body(xlsx, lambda old: old.replace(b"?>", declare % BOMB, 1).replace(b"bolt", b"&a9;"), "xl/sharedStrings.xml"),
            Reason.CORRUPT,
        ),
        "external.docx": (body(docx, lambda old: old.replace(b"?>", declare % external, 1).replace(b"fox", b"&a;")), Reason.CORRUPT),
        "external.xlsx": (
            body(xlsx, lambda old: old.replace(b"?>", declare % external, 1).replace(b"bolt", b"&a;"), "xl/sharedStrings.xml"),
            Reason.CORRUPT,
        ),
        "external.html": (b"<p>words</p><img src='%s'><object data='%s'></object>" % ((secret.as_uri().encode(),) * 2), PARSED),
        "bomb.pdf": (bomb_pdf(150), NOT_READ),
    }


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files go in this test."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def parse_all(requests: Iterator[ParseRequest], root: Path, programs: tuple[str, ...]) -> dict[str, ParseOutcome]:
    """Parse in one pool with ordinary limits; nothing of it may outlive it."""
    limits = WorkerLimits(1, 4 * 2**30, 200, TIMEOUT, cpu_time=CPU_TIME)
    pool: WorkerPool[Any] = WorkerPool(limits, PREPARE, programs)
    outcomes = {}
    seen: set[psutil.Process] = set()
    for outcome in DoclingParser(pool, max_file_mb=20).parse_many(requests):
        outcomes[outcome.key] = outcome
        seen.update(psutil.Process().children(recursive=True))
    mine = [process for process in seen if process.is_running() and process.pid in pool.pids]
    pool.close()
    assert not psutil.wait_procs(mine, timeout=20)[1]
    assert not list(root.iterdir())
    return outcomes


def test_each_hostile_file_ends_with_its_reason_and_its_neighbours_are_parsed(make: Any, root: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text(SECRET)
    files = hostile_files(make, secret)

    def requests() -> Iterator[ParseRequest]:
        for number, (name, (data, _)) in enumerate(files.items()):
            for each, content in ((name, data), (f"neighbour {number}.md", b"# Good\n\nneighbour")):
                path = tmp_path / f"content-{number}{each[:9]}"
                path.write_bytes(content)
                yield ParseRequest(each, path, each)

    outcomes = parse_all(requests(), root, PROGRAMS)

    ends = {name: outcomes[name].fault.reason if outcomes[name].fault else None for name in files}
    wrong = {
        name: end for name, end in ends.items() if not (end in wanted if isinstance(wanted := files[name][1], frozenset) else end is wanted)
    }
    assert not wrong
    for name, outcome in outcomes.items():
        assert outcome.seconds < TIMEOUT.total_seconds()
        if outcome.fault is not None:
            assert name in outcome.fault.message
            assert "\n" not in outcome.fault.message
            assert SECRET not in outcome.fault.message
        else:
            assert outcome.parsed is not None
            text = "\n".join(element.text for element in outcome.parsed.elements)
            assert text.strip()
            assert SECRET not in text
            assert "\x00" not in text
        if name.startswith("neighbour"):
            assert outcome.fault is None
    words = {name: "\n".join(element.text for element in parsed.elements) for name in files if (parsed := outcomes[name].parsed)}
    assert "4711" in words["one cell.xlsx"]
    assert "inmost words" in words["deep.html"]
    assert "Words of page 899" in words["nine hundred pages.pdf"]


LOCKED = ("password", "protected", "bug53475")
OPEN_ALL_THE_SAME = ("copy-protected.pdf", "testPDF_protected.pdf")
"""Locked against changes only."""


def test_every_real_problem_file_ends_well(corpus: Path, root: Path) -> None:
    folder = corpus / "files" / "drive" / "Problem files"
    paths = sorted(path for path in folder.iterdir() if path.is_file())
    # Without OCR: what a scan costs is measured elsewhere.
    outcomes = parse_all((ParseRequest(path.name, path, path.name) for path in paths), root, ())

    assert set(outcomes) == {path.name for path in paths}
    for path in paths:
        outcome = outcomes[path.name]
        end = outcome.fault.reason if outcome.fault else None
        if path.name in OPEN_ALL_THE_SAME:
            assert end is None, path.name
        elif any(word in path.name for word in LOCKED):
            assert end is Reason.ENCRYPTED, path.name
        elif path.stat().st_size == 0:
            assert end is Reason.EMPTY, path.name
        elif "clusterfuzz" in path.name or "xmlbomb" in path.name:
            assert end in (Reason.CORRUPT, Reason.TRUNCATED), path.name
        elif "runcated" in path.name:
            assert end is Reason.TRUNCATED, path.name
        elif path.suffix in (".bin", ".m4a", ".odt"):
            assert end is Reason.UNSUPPORTED_FORMAT, path.name
        if outcome.parsed is not None:
            assert any(element.text.strip() for element in outcome.parsed.elements), path.name
