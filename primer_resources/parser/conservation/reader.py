"""What a reader gives, and which reader a format has."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from docling_core.types.doc import ContentLayer, DocItemLabel, DoclingDocument, TableItem
from docling_core.types.doc.document import TextItem

from primer_core.conservation import Conservation, count_words, number_of_words, weigh
from primer_core.elements import Element
from primer_core.routing import Format


@dataclass(slots=True)
class SourceText:
    """A source's text in pieces (a word is never split between two), and what was left out on purpose, by name."""

    pieces: list[str] = field(default_factory=list)
    losses: dict[str, list[str]] = field(default_factory=dict)

    def lose(self, name: str, text: str) -> None:
        """Leave `text` out under a name."""
        if text:
            self.losses.setdefault(name, []).append(text)


def measure(
    path: Path, format_: Format, document: DoclingDocument, elements: tuple[Element, ...], pages_apart: frozenset[int] = frozenset()
) -> Conservation | None:
    """How much of the file's text is in the elements; None where the independent reader cannot read the file.

    `pages_apart` are pages of a PDF that wait for a review, so that their text is in no element.
    """
    source = read_source(path, format_, pages_apart)
    if source is None:
        return None
    kept = count_words("\n".join(element.text for element in elements))
    losses = {name: number_of_words("\n".join(texts)) for name, texts in source.losses.items()}
    return weigh(count_words("\n".join(source.pieces)), kept, set_aside(document), losses)


def read_source(path: Path, format_: Format, pages_apart: frozenset[int] = frozenset()) -> SourceText | None:
    """The file's text by the reader of its format; None where it cannot read the file."""
    from primer_resources.parser.conservation import markup, office, pdf

    match format_:
        case Format.DOCX:
            return office.read_docx(path)
        case Format.PPTX:
            return office.read_pptx(path)
        case Format.XLSX:
            return office.read_xlsx(path)
        case Format.PDF:
            return pdf.read_pdf(path, pages_apart)
        case Format.HTML:
            return markup.read_html(path)
        case Format.MD:
            return markup.read_markdown(path)
        case Format.EML:
            return markup.read_mail(path)
        case Format.CSV | Format.TXT:
            return markup.read_plain(path)
        case _:
            return None


_LAYERS = {
    ContentLayer.FURNITURE: "furniture",
    ContentLayer.NOTES: "comments",
    ContentLayer.INVISIBLE: "invisible",
    ContentLayer.BACKGROUND: "background",
}


def set_aside(document: DoclingDocument) -> dict[str, Counter[str]]:
    """Words that stand in the document and in no element, by the layer that they were put into; running headers and footers apart."""
    texts: dict[str, list[str]] = {}
    for item in (*document.texts, *document.tables):
        if item.content_layer is ContentLayer.BODY:
            continue
        is_running = item.label in (DocItemLabel.PAGE_HEADER, DocItemLabel.PAGE_FOOTER)
        name = "running headers and footers" if is_running else _LAYERS[item.content_layer]
        if isinstance(item, TextItem):
            texts.setdefault(name, []).append(item.text or item.orig)
        elif isinstance(item, TableItem):
            texts.setdefault(name, []).extend(cell.text for cell in item.data.table_cells)
    return {name: count_words("\n".join(found)) for name, found in texts.items()}
