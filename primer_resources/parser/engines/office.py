"""Word, PowerPoint and Excel files (OOXML), with Docling's backends. Charts keep their data as tables; nothing is rendered."""

from docling.backend.msexcel_backend import MsExcelDocumentBackend
from docling.backend.mspowerpoint_backend import MsPowerpointDocumentBackend
from docling.backend.msword_backend import MsWordDocumentBackend
from docling.datamodel.base_models import InputFormat
from docling_core.types.doc import ContentLayer, DocItemLabel, DoclingDocument

from primer_core.routing import Format
from primer_resources.parser.archives import check_zip
from primer_resources.parser.drawings import add_drawn_words
from primer_resources.parser.engines.simple import convert
from primer_resources.parser.engines.source import Converted, Source
from primer_resources.parser.office_mend import mend_office
from primer_resources.parser.part_limits import check_parts
from primer_resources.parser.sheets import mend_sheets


def read_office(source: Source) -> Converted:
    """Convert an office file. Slides and sheets are its pages. Raises DocumentFault (truncated, corrupt, encrypted, too_large)."""
    check_zip(source.path, source.name)
    check_parts(source.path, source.name, source.format)
    data = mend_office(source.path.read_bytes())
    match source.format:
        case Format.DOCX:
            document = convert(data, InputFormat.DOCX, MsWordDocumentBackend, source)
        case Format.PPTX:
            document = convert(data, InputFormat.PPTX, MsPowerpointDocumentBackend, source)
        case _:
            document = convert(data, InputFormat.XLSX, MsExcelDocumentBackend, source)
    if source.format is Format.PPTX:
        add_drawn_words(document, source.path, "ppt/presentation.xml")
    elif source.format is Format.XLSX:
        mend_sheets(document)
        add_drawn_words(document, source.path, "xl/workbook.xml")
    keep_notes(document, source.format)
    return Converted(document, None if source.format is Format.DOCX else len(document.pages))


def keep_notes(document: DoclingDocument, format_: Format) -> None:
    """Put footnotes and speaker notes into the body: Docling sets them apart, and they are the author's own words.
    Reviewers' comments stay apart."""
    for item in document.texts:
        is_footnote = item.label is DocItemLabel.FOOTNOTE and item.content_layer is ContentLayer.FURNITURE
        if is_footnote or (format_ is Format.PPTX and item.content_layer is ContentLayer.NOTES):
            item.content_layer = ContentLayer.BODY
