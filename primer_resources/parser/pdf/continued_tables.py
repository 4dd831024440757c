"""Joining a table with its continuation on the next page, in the finished document."""

from docling_core.types.doc import ContentLayer, DocItem, DoclingDocument, NodeItem, PictureItem, TableCell, TableItem

from primer_core.layout.continued import TablePart, goes_on, repeated_rows

HEADER_ROWS_LOOKED_AT = 4


def join_continued_tables(document: DoclingDocument) -> None:
    """Append each table that goes on with the one before it, across a page break and nothing but pictures, to that one."""
    items = [item for item, _ in document.iterate_items(included_content_layers={ContentLayer.BODY}) if isinstance(item, DocItem)]
    spent: list[NodeItem] = []
    first: TableItem | None = None
    for item in items:
        if isinstance(item, PictureItem) and not item.captions:
            continue
        if first is not None and item.parent is not None and item.parent.cref == first.self_ref:
            continue  # its caption
        if not isinstance(item, TableItem):
            first = None
            continue
        if first is not None and not item.captions and _page(item) == first.prov[-1].page_no + 1 and _join(first, item, document):
            spent.append(item)
            continue
        first = item if item.prov else None
    if spent:
        document.delete_items(node_items=spent)


def _page(item: TableItem) -> int:
    return item.prov[0].page_no if item.prov else -1


def _part(table: TableItem, document: DoclingDocument, last: bool) -> TablePart:
    prov = table.prov[-1 if last else 0]
    width = document.pages[prov.page_no].size.width or 1.0
    lefts: dict[int, float] = {}
    for cell in table.data.table_cells:
        if cell.bbox is not None and cell.col_span == 1 and cell.text:
            column = cell.start_col_offset_idx
            lefts[column] = min(lefts.get(column, cell.bbox.l), cell.bbox.l)
    rows = table.data.grid[:HEADER_ROWS_LOOKED_AT]
    headers = sum(1 for row in rows if any(cell.column_header for cell in row))
    return TablePart(
        table.data.num_cols,
        tuple(lefts[column] / width for column in sorted(lefts)),
        tuple(tuple(cell.text for cell in row) for row in rows),
        max(1, headers),
    )


def _join(table: TableItem, more: TableItem, document: DoclingDocument) -> bool:
    before, after = _part(table, document, last=True), _part(more, document, last=False)
    if not goes_on(before, after):
        return False
    dropped = repeated_rows(before, after)
    begin = table.data.num_rows - dropped
    for cell in more.data.table_cells:
        if cell.end_row_offset_idx <= dropped:
            continue
        table.data.table_cells.append(_moved(cell, begin))
    table.data.num_rows = begin + more.data.num_rows
    table.prov.extend(more.prov)
    return True


def _moved(cell: TableCell, by: int) -> TableCell:
    return cell.model_copy(
        update={
            "start_row_offset_idx": cell.start_row_offset_idx + by,
            "end_row_offset_idx": cell.end_row_offset_idx + by,
            "column_header": False,
        }
    )
