"""The parser's version: everything that shapes its output, from package metadata alone, so that nothing heavy is imported to ask."""

from importlib.metadata import version

from primer_core.recipe import ParserSpec

ENGINE = "docling"

RULES = 2
"""Raised whenever a change in this package changes the output for any document: decoding, mending, what is kept or dropped."""

_LIBRARIES = (
    # Docling itself, then what it reads the formats with.
    "docling-slim",
    "docling-core",
    "docling-parse",
    "beautifulsoup4",
    "lxml",
    "marko",
    "python-docx",
    "python-pptx",
    "openpyxl",
    "mail-parser",
    "charset-normalizer",
)

_OPTIONS = (
    "pdf=native-lines",
    "html=sentences-before-heading",
    "pages=front-matter,template-codes",
    "md=title-from-front-matter",
    "txt=paragraphs",
    "eml=attachment-names",
    "office=footnotes,speaker-notes,drawings,hidden-sheets",
    "images=dropped",
)


def parser_spec() -> ParserSpec:
    """The spec of the parser as installed."""
    libraries = (f"{name}={version(name)}" for name in _LIBRARIES)
    return ParserSpec(ENGINE, ";".join((f"rules={RULES}", *libraries, *_OPTIONS)))
