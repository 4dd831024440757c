"""Docling's own layout and table models in its own pipeline, for deployments that have the weights."""

from pathlib import Path
from typing import Any

from docling.datamodel.pipeline_options import HeadingHierarchyOptions, ThreadedPdfPipelineOptions
from docling.pipeline.standard_pdf_pipeline import StandardPdfPipeline

from primer_core.failures import SystemFault
from primer_resources.parser.pdf.config import PdfConfig
from primer_resources.parser.pdf.continued_tables import join_continued_tables
from primer_resources.parser.pdf.options import bounded
from primer_resources.parser.pdf.pipeline import OcrModel, no_ocr


class ModelPdfPipeline(StandardPdfPipeline):
    """Docling's pipeline as it is, with the OCR model that it is given, and tables joined over pages."""

    def __init__(self, pipeline_options: ThreadedPdfPipelineOptions, ocr_model: OcrModel = no_ocr) -> None:
        """Loads the models. Raises ImportError or OSError where one is missing."""
        self._given_ocr_model = ocr_model
        super().__init__(pipeline_options)

    def _make_ocr_model(self, art_path: Path | None) -> Any:
        return self._given_ocr_model

    def _assemble_document(self, conv_res: Any) -> Any:
        conv_res = super()._assemble_document(conv_res)
        join_continued_tables(conv_res.document)
        return conv_res


def open_models(config: PdfConfig, ocr_model: OcrModel = no_ocr) -> ModelPdfPipeline:
    """The pipeline of Docling's models. Raises SystemFault that says what is missing: a model that was asked for is never replaced."""
    options = bounded(
        ThreadedPdfPipelineOptions(
            artifacts_path=config.artifacts,
            heading_hierarchy_options=HeadingHierarchyOptions(enabled=True, use_style=False),
            do_ocr=False,
            allow_external_plugins=True,
        )
    )
    try:
        return ModelPdfPipeline(options, ocr_model)
    except (ImportError, OSError) as error:
        where = config.artifacts or "the hub's cache"
        reason = " ".join(str(error).split())[:300]
        raise SystemFault(
            f"PRIMER_PDF_ENGINE = 'models', but Docling's models cannot be loaded from {where} ({type(error).__name__}: {reason}); "
            "put them there with `docling-tools models download` and name the folder in PRIMER_DOCLING_ARTIFACTS, install "
            "docling[standard], or set PRIMER_PDF_ENGINE=rules"
        ) from error
