"""From a DoclingDocument to the element list, and what is mended in it before it is kept. Imports docling_core: only inside steps."""

import re
from collections.abc import Iterator

from docling_core.types.doc import (
    CodeItem,
    ContentLayer,
    DocItem,
    DocItemLabel,
    DoclingDocument,
    ListItem,
    NodeItem,
    PictureItem,
    RichTableCell,
    SectionHeaderItem,
    TableCell,
    TableData,
    TableItem,
    TextItem,
    TitleItem,
)
from docling_core.types.doc.document import InlineGroup

from primer_core.elements import Element, ElementKind
from primer_core.sentences import joins_tightly

_UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
"""NULs end strings in C and in Postgres; a lone half of a surrogate pair cannot be written as UTF-8; PowerPoint ends lines with \\x0b."""

_LAYERS = {ContentLayer.BODY}


def mend(document: DoclingDocument) -> None:
    """Drop pictures (their bytes are in the source, and would be nine tenths of the JSON), characters that cannot be stored, and
    numbers that a list item does not have."""
    for picture in document.pictures:
        picture.image = None
    for page in document.pages.values():
        page.image = None
    for item in document.texts:
        if _UNFIT.search(item.text) or _UNFIT.search(item.orig):
            item.text, item.orig = clean(item.text), clean(item.orig)
        if isinstance(item, ListItem) and not item.marker and not item.enumerated:
            # Docling's serializer counts an item without a marker on from a numbered one before it: a number that nobody wrote.
            item.marker = "-"
    for table in document.tables:
        table.image = None
        for cell in table.data.table_cells:
            if _UNFIT.search(cell.text):
                cell.text = clean(cell.text)


def clean(text: str) -> str:
    """Text without NULs, other control characters as spaces, lone surrogates as U+FFFD."""
    return _UNFIT.sub(lambda match: "" if match[0] == "\x00" else " " if match[0] < " " or match[0] == "\x7f" else "\ufffd", text)


def admit_furniture(document: DoclingDocument) -> None:
    """Make page headers, footers and titles part of the body: for documents that hold nothing else."""
    for item in document.texts:
        if item.content_layer is ContentLayer.FURNITURE:
            item.content_layer = ContentLayer.BODY


def list_elements(document: DoclingDocument) -> tuple[Element, ...]:
    """The document's body as elements in reading order; those without words are left out."""
    has_title = any(isinstance(item, TitleItem) and item.content_layer in _LAYERS for item in document.texts)
    found: list[Element] = []
    for kind, text, level, page in _walk(document, has_title):
        if text.strip():
            found.append(Element(len(found), kind, text.strip("\n"), level, page))
    return tuple(found)


def _walk(document: DoclingDocument, has_title: bool) -> Iterator[tuple[ElementKind, str, int | None, int | None]]:
    """The items in order; a table's caption before its rows, as Docling's own exports have it."""
    spent: set[str] = set()
    captions = {ref.cref for item in (*document.tables, *document.pictures) for ref in item.captions}
    for item, _ in document.iterate_items(with_groups=True, included_content_layers=_LAYERS):
        if item.self_ref in spent:
            continue
        if isinstance(item, InlineGroup):
            text, page = _inline(item, document, spent)
            yield ElementKind.PARAGRAPH, text, None, page
        elif isinstance(item, TableItem):
            spent.update(_descendants(item, document, captions))
            for caption in (ref.resolve(document) for ref in item.captions):
                if isinstance(caption, TextItem) and caption.content_layer in _LAYERS:
                    spent.add(caption.self_ref)
                    yield ElementKind.CAPTION, caption.text or caption.orig, None, _page(caption)
            yield ElementKind.TABLE, _markdown_rows(item.data, document), None, _page(item)
        elif isinstance(item, PictureItem):
            chart = _chart_rows(item, document)
            if chart:
                yield ElementKind.TABLE, chart, None, _page(item)
        elif isinstance(item, TextItem):
            kind, level = _kind(item, has_title, item.self_ref in captions)
            text = item.text or item.orig
            if not item.text and item.children:
                text = _leading_inline(item, document, spent) or text
            if isinstance(item, ListItem) and any(char.isalnum() for char in item.marker):
                text = f"{item.marker} {text}"  # a number that refers to something; a bullet says nothing
            yield kind, text, level, _page(item)


