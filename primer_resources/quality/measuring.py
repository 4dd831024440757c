"""Documents through a parser, one after another as they end, and what each is worth. Memory stays flat: no text outlives its document,
but for that of the worst pages."""

import shutil
import stat
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from primer_core.elements import Element, ElementKind
from primer_core.failures import Reason
from primer_core.quality.figures import DocumentQuality
from primer_core.quality.scores import read_text, score, score_pages
from primer_core.recipe import ParserSpec
from primer_core.routing import Format
from primer_resources.parser.base import ParseOutcome, Parser, ParseRequest
from primer_resources.quality.folder import Candidate
from primer_resources.quality.worst import PICTURED, PageRead, WorstPages
from primer_resources.scratch import Scratch

Cost = Callable[[ParseRequest], float | None]
"""CPU seconds of a request; None where nobody knows."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """What one engine made of one document."""

    candidate: Candidate
    outcome: ParseOutcome

    @property
    def is_in_review(self) -> bool:
        """Whether all that was read waits for a person."""
        return self.outcome.fault is not None and self.outcome.fault.reason is Reason.OCR_BELOW_BAR

    @property
    def indexed(self) -> tuple[Element, ...]:
        """The elements that go into an index."""
        return () if self.outcome.parsed is None else self.outcome.parsed.elements

    @property
    def reviewed(self) -> tuple[Element, ...]:
        """What waits for a person, in the shape of elements."""
        reviews = self.outcome.reviews
        return tuple(Element(n, ElementKind.PARAGRAPH, review.text, None, review.page) for n, review in enumerate(reviews))

    @property
    def pages(self) -> int | None:
        """Pages that were read, those in review among them."""
        if self.outcome.parsed is not None:
            return self.outcome.parsed.pages
        return len({review.page for review in self.outcome.reviews}) or None

    def by_page(self) -> dict[int, list[Element]]:
        """All that was read, page by page; a page without a word has its place too."""
        pages: dict[int, list[Element]] = defaultdict(list)
        for element in (*self.indexed, *self.reviewed):
            pages[element.page or 1].append(element)
        for page in range(1, (self.pages or 1) + 1):
            pages.setdefault(page, [])
        return dict(sorted(pages.items()))


def measure(candidates: Sequence[Candidate], parser: Parser, cost: Cost, worst: WorstPages) -> Iterator[DocumentQuality]:
    """One row a document, in the order in which they end. Raises SystemFault where the surroundings fail."""
    by_hash = {candidate.content_hash: candidate for candidate in candidates}
    sent: dict[str, ParseRequest] = {}
    with Scratch() as folder:
        for outcome in parser.parse_many(_requests(candidates, folder, sent)):
            request = sent.pop(outcome.key)
            request.path.unlink(missing_ok=True)
            reading = _Reading(by_hash[outcome.key], outcome)
            for page in _pages(reading):
                worst.add(page)
            yield _row(reading, engine_of(parser.spec, reading.candidate.format, outcome), cost(request))


def engine_of(spec: ParserSpec, format_: Format, outcome: ParseOutcome) -> str:
    """What read the document, by the options in the parser's version: its OCR for pictures and for PDF files without a text layer, its
    PDF engine for the other PDF files (some of whose pages OCR may have read), the parser itself for every other format."""
    options = dict(part.split("=", 1) for part in spec.version.split(";") if "=" in part)
    if format_ is Format.IMAGE:
        return options.get("ocr", spec.engine)
    if format_ is not Format.PDF:
        return spec.engine
    below_bar = outcome.fault is not None and outcome.fault.reason is Reason.OCR_BELOW_BAR
    has_layer = not below_bar and (outcome.kept is None or outcome.kept.words > 0)
    return options.get("pdf" if has_layer or "ocr" not in options else "ocr", spec.engine)


def _requests(candidates: Iterable[Candidate], folder: Path, sent: dict[str, ParseRequest]) -> Iterator[ParseRequest]:
    for candidate in candidates:
        target = folder / candidate.content_hash
        shutil.copyfile(candidate.path, target)
        target.chmod(stat.S_IRUSR)
        request = ParseRequest(candidate.content_hash, target, candidate.path.name)
        sent[candidate.content_hash] = request
        yield request


def _row(reading: _Reading, engine: str, cpu_seconds: float | None) -> DocumentQuality:
    outcome, truth = reading.outcome, reading.candidate.truth
    fault, kept = outcome.fault, outcome.kept
    read = reading.reviewed if reading.is_in_review else reading.indexed
    scores = score(read, truth) if truth is not None and (fault is None or reading.is_in_review) else None
    return DocumentQuality(
        path=reading.candidate.name,
        format=reading.candidate.format.value,
        engine=engine,
        seconds=outcome.seconds,
        cpu_seconds=cpu_seconds,
        reason=None if fault is None else fault.reason,
        message="" if fault is None else fault.message,
        pages=reading.pages,
        characters=sum(len(element.text) for element in reading.indexed),
        in_review=len({review.page for review in outcome.reviews}),
        order=None if scores is None else scores.order,
        recall=None if scores is None else scores.recall,
        tables=None if scores is None else scores.tables,
        cer=None if scores is None else scores.cer,
        kept=None if kept is None or not kept.words else kept.share,
        words=0 if kept is None else kept.words,
        missing=() if kept is None else kept.missing,
        losses=() if kept is None else kept.losses,
    )


def _pages(reading: _Reading) -> Iterator[PageRead]:
    """The pages that can be shown. With a truth each has a score; without one the document has that of its words that were kept."""
    candidate, outcome = reading.candidate, reading.outcome
    if candidate.format not in PICTURED:
        return
    in_review = frozenset(review.page for review in outcome.reviews)
    message = "" if outcome.fault is None else outcome.fault.message
    pages = reading.by_page()
    texts = {page: read_text(elements) for page, elements in pages.items()}
    what = (candidate.name, candidate.path, candidate.format)
    if candidate.truth is not None:
        for page in score_pages(pages, candidate.truth):
            shown = {page.page: texts[page.page]}
            yield PageRead(page.order, "words in order", *what, page.page, shown, page.truth, in_review, message)
    elif outcome.kept is not None and outcome.kept.words:
        yield PageRead(outcome.kept.share, "words of the document kept", *what, None, texts, "", in_review, message)
