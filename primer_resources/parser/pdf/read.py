"""Reading a PDF: opened, converted whole by one pipeline, and checked that no page is missing."""

import re
from functools import lru_cache

from docling.backend.docling_parse_backend import ThreadedDoclingParseDocumentBackend
from docling.datamodel.base_models import ConversionStatus, InputFormat
from docling.datamodel.document import ConversionResult, InputDocument, build_invalid_input_errors
from docling.pipeline.standard_pdf_pipeline import StandardPdfPipeline

from primer_core.failures import DocumentFault, Reason
from primer_core.pdf_engines import PdfEngine
from primer_resources.parser.engines.source import Converted, Source
from primer_resources.parser.ocr.config import OcrConfig
from primer_resources.parser.ocr.docling_engine import ScanOcrModel, ScanOcrOptions
from primer_resources.parser.pdf.backend import StrokesBackend
from primer_resources.parser.pdf.config import PdfConfig
from primer_resources.parser.pdf.models import open_models
from primer_resources.parser.pdf.opening import count_pages, describe_textless
from primer_resources.parser.pdf.options import backend_options, rule_options
from primer_resources.parser.pdf.pipeline import RulePdfPipeline

NAMED_PAGES = 20
"""Most page numbers that a message names."""


@lru_cache(maxsize=1)
def _engines(ocr: OcrConfig, pdf: PdfConfig) -> tuple[StandardPdfPipeline, ScanOcrModel]:
    """The pipeline of this process, built once, and the OCR model in it."""
    model = ScanOcrModel(ScanOcrOptions(lang=list(ocr.languages), bar=ocr.bar))
    return (RulePdfPipeline(rule_options(), model) if pdf.engine is PdfEngine.RULES else open_models(pdf, model)), model


def read_pdf(source: Source) -> Converted:
    """Convert a PDF. Raises DocumentFault (encrypted, truncated, corrupt, empty, incomplete, ocr_unavailable) or MemoryError."""
    pages = count_pages(source)
    by_rules = source.pdf.engine is PdfEngine.RULES
    backend = StrokesBackend if by_rules else ThreadedDoclingParseDocumentBackend
    given = InputDocument(
        source.path, InputFormat.PDF, backend, backend_options=backend_options(pictures=not by_rules), filename=source.plain_name
    )
    converted = convert_pages(given, pages, source)
    document = converted.document
    if not (converted.reviews or any(item.text.strip() for item in document.texts)) and not any(
        cell.text for table in document.tables for cell in table.data.table_cells
    ):
        raise DocumentFault(Reason.EMPTY, describe_textless(source, pages))
    return converted


def convert_pages(given: InputDocument, pages: int, source: Source) -> Converted:
    """Run the pipeline over a file of `pages` pages. Raises DocumentFault (corrupt, incomplete, ocr_unavailable) or MemoryError."""
    if not given.valid:
        errors = "; ".join(error.error_message for error in build_invalid_input_errors(given))
        raise DocumentFault(Reason.CORRUPT, f"{source.name} cannot be opened as {source.format.value}: {source.tidy(errors)}")
    pipeline, ocr = _engines(source.ocr, source.pdf)
    ocr.begin(source.name, source.accepted_pages)
    result = pipeline.execute(given, raises_on_error=False)
    reviews = ocr.end()
    check_whole(result, pages, source)
    result.document.name = "document"
    return Converted(result.document, pages, reviews)


def check_whole(result: ConversionResult, pages: int, source: Source) -> None:
    """Pages out must be pages in. Raises DocumentFault(INCOMPLETE) that names the missing pages, CORRUPT where none was read."""
    errors = "; ".join(dict.fromkeys(error.error_message for error in result.errors))
    if re.search(r"bad_alloc|MemoryError|[Cc]annot allocate", errors):
        raise MemoryError(errors)
    if result.status is ConversionStatus.FAILURE:
        raise DocumentFault(Reason.CORRUPT, f"{source.name} cannot be read: {source.tidy(errors) or 'no page was read'}")
    failed = {error.page_no for error in result.errors if error.page_no is not None}
    missing = sorted(failed | (set(range(1, pages + 1)) - {page.page_no for page in result.pages}))
    if missing or result.status is not ConversionStatus.SUCCESS:
        shown = ", ".join(str(page) for page in missing[:NAMED_PAGES]) + (" …" if len(missing) > NAMED_PAGES else "")
        raise DocumentFault(
            Reason.INCOMPLETE, f"{source.name}: {len(missing)} of {pages} pages could not be read (pages {shown}): {source.tidy(errors)}"
        )
