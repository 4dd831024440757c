"""The layout engine, which runs before OCR: it decides which pages are to be read by OCR.

A page that needs OCR gets one cluster over the whole page, which makes Docling hand exactly that page to the OCR model. What a page's
text is laid out as is decided afterwards, when OCR has read (postprocess.py).
"""

from collections.abc import Sequence
from pathlib import Path

from docling.datamodel.accelerator_options import AcceleratorOptions
from docling.datamodel.base_models import Cluster, LayoutPrediction, Page
from docling.datamodel.document import ConversionResult
from docling.models.base_layout_model import BaseLayoutModel
from docling_core.types.doc import DocItemLabel

from primer_core.layout.geometry import Box
from primer_resources.parser.ocr.docling_engine import kind_of
from primer_resources.parser.pdf.cells import docling_box
from primer_resources.parser.pdf.options import RuleLayoutOptions


class RuleLayoutModel(BaseLayoutModel):
    """Marks the pages for OCR."""

    requires_layout_postprocessing = False

    def __init__(
        self,
        options: RuleLayoutOptions,
        artifacts_path: Path | None = None,
        accelerator_options: AcceleratorOptions | None = None,
        enable_remote_services: bool = False,
    ) -> None:
        """No model is loaded: what Docling passes besides `options` is of no use here."""
        self.options = options

    @classmethod
    def get_options_type(cls) -> type[RuleLayoutOptions]:
        """The options that choose this engine."""
        return RuleLayoutOptions

    def predict_layout(self, conv_res: ConversionResult, pages: Sequence[Page]) -> Sequence[LayoutPrediction]:
        """One full-page cluster for each page that needs OCR, none for the others."""
        return [LayoutPrediction(clusters=_scan(page)) for page in pages]


def _scan(page: Page) -> list[Cluster]:
    if page.size is None or not kind_of(page).needs_ocr:
        return []
    whole = docling_box(Box(0.0, 0.0, page.size.width, page.size.height))
    return [Cluster(id=0, label=DocItemLabel.TEXT, bbox=whole, confidence=1.0, cells=page.cells)]
