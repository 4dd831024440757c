"""OCR in the worker pool: Tesseract may be started there, LibreOffice may not, and no Tesseract outlives its worker."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil

from primer_core.failures import Reason
from primer_resources.parser.base import ParseRequest
from primer_resources.parser.docling_parser import PROGRAMS, DoclingParser, open_worker_pool
from primer_resources.parser.ocr.config import ocr_config
from primer_resources.parser.pdf.config import PdfConfig
from primer_resources.parser.version import parser_spec
from primer_resources.settings import Settings
from primer_resources.workers import Call, WorkerLimits, WorkerPool

SECONDS = 20
"""How long a process may take to be gone; it is awaited, not slept."""


def tesseracts() -> list[psutil.Process]:
    """The Tesseracts that this process's workers have started."""
    return [process for process in psutil.Process().children(recursive=True) if process.name() == "tesseract"]


def test_a_killed_worker_takes_its_tesseract_with_it(poison: Any) -> None:
    def calls() -> Iterator[Call[str]]:
        yield Call("reads", poison.hang_in_tesseract, ())
        while not tesseracts():
            yield Call("passes the time", poison.double, (1,))

    pool: WorkerPool[str] = WorkerPool(WorkerLimits(2, 2**30, 10_000, timedelta(seconds=120)), programs=PROGRAMS)
    running = pool.run(calls())
    while not (found := tesseracts()):
        assert next(running).key == "passes the time"
    running.close()
    pool.close()
    assert not psutil.wait_procs(found, timeout=SECONDS)[1]


def test_a_parse_may_start_tesseract_and_nothing_else(poison: Any) -> None:
    pool = open_worker_pool(Settings(parse_workers=1))
    pool._prepare = ""  # Docling is not wanted here
    (finished,) = pool.run([Call("a", poison.surroundings, ())])
    pool.close()
    assert finished.value["tesseract"] is not None
    assert [finished.value[name] for name in ("sh", "soffice", "libreoffice")] == [None, None, None]
    assert finished.value["OMP_THREAD_LIMIT"] == "1"


def test_scans_go_through_the_workers_with_their_reviews(parser: DoclingParser, draw: Any, tmp_path: Path) -> None:
    files = {
        "letter.png": draw.encoded(draw.text()),
        "mixed.tif": draw.encoded(draw.text(), draw.unreadable(), format_="TIFF", compression="tiff_lzw"),
        "scrawl.png": draw.encoded(draw.unreadable()),
    }
    requests = []
    for name, data in files.items():
        path = tmp_path / f"content-{len(requests)}"
        path.write_bytes(data)
        requests.append(ParseRequest(name, path, name))
    outcomes = {outcome.key: outcome for outcome in parser.parse_many(requests)}

    letter, mixed, scrawl = (outcomes[name] for name in files)
    assert letter.fault is None
    assert letter.parsed is not None
    assert "before the ropes are made fast" in " ".join(" ".join(element.text.split()) for element in letter.parsed.elements)
    assert mixed.parsed is not None
    assert mixed.parsed.pages == 2
    assert {element.page for element in mixed.parsed.elements} == {1}
    assert [review.page for review in mixed.reviews] == [2]
    assert scrawl.fault is not None
    assert scrawl.fault.reason is Reason.OCR_BELOW_BAR
    assert [review.image[:4] for review in scrawl.reviews] == [b"\x89PNG"]


def test_what_is_chosen_about_ocr_is_in_the_parsers_version() -> None:
    plain, chosen = (
        parser_spec(ocr_config(settings), PdfConfig()) for settings in (Settings(), Settings(ocr_languages=("deu", "eng"), ocr_bar=0.5))
    )
    assert plain.version != chosen.version
    assert "ocr_languages=deu+eng" in chosen.version
    assert "ocr_bar=0.5" in chosen.version
