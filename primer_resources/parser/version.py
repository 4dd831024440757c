"""The parser's version: everything that shapes its output, from package metadata alone, so that nothing heavy is imported to ask."""

from importlib.metadata import version

from primer_core.recipe import ParserSpec
from primer_resources.parser.ocr.config import OcrConfig
from primer_resources.parser.pdf.config import PdfConfig

ENGINE = "docling"

RULES = 4
"""Raised whenever a change in this package changes the output for any document: decoding, mending, what is kept or dropped."""

_LIBRARIES = (
    # Docling itself, then what it reads the formats with.
    "docling-slim",
    "docling-core",
    "docling-parse",
    "pdfplumber",
    "beautifulsoup4",
    "lxml",
    "marko",
    "python-docx",
    "python-pptx",
    "openpyxl",
    "mail-parser",
    "charset-normalizer",
    "pypdfium2",
    "pytesseract",
    "pillow",
)

_OPTIONS = (
    "html=sentences-before-heading",
    "pages=front-matter,template-codes",
    "md=title-from-front-matter",
    "txt=paragraphs",
    "eml=attachment-names",
    "office=footnotes,speaker-notes,drawings,hidden-sheets",
    "images=dropped",
    # The program is named by its line only: Tesseract 5 takes in fixes with the system's updates, whose data has no version at all, and
    # an index must not be out of date by each. Pages without OCR are in no index, so that installing it changes none either.
    "ocr=tesseract-5",
)


def parser_spec(ocr: OcrConfig, pdf: PdfConfig) -> ParserSpec:
    """The spec of the parser as installed, with what the deployment chose about OCR and PDF."""
    libraries = (f"{name}={version(name)}" for name in _LIBRARIES)
    return ParserSpec(ENGINE, ";".join((f"rules={RULES}", *libraries, *_OPTIONS, *pdf.options, *ocr.options)))
