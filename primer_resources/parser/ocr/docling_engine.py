"""The OCR engine as Docling's pipeline knows it: reads the pages that need it, and hands back lines and words as text cells.

A page is read whole, straightened first; its size becomes that of the straightened picture, so that whatever looks at the cells
afterwards sees an upright page. Native text cells of the page that say the same are left out.
"""

from collections.abc import Iterable
from pathlib import Path
from statistics import fmean
from typing import ClassVar

from docling.datamodel.accelerator_options import AcceleratorOptions
from docling.datamodel.base_models import InputFormat, Page
from docling.datamodel.document import ConversionResult
from docling.datamodel.pipeline_options import OcrOptions
from docling.models.base_ocr_model import BaseOcrModel
from docling_core.types.doc import BoundingBox, CoordOrigin, Size
from docling_core.types.doc.page import BoundingRectangle, TextCell
from PIL import Image
from pydantic import Field

from primer_core.failures import DocumentFault
from primer_core.page_kinds import PageKind, page_kind
from primer_core.recognised import Word, as_text, even_out, group_lines
from primer_core.reviews import ReviewPage
from primer_resources.parser.ocr.frames import load_frame
from primer_resources.parser.ocr.installation import installed_languages, unavailable
from primer_resources.parser.ocr.page_reader import read_page
from primer_resources.parser.ocr.pictures import DPI, POINTS_PER_INCH, render_page, review_picture


class ScanOcrOptions(OcrOptions):
    """Chooses ScanOcrModel. Pages read with a confidence below `bar` (0 to 1) give no cells and are kept for review."""

    kind: ClassVar[str] = "primer_tesseract"
    canonicalize_lang: ClassVar[bool] = False

    lang: list[str] = Field(default_factory=lambda: ["eng"])
    bar: float = 0.0


class ScanOcrModel(BaseOcrModel):
    """Reads the pages that have no sound text layer, with Tesseract."""

    multiple_languages: ClassVar[bool] = True

    options: ScanOcrOptions

    def __init__(
        self,
        options: ScanOcrOptions,
        enabled: bool = True,
        artifacts_path: Path | None = None,
        accelerator_options: AcceleratorOptions | None = None,
    ) -> None:
        """Nothing is loaded: Tesseract is started for each page."""
        super().__init__(
            enabled=enabled, artifacts_path=artifacts_path, options=options, accelerator_options=accelerator_options or AcceleratorOptions()
        )
        self._name = ""
        self._accepted: frozenset[int] = frozenset()
        self._reviews: list[ReviewPage] = []
        self._fault: DocumentFault | None = None
        self._is_installed: bool | None = None

    @classmethod
    def get_options_type(cls) -> type[ScanOcrOptions]:
        """The options that choose this engine."""
        return ScanOcrOptions

    def begin(self, name: str, accepted_pages: frozenset[int]) -> None:
        """Before a document: its name, for messages, and the pages that a person let through whatever their confidence."""
        self._name, self._accepted = name, accepted_pages
        self._reviews, self._fault, self._is_installed = [], None, None

    def end(self) -> tuple[ReviewPage, ...]:
        """After a document: its pages that want a review. Raises DocumentFault where pages needed OCR and there is none, or where a
        picture is damaged."""
        if self._fault is not None:
            raise self._fault
        return tuple(sorted(self._reviews, key=lambda review: review.page))

    def __call__(self, conv_res: ConversionResult, page_batch: Iterable[Page]) -> Iterable[Page]:
        """The pages, those that need it read."""
        for page in page_batch:
            if self.enabled and page._backend is not None and page._backend.is_valid():
                kind = kind_of(page)
                if kind.needs_ocr and self._has_tesseract(page.page_no):
                    self._read(conv_res, page, kind)
            yield page

    def _has_tesseract(self, page_no: int) -> bool:
        if self._is_installed is None:
            self._is_installed = installed_languages() is not None
        if not self._is_installed and self._fault is None:
            self._fault = unavailable(self._name, page_no)
        return self._is_installed

    def _picture(self, conv_res: ConversionResult, page: Page) -> Image.Image:
        """The page as it looks, opened anew: the backend's own PDF is read by another library, which draws bitmaps badly."""
        path = Path(conv_res.input.file)
        if _is_image(conv_res):
            return load_frame(path, page.page_no - 1, self._name)
        return render_page(path, page.page_no - 1)

    def _read(self, conv_res: ConversionResult, page: Page, kind: PageKind) -> None:
        assert page.size is not None
        assert page.parsed_page is not None
        try:
            picture = self._picture(conv_res, page)
        except DocumentFault as fault:
            self._fault = self._fault or fault
            return
        reading = read_page(picture, tuple(self.options.lang))
        if kind is PageKind.GARBLED:
            _drop_native(page)
        if reading.confidence < self.options.bar and page.page_no not in self._accepted:
            self._reviews.append(ReviewPage(page.page_no, reading.confidence, as_text(reading.words), review_picture(reading.image)))
            return
        if not reading.words:
            return
        scale = POINTS_PER_INCH / DPI if _is_image(conv_res) else page.size.width / picture.width
        if reading.turned:
            _drop_native(page)
        page.size = Size(width=reading.image.width * scale, height=reading.image.height * scale)
        words = even_out(reading.words)
        native = list(page.parsed_page.word_cells)
        self.post_process_cells(line_cells(words, scale), page, conv_res)
        page.parsed_page.word_cells = [*native, *(_cell([word], scale) for word in words)]
        page.parsed_page.has_words = True


def kind_of(page: Page) -> PageKind:
    """What a parsed page is, by its text cells and bitmaps."""
    if page._backend is None or not page._backend.is_valid():
        return PageKind.BLANK
    text = "\n".join(cell.text for cell in page.cells)
    return page_kind(text, any(True for _ in page._backend.get_bitmap_rects()))


def line_cells(words: Iterable[Word], scale: float) -> list[TextCell]:
    """A text cell a line, in reading order; `scale` is points a pixel."""
    return [_cell(line, scale) for line in group_lines(words)]


def _cell(words: Iterable[Word], scale: float) -> TextCell:
    members = list(words)
    text = " ".join(word.text for word in members)
    box = BoundingBox(
        l=min(word.left for word in members) * scale,
        t=min(word.top for word in members) * scale,
        r=max(word.right for word in members) * scale,
        b=max(word.bottom for word in members) * scale,
        coord_origin=CoordOrigin.TOPLEFT,
    )
    confidence = fmean(word.confidence for word in members) / 100
    return TextCell(text=text, orig=text, rect=BoundingRectangle.from_bounding_box(box), confidence=confidence, from_ocr=True)


def _is_image(conv_res: ConversionResult) -> bool:
    return conv_res.input.format is InputFormat.IMAGE


def _drop_native(page: Page) -> None:
    """Forget what the text layer says."""
    assert page.parsed_page is not None
    page.parsed_page.textline_cells = []
    page.parsed_page.word_cells = []
    page.parsed_page.char_cells = []
