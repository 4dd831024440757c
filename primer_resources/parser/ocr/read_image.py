"""Image files: every picture in them is a page that goes the way of a scanned PDF page."""

from docling.datamodel.base_models import InputFormat
from docling.datamodel.document import InputDocument

from primer_core.failures import DocumentFault, Reason
from primer_resources.parser.engines.source import Converted, Source
from primer_resources.parser.ocr.frames import frame_sizes
from primer_resources.parser.ocr.pictures_backend import PicturesBackend
from primer_resources.parser.pdf.read import convert_pages


def read_image(source: Source) -> Converted:
    """Convert an image file. Raises DocumentFault (too_large, truncated, corrupt, empty, incomplete, ocr_unavailable) or MemoryError."""
    pages = len(frame_sizes(source.path, source.name))
    given = InputDocument(source.path, InputFormat.IMAGE, PicturesBackend, filename=source.plain_name)
    converted = convert_pages(given, pages, source)
    if not converted.reviews and not converted.document.texts and not converted.document.tables:
        raise DocumentFault(Reason.EMPTY, f"{source.name} is a picture in which no text was found")
    return converted
