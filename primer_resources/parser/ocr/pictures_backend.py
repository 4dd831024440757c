"""Docling's view of an image file: pages that are one bitmap each and hold no text. Nothing is decoded here; the OCR engine does it."""

from collections.abc import Iterable
from io import BytesIO
from pathlib import Path

from docling.backend.pdf_backend import PdfDocumentBackend, PdfPageBackend
from docling.datamodel.backend_options import PdfBackendOptions
from docling.datamodel.base_models import InputFormat
from docling.datamodel.document import InputDocument
from docling_core.types.doc import BoundingBox, CoordOrigin, Size
from docling_core.types.doc.page import (
    BoundingRectangle,
    PdfPageBoundaryType,
    PdfPageGeometry,
    SegmentedPdfPage,
    TextCell,
)
from PIL import Image

from primer_resources.parser.ocr.frames import frame_sizes, load_frame
from primer_resources.parser.ocr.pictures import DPI, POINTS_PER_INCH


class PicturePage(PdfPageBackend):
    """One picture of an image file as a page."""

    def __init__(self, path: Path, number: int, pixels: tuple[int, int]) -> None:
        """`number` counts from 0; `pixels` are width and height."""
        self._path, self._number = path, number
        self._size = Size(width=pixels[0] * POINTS_PER_INCH / DPI, height=pixels[1] * POINTS_PER_INCH / DPI)
        self._is_open = True

    @property
    def page_no(self) -> int:
        """The page's number from 1."""
        return self._number + 1

    def is_valid(self) -> bool:
        """Whether it is not unloaded."""
        return self._is_open

    def get_size(self) -> Size:
        """Points, as if it were scanned at 300 dpi; the OCR engine corrects it."""
        return self._size

    def get_bitmap_rects(self, scale: float = 1) -> Iterable[BoundingBox]:
        """The whole page."""
        yield self._whole(CoordOrigin.TOPLEFT).scaled(scale=scale)

    def get_segmented_page(self) -> SegmentedPdfPage:
        """A page without text cells."""
        box = self._whole(CoordOrigin.BOTTOMLEFT)
        geometry = PdfPageGeometry(
            angle=0.0,
            rect=BoundingRectangle.from_bounding_box(box),
            boundary_type=PdfPageBoundaryType.CROP_BOX,
            art_bbox=box,
            bleed_bbox=box,
            crop_bbox=box,
            media_bbox=box,
            trim_bbox=box,
        )
        return SegmentedPdfPage(dimension=geometry, char_cells=[], word_cells=[], textline_cells=[])

    def get_text_in_rect(self, bbox: BoundingBox) -> str:
        """Nothing."""
        return ""

    def get_text_cells(self) -> Iterable[TextCell]:
        """None."""
        return []

    def get_page_image(self, scale: float = 1, cropbox: BoundingBox | None = None) -> Image.Image:
        """The picture, grey."""
        box = (cropbox or self._whole(CoordOrigin.TOPLEFT)).to_top_left_origin(self._size.height)
        picture = load_frame(self._path, self._number, self._path.name)
        across, down = picture.width / self._size.width, picture.height / self._size.height
        size = (max(1, round(box.width * scale)), max(1, round(box.height * scale)))
        return picture.resize(size, box=(box.l * across, box.t * down, box.r * across, box.b * down))

    def unload(self) -> None:
        """Forget the page."""
        self._is_open = False

    def _whole(self, origin: CoordOrigin) -> BoundingBox:
        top, bottom = (0.0, self._size.height) if origin is CoordOrigin.TOPLEFT else (self._size.height, 0.0)
        return BoundingBox(l=0.0, t=top, r=self._size.width, b=bottom, coord_origin=origin)


class PicturesBackend(PdfDocumentBackend):
    """An image file as a document, a page a picture."""

    def __init__(self, in_doc: InputDocument, path_or_stream: BytesIO | Path, options: PdfBackendOptions | None = None) -> None:
        """Reads headers only. `path_or_stream` must be a path. Raises DocumentFault as frames.frame_sizes does."""
        super().__init__(in_doc, path_or_stream, options)
        assert isinstance(path_or_stream, Path)
        self._path = path_or_stream
        self._sizes = frame_sizes(self._path, self._path.name)

    def is_valid(self) -> bool:
        """Whether there is a picture."""
        return bool(self._sizes)

    def page_count(self) -> int:
        """The number of pictures."""
        return len(self._sizes)

    def load_page(self, page_no: int) -> PicturePage:
        """Page `page_no` from 0."""
        return PicturePage(self._path, page_no, self._sizes[page_no])

    @classmethod
    def supported_formats(cls) -> set[InputFormat]:
        """Images."""
        return {InputFormat.IMAGE}
