"""Page pictures: grey images at the resolution that OCR wants, from a PDF's page or from an image file.

PDFium renders the pages (docling-parse's own rendering of bitmaps costs 1 to 2 % of the characters) and is not thread-safe, so
every use of it holds the lock that Docling's own PDFium backend holds.
"""

import io

import pypdfium2
from docling.utils.locks import pypdfium2_lock
from PIL import Image, ImageFilter

from primer_resources.parser.ocr.ink import letter_height

DPI = 300
"""What Tesseract's models were trained for. At 200 dpi small print loses twice the characters, more than 300 brings nothing."""

POINTS_PER_INCH = 72

MAX_PIXELS = 40_000_000
"""A page picture has no more; a larger page (a plan, a poster) is read at less than 300 dpi. A3 at 300 dpi has 17 million."""

MAX_ENLARGEMENT = 4.0
"""Nothing is gained by more: there are no letters in what would have to be enlarged further."""

TRUSTED_DPI = (100.0, 1_200.0)
"""Resolutions in an image file that a scanner wrote. 72 and 96 are what programs write when they do not know."""

LETTER_HEIGHT = 24.0
"""Pixels of the median letter of 10 point print at 300 dpi, which images of unknown resolution are brought to."""

BILEVEL_BLUR = 0.8
"""Radius of the blur, in its own pixels, that gives a fax's stairs the slopes that the models know: it takes the error rate at 200 dpi
from 0.9 to 0.2 %."""

REVIEW_PIXELS = 1_500_000
"""Pixels of the picture that a person sees of a page: about 125 dpi for A4, enough to read by, small enough to keep."""


def render_page(page: pypdfium2.PdfPage) -> Image.Image:
    """A PDF page as it looks on paper, grey, at 300 dpi or what MAX_PIXELS allows."""
    with pypdfium2_lock:
        width, height = page.get_size()
        scale = min(DPI / POINTS_PER_INCH, (MAX_PIXELS / max(1.0, width * height)) ** 0.5)
        return page.render(scale=scale, grayscale=True, may_draw_forms=True).to_pil().convert("L")


def prepare_image(image: Image.Image) -> Image.Image:
    """One frame of an image file, grey on white, at an effective 300 dpi."""
    is_bilevel = image.mode == "1"
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        opaque = Image.new("RGBA", image.size, "white")
        opaque.alpha_composite(image.convert("RGBA"))
        image = opaque
    resolution = image.info.get("dpi", (0, 0))
    grey = image.convert("L")
    scale = _enlargement(grey, float(resolution[0] or 0))
    if is_bilevel and scale > 1.0:
        grey = grey.filter(ImageFilter.GaussianBlur(BILEVEL_BLUR))
    if abs(scale - 1.0) < 0.05:
        return grey
    size = (max(1, round(grey.width * scale)), max(1, round(grey.height * scale)))
    return grey.resize(size, Image.Resampling.BICUBIC, reducing_gap=2.0)


def _enlargement(image: Image.Image, resolution: float) -> float:
    """By how much an image must grow to be at 300 dpi: by what it says, or by its letters where it does not say."""
    if TRUSTED_DPI[0] <= resolution <= TRUSTED_DPI[1]:
        scale = DPI / resolution
    else:
        height = letter_height(image)
        scale = LETTER_HEIGHT / height if height else MAX_ENLARGEMENT if max(image.size) < 800 else 1.0
    return min(scale, MAX_ENLARGEMENT, (MAX_PIXELS / (image.width * image.height)) ** 0.5)


def review_picture(image: Image.Image) -> bytes:
    """The page as a PNG of moderate size, for a person to look at."""
    scale = min(1.0, (REVIEW_PIXELS / (image.width * image.height)) ** 0.5)
    out = io.BytesIO()
    image.resize((max(1, round(image.width * scale)), max(1, round(image.height * scale))), Image.Resampling.BOX).save(out, "PNG")
    return out.getvalue()
