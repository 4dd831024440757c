"""Page pictures: grey images at the resolution that OCR wants, from a PDF's page or from an image file.

PDFium renders the pages (docling-parse's own rendering of bitmaps costs 1 % of the characters) and is not thread-safe, so
every use of it holds the lock that Docling's own PDFium backend holds.
"""

import io
from pathlib import Path

import pypdfium2
from docling.utils.locks import pypdfium2_lock
from PIL import Image, ImageFilter

from primer_resources.parser.ocr.ink import letter_height

DPI = 300
"""What Tesseract's models were trained for. At 200 dpi a third more characters of 11 point print are wrong."""

POINTS_PER_INCH = 72

MAX_PIXELS = 40_000_000
"""A page picture has no more; a larger page (a plan, a poster) is read at less than 300 dpi. A3 at 300 dpi has 17 million."""

MAX_ENLARGEMENT = 4.0
"""Nothing is gained by more: there are no letters in what would have to be enlarged further."""

TRUSTED_DPI = (100.0, 1_200.0)
"""Resolutions in an image file that a scanner wrote. 72 and 96 are what programs write when they do not know."""

FAX_DPI = 90.0
"""The coarser side of a standard fax, which has 204 × 98 dots an inch."""

SAME_SIZE = 0.05
"""Share by which a picture may differ from 300 dpi and be taken as it is."""

SMALL = 800
"""Pixels of the longer side below which a picture of unknown resolution is one from a screen, and how much it is enlarged."""
SMALL_GROWS_BY = 3.0

LETTER_HEIGHT = 24.0
"""Pixels of the median letter of 10 point print at 300 dpi, which images of unknown resolution are brought to."""

BILEVEL_BLUR = 0.8
"""Radius of the blur, in its own pixels, that gives a fax's stairs the slopes that the models know: it takes the error rate at 200 dpi
from 0.9 to 0.2 %."""

REVIEW_PIXELS = 1_500_000
"""Pixels of the picture that a person sees of a page: about 125 dpi for A4, enough to read by, small enough to keep."""


def render_page(path: Path, number: int) -> Image.Image:
    """Page `number` (from 0) of a PDF as it looks on paper, grey, at 300 dpi or what MAX_PIXELS allows."""
    with pypdfium2_lock, pypdfium2.PdfDocument(path) as pdf:
        page = pdf[number]
        width, height = page.get_size()
        scale = min(DPI / POINTS_PER_INCH, (MAX_PIXELS / max(1.0, width * height)) ** 0.5)
        drawn: Image.Image = page.render(scale=scale, grayscale=True).to_pil()
        # Copied, since the picture must outlive PDFium's buffer.
        return drawn.convert("L").copy()


def prepare_image(image: Image.Image) -> Image.Image:
    """One frame of an image file, grey on white, at an effective 300 dpi, its pixels square."""
    is_bilevel, resolution = image.mode == "1", _resolution(image)
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        opaque = Image.new("RGBA", image.size, "white")
        opaque.alpha_composite(image.convert("RGBA"))
        image = opaque
    grey = image.convert("L")
    across, down = (DPI / resolution[0], DPI / resolution[1]) if resolution else _by_letters(grey)
    limit = min(1.0, MAX_ENLARGEMENT / max(across, down), (MAX_PIXELS / (grey.width * across * grey.height * down)) ** 0.5)
    across, down = across * limit, down * limit
    if is_bilevel and max(across, down) > 1.0:
        grey = grey.filter(ImageFilter.GaussianBlur(BILEVEL_BLUR))
    if abs(across - 1.0) < SAME_SIZE and abs(down - 1.0) < SAME_SIZE:
        return grey
    size = (max(1, round(grey.width * across)), max(1, round(grey.height * down)))
    return grey.resize(size, Image.Resampling.BICUBIC, reducing_gap=2.0)


def _resolution(image: Image.Image) -> tuple[float, float] | None:
    """Pixels an inch across and down that the file states; None where that is nothing that a scanner or a fax wrote."""
    across, down = (float(value) for value in image.info.get("dpi", (0, 0)))
    if max(across, down) >= TRUSTED_DPI[0] and min(across, down) >= FAX_DPI and max(across, down) <= TRUSTED_DPI[1]:
        return across, down
    return None


def _by_letters(image: Image.Image) -> tuple[float, float]:
    """How much an image must grow for its letters to be as high as print at 300 dpi is; one with few letters as SMALL says."""
    height = letter_height(image)
    scale = LETTER_HEIGHT / height if height else SMALL_GROWS_BY if max(image.size) < SMALL else 1.0
    return scale, scale


def review_picture(image: Image.Image) -> bytes:
    """The page as a PNG of moderate size, for a person to look at."""
    scale = min(1.0, (REVIEW_PIXELS / (image.width * image.height)) ** 0.5)
    out = io.BytesIO()
    image.resize((max(1, round(image.width * scale)), max(1, round(image.height * scale))), Image.Resampling.BOX).save(out, "PNG")
    return out.getvalue()
