from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from primer_core.lanes import FastLane, SlowTime, SlowWork
from primer_resources.parser.base import ParseRequest
from primer_resources.parser.docling_parser import PREPARE, PROGRAMS, DoclingParser
from primer_resources.parser.triage import slow_work
from primer_resources.workers import WorkerLimits, WorkerPool
from tests.primer_resources.parser.conftest import MEMORY, Make

FAST = FastLane(file_bytes=1 << 30, pages=5)
WORDS = "The harbour master signs the book of the tides each evening, rain or shine."


def triage(tmp_path: Path, data: bytes) -> SlowWork | None:
    path = tmp_path / "file"
    path.write_bytes(data)
    return slow_work(path, FAST)


def test_one_scanned_page_among_others_makes_a_document_slow(make: Make, tmp_path: Path) -> None:
    assert triage(tmp_path, make.pdf(WORDS, "picture", WORDS)) == SlowWork("page 2 needs OCR", 3)


@pytest.mark.parametrize("pages", [(WORDS,) * 5, ("",), ("Page 1",)])
def test_pages_of_text_and_blank_ones_are_fast(make: Make, tmp_path: Path, pages: tuple[str, ...]) -> None:
    assert triage(tmp_path, make.pdf(*pages)) is None


def test_a_long_file_is_slow_by_its_page_count(make: Make, tmp_path: Path) -> None:
    found = triage(tmp_path, make.pdf(*[WORDS] * 6))
    assert found is not None
    assert found.pages == 6


def test_what_is_no_pdf_or_cannot_be_opened_is_left_to_the_parse(make: Make, tmp_path: Path) -> None:
    whole = make.pdf(WORDS, "picture")
    for data in (b"", b"# Notes", make.docx(), b"%PDF-1.4 nonsense", whole[: len(whole) // 3], make.pdf(WORDS, encrypt=True)):
        assert triage(tmp_path, data) is None


def test_scans_of_the_corpus_are_slow_and_its_handbooks_are_not(corpus: Path) -> None:
    fast = FastLane(file_bytes=1 << 30, pages=1_000)
    scans = sorted((corpus / "ocr" / "pages").glob("*.pdf"))
    assert scans
    assert [path.name for path in scans if slow_work(path, fast) is None] == []
    assert slow_work(corpus / "files/drive/Engineering/amt_handbook_sample.pdf", fast) is None


def test_the_fast_lane_hands_a_scan_over_and_the_slow_one_takes_it(make: Make, tmp_path: Path) -> None:
    """Through real workers: one pool, asked as either lane."""
    (tmp_path / "mixed.pdf").write_bytes(make.pdf(WORDS, "picture"))
    (tmp_path / "note.md").write_bytes(b"# Note\n\nThe ferry leaves at nine.")
    requests = [ParseRequest(name, tmp_path / name, name) for name in ("mixed.pdf", "note.md")]
    pool: WorkerPool[Any] = WorkerPool(WorkerLimits(1, MEMORY, 100, timedelta(seconds=120)), PREPARE, PROGRAMS)
    lanes = (FAST, SlowTime(timedelta(minutes=2), timedelta(seconds=1)))
    try:
        fast, slow = ({o.key: o for o in DoclingParser(pool, 2, lane=lane).parse_many(requests)} for lane in lanes)
    finally:
        pool.close()
    handed = fast["mixed.pdf"]
    assert (handed.parsed, handed.fault, handed.slow) == (None, None, SlowWork("page 2 needs OCR", 2))
    assert fast["note.md"].parsed is not None
    assert all(outcome.slow is None and outcome.parsed is not None for outcome in slow.values())
