"""HTML, Markdown, CSV and mail, with Docling's backends; plain text without one.

Characters are decoded here and handed over as UTF-8.
"""

import csv
import io
import re
from html import escape

from docling.backend.csv_backend import CsvDocumentBackend
from docling.backend.email_backend import EmailDocumentBackend
from docling.backend.html_backend import HTMLDocumentBackend
from docling.backend.md_backend import MarkdownDocumentBackend
from docling.datamodel.backend_options import EmailBackendOptions
from docling.datamodel.base_models import InputFormat
from docling_core.types.doc import ContentLayer, DocItemLabel, DoclingDocument, DocumentOrigin, TextItem

from primer_core.failures import DocumentFault
from primer_core.routing import Format
from primer_resources.parser.engines.simple import convert
from primer_resources.parser.engines.source import Converted, Source
from primer_resources.parser.nesting import flatten
from primer_resources.parser.text import decode, mail_bytes
from primer_resources.parser.wiki import Page, split_page

LEAST_WORDS_BEFORE_HEADING = 8
"""Docling takes all before a page's first heading for furniture. A text item of so many words that is no link is a sentence, and stays."""

_LEVEL_ONE = re.compile(r"(?:\A|\n)(?:# |[^\n]+\n=+[ \t]*(?:\n|\Z)|<h1\b)", re.IGNORECASE)
_TITLED = re.compile(r"<(?:h1|title)\b", re.IGNORECASE)
_END_TAG_WITH_MORE = re.compile(r"</(script|style)\s+[^<>]*>", re.IGNORECASE)
"""It ends the element in every browser; html.parser would read on to the end of the page."""
_BASE64_LINES = re.compile(r"(?:^[A-Za-z0-9+/]{60,}={0,2}$\n?){3,}(?:^[A-Za-z0-9+/]+={0,2}$)?", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n[ \t]*\n\s*")


def read_markup(source: Source) -> Converted:
    """Convert a file made of characters. Raises DocumentFault(CORRUPT) where Docling refuses it."""
    raw = source.path.read_bytes()
    match source.format:
        case Format.HTML:
            page = split_page(decode(raw, is_markup=True), is_html=True)
            return Converted(read_html(page, source), metadata=page.metadata)
        case Format.MD:
            page = split_page(decode(raw))
            return Converted(read_markdown(page, source), metadata=page.metadata)
        case Format.CSV:
            return Converted(read_csv(decode(raw), source))
        case Format.EML:
            options = EmailBackendOptions.model_validate({"list_attachments": True})
            document = convert(mail_bytes(raw), InputFormat.EMAIL, EmailDocumentBackend, source, options)
            drop_encoded(document)
            return Converted(document)
        case _:
            return Converted(read_text(decode(raw), source))


def drop_encoded(document: DoclingDocument) -> None:
    """Take base64 lines out of a mail's paragraphs: a part that the mail reader did not decode holds no words."""
    for item in document.texts:
        if _BASE64_LINES.search(item.text):
            item.text = _BASE64_LINES.sub("", item.text)
            item.orig = item.text


def read_html(page: Page, source: Source) -> DoclingDocument:
    """An HTML page, headed by its front matter's title where nothing else heads it. The byte order mark makes the parser take UTF-8
    whatever the page declares."""
    text = _END_TAG_WITH_MORE.sub(r"</\1>", page.body)
    if page.title and not _TITLED.search(text):
        text = f"<h1>{escape(page.title)}</h1>\n{text}"
    document = convert(flatten(text).encode("utf-8-sig", "replace"), InputFormat.HTML, HTMLDocumentBackend, source)
    keep_sentences_before_heading(document)
    return document


def keep_sentences_before_heading(document: DoclingDocument) -> None:
    """Put sentences that stand before the first heading back into the body; menus, links and footers stay furniture."""
    for item, _ in document.iterate_items(included_content_layers={ContentLayer.FURNITURE}):
        if not isinstance(item, TextItem) or item.label not in (DocItemLabel.TEXT, DocItemLabel.PARAGRAPH) or item.hyperlink:
            continue
        if len(item.text.split()) >= LEAST_WORDS_BEFORE_HEADING and not _in_footer(document, item):
            item.content_layer = ContentLayer.BODY


def _in_footer(document: DoclingDocument, item: TextItem) -> bool:
    parent = item.parent.resolve(document) if item.parent else None
    while parent is not None:
        if getattr(parent, "name", "") == "footer":
            return True
        parent = parent.parent.resolve(document) if parent.parent else None
    return False


def read_markdown(page: Page, source: Source) -> DoclingDocument:
    """A Markdown page. Front matter is metadata; only its title is shown to readers, so it heads a page without a level one heading."""
    body = page.body
    if page.title and not _LEVEL_ONE.search(body):
        body = f"# {' '.join(page.title.split())}\n\n{body}"
    return convert(body.encode("utf-8", "replace"), InputFormat.MD, MarkdownDocumentBackend, source)


def read_csv(text: str, source: Source) -> DoclingDocument:
    """A CSV or TSV table. Docling reads strictly; a file with stray quotes is read again as Python's lenient reader takes it."""
    try:
        return _convert_csv(text, source)
    except DocumentFault:
        delimiter = "\t" if text.count("\t") > text.count(",") else ","
        rows = csv.reader(io.StringIO(text.strip("\n") + "\n"), delimiter=delimiter, strict=False)
        mended = io.StringIO()
        csv.writer(mended, lineterminator="\n").writerows(rows)
        return _convert_csv(mended.getvalue(), source)


def _convert_csv(text: str, source: Source) -> DoclingDocument:
    return convert(text.encode("utf-8", "replace"), InputFormat.CSV, CsvDocumentBackend, source)


def read_text(text: str, source: Source) -> DoclingDocument:
    """Plain text: one paragraph between blank lines, words as they stand. Docling would read it as Markdown, which eats
    what looks like tags, emphasis or links."""
    document = DoclingDocument(name="document", origin=DocumentOrigin(filename=source.plain_name, mimetype="text/plain", binary_hash=0))
    for paragraph in _BLANK_LINES.split(text.replace("\f", "\n\n")):
        if paragraph.strip():
            document.add_text(label=DocItemLabel.TEXT, text=paragraph.strip("\n").rstrip())
    return document
