"""Born-digital PDF files, with Docling's model-free NativePdfPipeline: the text layer line by line, no layout, no OCR."""

import re

import pypdfium2
from docling.backend.docling_parse_backend import ThreadedDoclingParseDocumentBackend
from docling.datamodel.backend_options import ThreadedDoclingParseBackendOptions
from docling.datamodel.base_models import ConversionStatus, InputFormat
from docling.datamodel.document import ConversionResult, InputDocument, build_invalid_input_errors
from docling.datamodel.pipeline_options import NativePdfPipelineOptions
from docling.pipeline.native_pdf_pipeline import NativePdfPipeline

from primer_core.failures import DocumentFault, Reason
from primer_resources.parser.engines.source import Converted, Source

NAMED_PAGES = 20
"""Most page numbers that a message names."""

MAX_WAITING_PAGES = 4
"""Decoded pages that docling-parse may hold ahead: the default queue took 3.2 GB on 240 pages, this one 1 GB at the same speed."""

_END_MARK = b"%%EOF"
_END_WITHIN = 1024


def read_pdf(source: Source) -> Converted:
    """Convert a PDF. Raises DocumentFault (encrypted, truncated, corrupt, empty, incomplete) or MemoryError."""
    pages = count_pages(source)
    options = NativePdfPipelineOptions.model_validate(
        {"parser_threads": 1, "generate_picture_images": False, "generate_page_images": False}
    )
    backend = ThreadedDoclingParseBackendOptions.model_validate(
        {"parser_threads": 1, "max_concurrent_results": MAX_WAITING_PAGES, "render_pages": False, "include_bitmap_images": False}
    )
    given = InputDocument(
        source.path, InputFormat.PDF, ThreadedDoclingParseDocumentBackend, backend_options=backend, filename=source.plain_name
    )
    if not given.valid:
        errors = "; ".join(error.error_message for error in build_invalid_input_errors(given))
        raise DocumentFault(Reason.CORRUPT, f"{source.name} cannot be opened as pdf: {source.tidy(errors)}")
    result = NativePdfPipeline(options).execute(given, raises_on_error=False)
    check_whole(result, pages, source)
    document = result.document
    document.name = "document"
    if not any(item.text.strip() for item in document.texts):
        raise DocumentFault(Reason.EMPTY, describe_textless(source, pages))
    return Converted(document, pages)


def count_pages(source: Source) -> int:
    """Pages by PDFium's count. Raises DocumentFault (encrypted, truncated, corrupt, empty)."""
    try:
        with pypdfium2.PdfDocument(source.path) as pdf:
            pages = len(pdf)
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            raise DocumentFault(Reason.ENCRYPTED, f"{source.name} asks for a password; save it without one") from error
        if "security" in str(error).lower():
            raise DocumentFault(Reason.ENCRYPTED, f"{source.name} is encrypted in a way that cannot be opened ({error})") from error
        if is_cut_off(source):
            raise DocumentFault(Reason.TRUNCATED, f"{source.name} ends without its end mark; upload the whole file again") from error
        raise DocumentFault(Reason.CORRUPT, f"{source.name} cannot be opened as pdf ({error})") from error
    if pages == 0:
        raise DocumentFault(Reason.CORRUPT, f"{source.name} is a pdf without pages")
    return pages


def is_cut_off(source: Source) -> bool:
    """Whether the end mark that every whole PDF carries is missing."""
    size = source.path.stat().st_size
    with source.path.open("rb") as file:
        file.seek(max(0, size - _END_WITHIN))
        return _END_MARK not in file.read()


def check_whole(result: ConversionResult, pages: int, source: Source) -> None:
    """Pages out must be pages in. Raises DocumentFault(INCOMPLETE) that names the missing pages, CORRUPT where none was read."""
    errors = "; ".join(dict.fromkeys(error.error_message for error in result.errors))
    if re.search(r"bad_alloc|MemoryError|[Cc]annot allocate", errors):
        raise MemoryError(errors)
    if result.status is ConversionStatus.FAILURE:
        raise DocumentFault(Reason.CORRUPT, f"{source.name} cannot be read: {source.tidy(errors) or 'no page was read'}")
    failed = {error.page_no for error in result.errors if error.page_no is not None}
    missing = sorted(failed | (set(range(1, pages + 1)) - set(result.document.pages)))
    if missing or result.status is not ConversionStatus.SUCCESS:
        shown = ", ".join(str(page) for page in missing[:NAMED_PAGES]) + (" …" if len(missing) > NAMED_PAGES else "")
        raise DocumentFault(
            Reason.INCOMPLETE, f"{source.name}: {len(missing)} of {pages} pages could not be read (pages {shown}): {source.tidy(errors)}"
        )


def describe_textless(source: Source, pages: int) -> str:
    """Why a PDF gave no words: pictures on its pages make it a scan."""
    with pypdfium2.PdfDocument(source.path) as pdf:
        pictured = sum(
            1
            for number in range(min(pages, NAMED_PAGES))
            if any(True for _ in pdf[number].get_objects(filter=[pypdfium2.raw.FPDF_PAGEOBJ_IMAGE], max_depth=3))
        )
    if pictured:
        return f"{source.name} has {pages} pages without a text layer and with pictures: it looks like a scan and needs OCR"
    return f"{source.name} has {pages} pages and no text"
