"""Rows and worst pages of a parser whose answers are known."""

import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from primer_core.conservation import Conservation
from primer_core.elements import Element, ElementKind, ParsedDocument
from primer_core.failures import DocumentFault, Reason
from primer_core.quality.scores import Truth
from primer_core.recipe import ParserSpec
from primer_core.reviews import ReviewPage
from primer_core.routing import Format
from primer_resources.parser.base import ParseOutcome, ParseRequest
from primer_resources.quality.folder import Candidate
from primer_resources.quality.measuring import engine_of, measure
from primer_resources.quality.metering import metered_task
from primer_resources.quality.worst import PageRead, WorstPages

SPEC = ParserSpec("docling", "rules=2;lib=1.0;pdf=rules;ocr=tesseract-5")


def parsed(*pages: str) -> ParsedDocument:
    elements = tuple(Element(n, ElementKind.PARAGRAPH, text, None, n) for n, text in enumerate(pages, start=1) if text)
    return ParsedDocument(elements, len(pages), b"")


@dataclass
class Scripted:
    """Answers by content; `seen` are the copies that it was given, and whether they could be written."""

    answers: dict[str, ParseOutcome]
    seen: list[Path] = field(default_factory=list)
    spec: ParserSpec = SPEC

    def parse_many(self, requests: Iterable[ParseRequest]) -> Iterator[ParseOutcome]:
        for request in requests:
            assert request.path.stat().st_mode & 0o777 == 0o400
            self.seen.append(request.path)
            yield self.answers[request.key]


@pytest.fixture
def candidate(tmp_path: Path) -> Callable[..., Candidate]:
    def make(name: str, truth: str = "", format_: Format = Format.PDF) -> Candidate:
        path = tmp_path / name
        path.write_text(name)
        return Candidate(path, name, format_, name, Truth(truth, is_markdown=False) if truth else None)

    return make


def test_pages_are_scored_one_by_one_and_a_page_without_words_counts(candidate: Callable[..., Candidate]) -> None:
    worst = WorstPages()
    parser = Scripted({"a.pdf": ParseOutcome("a.pdf", 1.5, parsed("one two three", "", "seven eight nine"), None)})
    truth = "one two three four five six seven eight nine"
    (row,) = measure([candidate("a.pdf", truth)], parser, lambda request: 0.5 if request.key == "a.pdf" else None, worst)
    assert (row.engine, row.seconds, row.cpu_seconds, row.pages) == ("rules", 1.5, 0.5, 3)
    assert (row.order, row.recall) == (0.8, pytest.approx(6 / 9))
    assert [(page.page, page.score, page.truth) for page in worst.pages] == [(2, 0, "four five six")]
    assert not parser.seen[0].exists()


def test_a_document_in_review_is_scored_by_what_waits_and_is_not_read(candidate: Callable[..., Candidate]) -> None:
    worst = WorstPages()
    fault = DocumentFault(Reason.OCR_BELOW_BAR, "a.png: none of its 1 scanned pages is readable enough")
    outcome = ParseOutcome("a.png", 1.0, None, fault, (ReviewPage(1, 0.2, "a bxd page", b""),))
    (row,) = measure([candidate("a.png", "a bad page", Format.IMAGE)], Scripted({"a.png": outcome}), lambda _request: None, worst)
    assert (row.reason, row.in_review, row.pages, row.characters) == (Reason.OCR_BELOW_BAR, 1, 1, 0)
    assert row.cer == pytest.approx(0.1)
    (page,) = worst.pages
    assert (page.in_review, page.texts, page.message) == ({1}, {1: "a bxd page"}, fault.message)


def test_without_a_truth_the_words_that_were_kept_are_the_score(candidate: Callable[..., Candidate]) -> None:
    worst = WorstPages()
    kept = Conservation(0.75, 4, ("lost",))
    answers = {name: ParseOutcome(name, 1.0, parsed("some words here"), None, kept=kept) for name in ("a.pdf", "b.docx")}
    rows = list(measure([candidate("a.pdf"), candidate("b.docx", format_=Format.DOCX)], Scripted(answers), lambda _request: None, worst))
    assert [(row.score, row.words, row.missing) for row in rows] == [(0.75, 4, ("lost",))] * 2
    assert [(page.name, page.page, page.score) for page in worst.pages] == [("a.pdf", None, 0.75)]


def test_a_picture_that_could_not_be_read_though_its_truth_is_known_is_the_worst(candidate: Callable[..., Candidate]) -> None:
    worst = WorstPages()
    outcome = ParseOutcome("a.png", 1.0, None, DocumentFault(Reason.OCR_UNAVAILABLE, "no Tesseract"))
    (row,) = measure([candidate("a.png", "words", Format.IMAGE)], Scripted({"a.png": outcome}), lambda _request: None, worst)
    assert row.order is row.score is None
    assert [(page.page, page.score, page.message) for page in worst.pages] == [(1, 0, "no Tesseract")]


NO_LAYER, LAYER = Conservation(1.0, 0), Conservation(1.0, 9)
BELOW = DocumentFault(Reason.OCR_BELOW_BAR, "below")


@pytest.mark.parametrize(
    ("format_", "outcome", "engine"),
    [
        (Format.DOCX, ParseOutcome("x", 0, parsed("a"), None), "docling"),
        (Format.IMAGE, ParseOutcome("x", 0, parsed("a"), None), "tesseract-5"),
        (Format.PDF, ParseOutcome("x", 0, parsed("a"), None, kept=LAYER), "rules"),
        (Format.PDF, ParseOutcome("x", 0, parsed("a"), None, kept=NO_LAYER), "tesseract-5"),
        (Format.PDF, ParseOutcome("x", 0, None, BELOW), "tesseract-5"),
        (Format.PDF, ParseOutcome("x", 0, None, DocumentFault(Reason.ENCRYPTED, "locked")), "rules"),
    ],
)
def test_the_engine_is_what_the_parsers_version_says_of_the_format(format_: Format, outcome: ParseOutcome, engine: str) -> None:
    assert engine_of(SPEC, format_, outcome) == engine


def test_only_the_worst_are_kept_and_none_without_a_fault() -> None:
    page = PageRead(1.0, "order", "a.pdf", Path("a.pdf"), Format.PDF, 1, {})
    worst = WorstPages(most=2)
    for score in (0.9, 1.0, 0.3, 0.5, 0.3):
        worst.add(replace(page, score=score, name=f"{len(worst.pages)}.pdf"))
    assert [page.score for page in worst.pages] == [0.3, 0.3]


def burn_in_a_child(_directory: Path, seconds: str) -> str:
    script = f"import time\nwhile time.process_time() < {seconds}: pass"
    subprocess.run([sys.executable, "-S", "-c", script], check=True)
    return "done"


def test_what_a_task_starts_is_part_of_its_cost(tmp_path: Path) -> None:
    assert metered_task(tmp_path, burn_in_a_child, "0.3") == "done"
    assert float((tmp_path / "cpu-seconds").read_text()) >= 0.29


def test_a_task_that_fails_has_its_cost_too(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        metered_task(tmp_path, lambda _directory: 1 // 0)
    assert float((tmp_path / "cpu-seconds").read_text()) >= 0
