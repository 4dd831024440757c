"""The task that a parse worker does: one file in, elements and document JSON in the task's directory out.

Imports Docling: this module is only ever imported in a worker.
"""

from pathlib import Path

import pyarrow as pa

from primer_core.failures import DocumentFault, Reason
from primer_core.routing import CONTAINERS, PARSED, Format
from primer_resources.parser.answer import Answer, write_result, write_reviews
from primer_resources.parser.archives import check_zip
from primer_resources.parser.conservation.reader import measure
from primer_resources.parser.elements import admit_furniture, list_elements, mend
from primer_resources.parser.engines.archive import read_archive
from primer_resources.parser.engines.markup import read_markup
from primer_resources.parser.engines.office import read_office
from primer_resources.parser.engines.source import Converted, Source
from primer_resources.parser.ocr.config import OcrConfig
from primer_resources.parser.ocr.read_image import read_image
from primer_resources.parser.pdf.config import PdfConfig
from primer_resources.parser.pdf.read import read_pdf
from primer_resources.parser.sniffing import sniff_file

ZSTD_LEVEL = 3


def prepare() -> None:
    """What a worker does once before its first document: the imports above are all of it."""


def parse(directory: Path, path: Path, name: str, max_bytes: int, accepted_pages: frozenset[int], ocr: OcrConfig, pdf: PdfConfig) -> Answer:
    """Parse the file at `path`; the result lies in `directory` unless the answer is a fault. Pages to review lie there in either case.

    Raises whatever a library raises that is no clear fault of the document; the parent judges that.
    """
    try:
        source = _recognise(path, name, max_bytes, accepted_pages, ocr, pdf)
        converted = _convert(source)
        write_reviews(directory, converted.reviews)
        mend(converted.document)
        elements = list_elements(converted.document)
        if not elements:
            admit_furniture(converted.document)
            elements = list_elements(converted.document)
        if not elements and converted.reviews:
            raise DocumentFault(Reason.OCR_BELOW_BAR, f"{name}: none of its {len(converted.reviews)} scanned pages is readable enough")
        if not elements:
            raise DocumentFault(Reason.EMPTY, f"{name} holds no text")
    except DocumentFault as fault:
        return Answer(reason=fault.reason, message=fault.message)
    except RecursionError:
        return Answer(reason=Reason.CORRUPT, message=f"{name} is nested too deeply to be read; flatten its lists, tables or divisions")
    json = converted.document.model_dump_json(exclude_none=True, by_alias=True).encode()
    write_result(directory, elements, pa.Codec("zstd", compression_level=ZSTD_LEVEL).compress(json, asbytes=True), converted.metadata)
    reviewed = frozenset(review.page for review in converted.reviews)
    return Answer(pages=converted.pages, kept=measure(path, source.format, converted.document, elements, reviewed))


def _recognise(path: Path, name: str, max_bytes: int, accepted_pages: frozenset[int], ocr: OcrConfig, pdf: PdfConfig) -> Source:
    size = path.stat().st_size
    if size > max_bytes:
        raise DocumentFault(Reason.TOO_LARGE, f"{name} has {size:,} bytes, more than {max_bytes:,}; split it, or raise PRIMER_MAX_FILE_MB")
    sniffed = sniff_file(path, name)
    if sniffed.format is Format.EMPTY:
        raise DocumentFault(Reason.EMPTY, f"{name} is an empty file")
    if sniffed.format is Format.ENCRYPTED_OFFICE:
        raise DocumentFault(Reason.ENCRYPTED, f"{name} is an office file with a password; save it without one")
    if sniffed.format is Format.ARCHIVE and sniffed.mime == "application/zip":
        # An office file that was cut off shows nothing but a zip's beginning: say that rather than "an archive".
        check_zip(path, name)
    if sniffed.format not in PARSED and sniffed.mime not in CONTAINERS:
        raise DocumentFault(
            Reason.UNSUPPORTED_FORMAT, f"{name} is {sniffed.format.value.replace('_', ' ')} ({sniffed.mime}), which is not read"
        )
    return Source(path, name, sniffed.format, accepted_pages, ocr, pdf)


def _convert(source: Source) -> Converted:
    match source.format:
        case Format.PDF:
            return read_pdf(source)
        case Format.IMAGE:
            return read_image(source)
        case Format.DOCX | Format.PPTX | Format.XLSX:
            return read_office(source)
        case Format.ARCHIVE:
            return read_archive(source)
        case _:
            return read_markup(source)
