"""Image files: every picture in them is a page that goes the way of a scanned PDF page."""

from docling.backend.image_backend import ImageDocumentBackend
from docling.datamodel.backend_options import PdfBackendOptions
from docling.datamodel.base_models import InputFormat
from docling.datamodel.document import InputDocument

from primer_core.failures import DocumentFault, Reason
from primer_resources.parser.engines.source import Converted, Source
from primer_resources.parser.ocr.frames import MAX_IMAGE_PIXELS, check_decodes, count_frames
from primer_resources.parser.pdf.read import convert_pages


def read_image(source: Source) -> Converted:
    """Convert an image file. Raises DocumentFault (too_large, truncated, corrupt, empty, incomplete, ocr_unavailable) or MemoryError."""
    pages = count_frames(source)
    check_decodes(source, 0)
    options = PdfBackendOptions.model_validate({"max_image_pixels": MAX_IMAGE_PIXELS})
    given = InputDocument(source.path, InputFormat.IMAGE, ImageDocumentBackend, backend_options=options, filename=source.plain_name)
    converted = convert_pages(given, pages, source)
    if not converted.reviews and not converted.document.texts and not converted.document.tables:
        raise DocumentFault(Reason.EMPTY, f"{source.name} is a picture in which no text was found")
    return converted