def _kind(item: TextItem, has_title: bool, is_caption: bool) -> tuple[ElementKind, int | None]:
    """What a text item is. Headings below a title are one level down, since the title is level one."""
    if isinstance(item, TitleItem):
        return ElementKind.HEADING, 1
    if isinstance(item, SectionHeaderItem):
        return ElementKind.HEADING, item.level + (1 if has_title else 0)
    if isinstance(item, ListItem):
        return ElementKind.LIST_ITEM, None
    if isinstance(item, CodeItem):
        return ElementKind.CODE, None
    if is_caption or item.label is DocItemLabel.CAPTION:
        return ElementKind.CAPTION, None
    return ElementKind.PARAGRAPH, None


def _inline(group: NodeItem, document: DoclingDocument, spent: set[str]) -> tuple[str, int | None]:
    """One string of the fragments that Docling makes where emphasis or links change inside a paragraph, and its page."""
    text, page = "", None
    for ref in group.children:
        part = ref.resolve(document)
        spent.add(part.self_ref)
        piece = _inline(part, document, spent)[0] if isinstance(part, InlineGroup) else str(getattr(part, "text", ""))
        if isinstance(part, DocItem) and page is None:
            page = _page(part)
        if piece:
            text += ("" if joins_tightly(text, piece) else " ") + piece
    return text, page


def _leading_inline(item: TextItem, document: DoclingDocument, spent: set[str]) -> str:
    """Words of an item that keeps them in an inline group below it (a list item or heading with emphasis)."""
    first = item.children[0].resolve(document)
    if not isinstance(first, InlineGroup):
        return ""
    spent.add(first.self_ref)
    return _inline(first, document, spent)[0]


def _descendants(item: NodeItem, document: DoclingDocument, keep: set[str]) -> Iterator[str]:
    """References of all below a table: their words are in its rows already. Captions are not in the rows."""
    for ref in item.children:
        if ref.cref not in keep:
            yield ref.cref
            yield from _descendants(ref.resolve(document), document, keep)


def _chart_rows(item: PictureItem, document: DoclingDocument) -> str:
    """The data behind a chart as Markdown rows; "" where the picture holds none."""
    data = item.meta.tabular_chart.chart_data if item.meta and item.meta.tabular_chart else None
    if data is None:
        return ""
    return _markdown_rows(data, document)


def _markdown_rows(data: TableData, document: DoclingDocument) -> str:
    """A table as Markdown rows, the first one its header; a cell that spans several columns or rows stands in each.
    Docling's own export pads the columns and costs as much as reading the file did."""
    grid = [[_cell_words(cell, document) for cell in row] for row in data.grid]
    if not any(any(row) for row in grid):
        return ""
    rows = ["| " + " | ".join(row) + " |" for row in grid]
    return "\n".join([rows[0], "|" + " --- |" * len(grid[0]), *rows[1:]])


def _cell_words(cell: TableCell, document: DoclingDocument) -> str:
    text = cell.text
    if isinstance(cell, RichTableCell):
        text = " ".join(_words_below(cell.ref.resolve(document), document)) or text
    return " ".join(text.split()).replace("|", "\\|")


def _words_below(item: NodeItem, document: DoclingDocument) -> Iterator[str]:
    if isinstance(item, TableItem):
        for cell in item.data.table_cells:
            yield _cell_words(cell, document)
        return
    if isinstance(item, InlineGroup):
        yield _inline(item, document, set())[0]
        return
    if isinstance(item, TextItem) and item.text:
        yield item.text
    for ref in item.children:
        yield from _words_below(ref.resolve(document), document)


def _page(item: DocItem) -> int | None:
    return item.prov[0].page_no if item.prov else None
