"""Docling's plugin point (entry-point group "docling"): the engines of rules, for whoever builds a pipeline of Docling's own."""

from typing import Any


def layout_engines() -> dict[str, list[type[Any]]]:
    """Layout engines."""
    from primer_resources.parser.pdf.layout_engine import RuleLayoutModel

    return {"layout_engines": [RuleLayoutModel]}


def table_structure_engines() -> dict[str, list[type[Any]]]:
    """Table-structure engines."""
    from primer_resources.parser.pdf.table_engine import RuleTableModel

    return {"table_structure_engines": [RuleTableModel]}


def ocr_engines() -> dict[str, list[type[Any]]]:
    """OCR engines."""
    from primer_resources.parser.ocr.docling_engine import ScanOcrModel

    return {"ocr_engines": [ScanOcrModel]}
