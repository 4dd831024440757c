"""The parser: Docling in worker processes. Light: Docling itself is imported in the workers only."""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from primer_core.failures import DocumentFault, SystemFault
from primer_core.lanes import FastLane, SlowTime
from primer_core.pdf_engines import PdfEngine
from primer_core.recipe import ParserSpec
from primer_resources.parser.answer import Answer, read_result, read_reviews
from primer_resources.parser.base import ParseOutcome, ParseRequest
from primer_resources.parser.ocr.config import OcrConfig
from primer_resources.parser.ocr.installation import PROGRAM as TESSERACT
from primer_resources.parser.pdf.config import PdfConfig
from primer_resources.parser.version import parser_spec
from primer_resources.settings import Settings
from primer_resources.worker_faults import fault_of
from primer_resources.workers import Call, Finished, WorkerLimits, WorkerPool

PREPARE = "primer_resources.parser.convert:prepare"
PROGRAMS: tuple[str, ...] = (TESSERACT,)
"""Commands that a parse may start. LibreOffice must not be among them: Docling would call it for drawings, 21 s for a 48 kB file."""

DEFAULT_OCR = OcrConfig()
DEFAULT_PDF = PdfConfig()

SLOW_NICE = 10
"""A tenth of the processor's time beside a worker of the fast lane that wants all of it, and all of it otherwise."""


def open_worker_pool(settings: Settings, programs: tuple[str, ...] = PROGRAMS) -> WorkerPool[Any]:
    """The pool that documents are read in: workers with Docling loaded. They start at the first document."""
    limits = WorkerLimits(
        workers=settings.parse_workers,
        memory_bytes=settings.parse_memory_mb * 2**20,
        tasks=settings.parse_worker_documents,
        timeout=settings.parse_timeout,
        cpu_time=settings.parse_cpu_time,
        per_megabyte=settings.parse_time_per_mb,
        longest=settings.parse_time_most,
        growth_bytes=settings.parse_worker_growth_mb * 2**20,
    )
    return WorkerPool(limits, PREPARE, programs)


def open_slow_pool(settings: Settings, programs: tuple[str, ...] = PROGRAMS) -> WorkerPool[Any]:
    """The pool of the slow lane. Its limit of time is that of each document; the pool's own is the longest of them."""
    limits = WorkerLimits(
        workers=settings.slow_parse_workers,
        memory_bytes=settings.slow_parse_memory_mb * 2**20,
        tasks=settings.parse_worker_documents,
        timeout=settings.slow_time.longest,
        settings="PRIMER_SLOW_PARSE",
        growth_bytes=settings.parse_worker_growth_mb * 2**20,
        nice=SLOW_NICE,
    )
    return WorkerPool(limits, PREPARE, programs)


class DoclingParser:
    """Parses with Docling, each document in a worker of the pool, whose limits on time and memory are real.

    `lane` is what the fast lane takes, or the time that the slow lane gives; without one, everything is taken and the pool has the limit.
    """

    def __init__(
        self,
        pool: WorkerPool[Any],
        max_file_mb: int,
        ocr: OcrConfig = DEFAULT_OCR,
        lane: FastLane | SlowTime | None = None,
        pdf: PdfConfig = DEFAULT_PDF,
    ) -> None:
        self._pool = pool
        self._ocr = ocr
        self._pdf = pdf
        self._max_bytes = max_file_mb * 2**20
        self._fast = lane if isinstance(lane, FastLane) else None
        self._slow = lane if isinstance(lane, SlowTime) else None

    @cached_property
    def spec(self) -> ParserSpec:
        """What shapes the output; asked without importing Docling."""
        return parser_spec(self._ocr, self._pdf)

    def parse_many(self, requests: Iterable[ParseRequest]) -> Iterator[ParseOutcome]:
        """Outcomes in the order in which they finish, one a request; requests are read as workers come free.

        A poison document is an outcome, never an exception. Raises SystemFault where the surroundings fail (no disk, no worker).
        """
        for finished in self._pool.run(self._call(request) for request in requests):
            fault = judge(finished, self._pool.limits)
            answer = cast(Answer, finished.value)
            slow = answer.slow if fault is None else None
            whole = fault is None and slow is None
            parsed = read_result(finished.directory, answer.pages) if whole else None
            kept = answer.kept if whole else None
            reviews = read_reviews(finished.directory)
            yield ParseOutcome(finished.key.key, finished.seconds, parsed, fault, reviews, slow, kept)

    def _call(self, request: ParseRequest) -> Call[ParseRequest]:
        args = (request.path.absolute(), request.name, self._max_bytes, request.accepted_pages, self._ocr, self._pdf, self._fast)
        size = request.path.stat().st_size
        timeout = None if self._slow is None else self._slow.limit(size, request.pages)
        return Call(request, parse_in_worker, args, size, timeout)


def parse_in_worker(
    directory: Path,
    path: Path,
    name: str,
    max_bytes: int,
    accepted_pages: frozenset[int],
    ocr: OcrConfig,
    pdf: PdfConfig,
    fast: FastLane | None,
) -> Answer:
    """The task; with `fast`, only for what the fast lane takes. The imports are here so that the parent, which sends this function by
    name, never imports Docling."""
    from primer_resources.parser.convert import parse
    from primer_resources.parser.triage import slow_work

    work = None if fast is None else slow_work(path, fast)
    if work is not None:
        return Answer(slow=work)
    task: Callable[[Path, Path, str, int, frozenset[int], OcrConfig, PdfConfig], Answer] = parse
    return task(directory, path, name, max_bytes, accepted_pages, ocr, pdf)


def check_engine(pool: WorkerPool[Any], pdf: PdfConfig) -> None:
    """See that what is to lay PDF out can be loaded: in a worker, where Docling is. Raises SystemFault that says what is missing."""
    if pdf.engine is PdfEngine.MODELS:
        for finished in pool.run([Call(pdf, load_engine, (pdf,))]):
            fault = fault_of(finished, "the PDF engine", pool.limits)
            if fault is not None:
                raise SystemFault(fault.message)


def load_engine(directory: Path, pdf: PdfConfig) -> None:
    """The check, in the worker."""
    from primer_resources.parser.pdf.models import open_models

    open_models(pdf)


def judge(finished: Finished[ParseRequest], limits: WorkerLimits) -> DocumentFault | None:
    """Whose fault an end is: None for a parsed document, the document's fault, or SystemFault raised."""
    fault = fault_of(finished, finished.key.name, limits)
    return cast(Answer, finished.value).fault if fault is None else fault
