"""Docling's StandardPdfPipeline with the engines of rules in it: no model is downloaded or loaded."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from docling.datamodel.base_models import Page
from docling.datamodel.document import ConversionResult
from docling.datamodel.pipeline_options import ThreadedPdfPipelineOptions
from docling.models.stages.page_preprocessing.page_preprocessing_model import PagePreprocessingModel, PagePreprocessingOptions
from docling.pipeline.standard_pdf_pipeline import StandardPdfPipeline

from primer_resources.parser.pdf.assembling import RuleAssembleModel
from primer_resources.parser.pdf.continued_tables import join_continued_tables
from primer_resources.parser.pdf.heading_levels import RuleHeadingHierarchyModel
from primer_resources.parser.pdf.labelling import label_pages
from primer_resources.parser.pdf.layout_engine import RuleLayoutModel
from primer_resources.parser.pdf.options import RuleLayoutOptions, RuleTableOptions
from primer_resources.parser.pdf.postprocess import RulePostprocessingModel
from primer_resources.parser.pdf.reading_order import RuleReadingOrderModel
from primer_resources.parser.pdf.table_engine import RuleTableModel

OcrModel = Callable[[ConversionResult, Iterable[Page]], Iterable[Page]]
"""What a Docling OCR model is to the pipeline (a BaseOcrModel is one)."""


def no_ocr(conv_res: ConversionResult, pages: Iterable[Page]) -> Iterable[Page]:
    """The OCR stage where no engine is given: pages pass as they are."""
    return pages


class _PlainPreprocessingModel(PagePreprocessingModel):
    """Docling's preprocessing without a picture of every page, which nothing here looks at."""

    def _populate_page_images(self, page: Page) -> Page:
        return page


class RulePdfPipeline(StandardPdfPipeline):
    """Layout, tables and kinds by rules; paragraphs, reading order, captions and lists as Docling makes them."""

    def __init__(self, pipeline_options: ThreadedPdfPipelineOptions, ocr_model: OcrModel = no_ocr) -> None:
        """`ocr_model` reads the pages that the layout engine marks. Options are best those of options.rule_options."""
        self._given_ocr_model = ocr_model
        super().__init__(pipeline_options)

    def _init_models(self) -> None:
        # Docling's own set-up asks every installed plugin for its engines, which imports torchvision for a table model not used here.
        self.keep_images = self.keep_backend = False
        self.preprocessing_model = _PlainPreprocessingModel(options=PagePreprocessingOptions(images_scale=None))
        self.ocr_model = self._make_ocr_model(self.artifacts_path)
        self.layout_model = RuleLayoutModel(RuleLayoutOptions())
        self.layout_postprocessing_model = RulePostprocessingModel()
        self.table_model = RuleTableModel(RuleTableOptions())
        self.assemble_model = RuleAssembleModel()
        self.reading_order_model = RuleReadingOrderModel()
        self.heading_hierarchy_model = RuleHeadingHierarchyModel(self.pipeline_options.heading_hierarchy_options)
        self.enrichment_pipe = []

    def _make_ocr_model(self, art_path: Path | None) -> Any:
        return self._given_ocr_model

    def _assemble_document(self, conv_res: ConversionResult) -> ConversionResult:
        label_pages(conv_res.pages, self.assemble_model)
        conv_res = super()._assemble_document(conv_res)
        join_continued_tables(conv_res.document)
        return conv_res
