"""The bench: a folder in, a report out."""

from collections.abc import Callable

from primer_core.quality.figures import DocumentQuality
from primer_core.routing import Format
from primer_resources.clock import Clock, SystemClock
from primer_resources.parser.docling_parser import PREPARE, PROGRAMS, DoclingParser, check_engine, open_slow_pool
from primer_resources.parser.ocr.config import ocr_config
from primer_resources.parser.ocr.installation import check_languages
from primer_resources.parser.pdf.config import pdf_config
from primer_resources.quality.folder import Selection, select
from primer_resources.quality.measuring import measure
from primer_resources.quality.metering import MeteredPool
from primer_resources.quality.native import NativePdfParser
from primer_resources.quality.pictures import Picture, Shot, take_pictures
from primer_resources.quality.report import QualityReport, WorstPage
from primer_resources.quality.worst import WorstPages
from primer_resources.settings import Settings

Progress = Callable[[DocumentQuality], None]
SYSTEM_CLOCK = SystemClock()


def run_bench(settings: Settings, selection: Selection, progress: Progress, clock: Clock = SYSTEM_CLOCK) -> QualityReport:
    """Read the selected documents with the parser of the settings, in as many workers as the slow lane has and with its limits; PDF
    files with a text layer and a truth once more in Docling's native order. `progress` is told each document.

    Raises PrimerError where there is nothing to measure or a language of OCR is not installed, SystemFault where the surroundings fail or
    the PDF engine of the settings cannot be loaded.
    """
    check_languages(settings.ocr_languages)
    candidates = select(selection)
    rows: list[DocumentQuality] = []
    worst = WorstPages()
    pool = MeteredPool(open_slow_pool(settings).limits, PREPARE, PROGRAMS)
    try:
        pdf = pdf_config(settings)
        check_engine(pool, pdf)
        parser = DoclingParser(pool, settings.max_file_mb, ocr_config(settings), settings.slow_time, pdf)
        for row in measure(candidates, parser, pool.spent, worst):
            rows.append(row)
            progress(row)
        layered = {row.path for row in rows if row.format == Format.PDF and row.words}
        ordered = [candidate for candidate in candidates if candidate.name in layered and candidate.truth is not None]
        for row in measure(ordered, NativePdfParser(pool), pool.spent, WorstPages(most=0)):
            rows.append(row)
            progress(row)
        shots = [Shot(page.path, page.format, page.page, page.texts if page.page is None else {}) for page in worst.pages]
        pictures: dict[int, Picture] = dict(take_pictures(shots, pool))
    finally:
        pool.close()
    rows.sort(key=lambda row: (row.format, row.engine, row.path))
    pages = [WorstPage(page, pictures[number]) for number, page in enumerate(worst.pages)]
    return QualityReport(clock.now(), selection.folder, parser.spec.version, selection.limit, rows, pages)
