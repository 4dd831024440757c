"""Docling options that choose the engines of rules: Docling picks an engine by the type of its options."""

from typing import ClassVar

from docling.datamodel.backend_options import ThreadedDoclingParseBackendOptions
from docling.datamodel.pipeline_options import (
    BaseLayoutOptions,
    BaseTableStructureOptions,
    HeadingHierarchyOptions,
    ThreadedPdfPipelineOptions,
)

MAX_WAITING_PAGES = 4
"""Decoded pages that docling-parse may hold ahead: the default queue took 3.2 GB on 240 pages, this one 1 GB at the same speed."""


class RuleLayoutOptions(BaseLayoutOptions):
    """Chooses RuleLayoutModel."""

    kind: ClassVar[str] = "primer_rules"


class RuleTableOptions(BaseTableStructureOptions):
    """Chooses RuleTableModel."""

    kind: ClassVar[str] = "primer_rules"


def rule_options() -> ThreadedPdfPipelineOptions:
    """Options of a pipeline of rules: small queues, nothing kept of a page once it is assembled."""
    return bounded(
        ThreadedPdfPipelineOptions(
            layout_options=RuleLayoutOptions(),
            table_structure_options=RuleTableOptions(),
            heading_hierarchy_options=HeadingHierarchyOptions(enabled=True, use_numbering=False, use_style=False),
            allow_external_plugins=True,
            do_ocr=False,
        )
    )


def bounded(options: ThreadedPdfPipelineOptions) -> ThreadedPdfPipelineOptions:
    """The options with memory bounded: few pages under way, none kept. 240 pages then take under 1.2 GB."""
    options.queue_max_size = MAX_WAITING_PAGES
    options.layout_batch_size = options.ocr_batch_size = options.table_batch_size = 1
    options.batch_polling_interval_seconds = 0.05
    options.generate_parsed_pages = False
    options.generate_page_images = options.generate_picture_images = False
    return options


def backend_options(pictures: bool = False) -> ThreadedDoclingParseBackendOptions:
    """Options of the PDF reader: one thread, few pages ahead; a picture of each page only for models, which look at it."""
    return ThreadedDoclingParseBackendOptions.model_validate(
        {"parser_threads": 1, "max_concurrent_results": MAX_WAITING_PAGES, "render_pages": pictures, "include_bitmap_images": False}
    )
