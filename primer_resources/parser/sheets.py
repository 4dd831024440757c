"""What Docling leaves to be said of a workbook: dates without a time of day, and sheets that are hidden but there."""

import re

from docling_core.types.doc import ContentLayer, DoclingDocument

_MIDNIGHT = re.compile(r"(\d{4}-\d\d-\d\d) 00:00:00")
"""How a date cell comes out of openpyxl, which knows points in time only."""


def mend_sheets(document: DoclingDocument) -> None:
    """Write dates as dates, and put hidden sheets into the body as hidden rows and columns are: they hold what formulas and lists refer to,
    and whoever may open the file may show them."""
    for item in (*document.groups, *document.texts, *document.tables, *document.pictures):
        if item.content_layer is ContentLayer.INVISIBLE:
            item.content_layer = ContentLayer.BODY
    for table in document.tables:
        for cell in table.data.table_cells:
            if cell.text.endswith(" 00:00:00") and (date := _MIDNIGHT.fullmatch(cell.text)):
                cell.text = date[1]
