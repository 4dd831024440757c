"""Image files: how many pictures they hold, whether they may be decoded, and one picture ready to be read. Pillow decodes them.

Sizes are looked at in the headers before a pixel is decoded: a few kilobytes of PNG may stand for gigabytes.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image, ImageOps, UnidentifiedImageError

from primer_core.failures import DocumentFault, Reason
from primer_resources.parser.engines.source import Source
from primer_resources.parser.ocr.pictures import prepare_image

MAX_IMAGE_PIXELS = 150_000_000
"""Pixels of one picture: a sheet of A0 at 300 dpi has 139 million."""

MAX_FRAMES = 2_000
"""Pictures in one file: a scanner's tray holds some hundred sheets."""

FORMATS = ("PNG", "JPEG", "TIFF", "BMP", "WEBP", "MPO")
"""What Pillow may try, by its names. MPO is a camera's JPEG with a second one behind it."""


def count_frames(source: Source) -> int:
    """The number of pictures in the file. Raises DocumentFault (too_large, truncated, corrupt)."""
    try:
        with _opened(source.path) as image:
            frames = 1 if image.format == "MPO" else int(getattr(image, "n_frames", 1))
            if frames > MAX_FRAMES:
                raise DocumentFault(Reason.TOO_LARGE, f"{source.name} holds {frames:,} pictures, more than {MAX_FRAMES:,}; split it")
            for number in range(frames):
                image.seek(number)
                width, height = image.size
                if width * height > MAX_IMAGE_PIXELS:
                    where = f", picture {number + 1}" if frames > 1 else ""
                    raise DocumentFault(
                        Reason.TOO_LARGE,
                        f"{source.name}{where} has {width:,} × {height:,} pixels, more than {MAX_IMAGE_PIXELS:,}; scan it more coarsely",
                    )
    except UnidentifiedImageError as error:
        raise DocumentFault(Reason.CORRUPT, f"{source.name} cannot be opened as an image; save it again") from error
    except (OSError, EOFError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise _damaged(source, error) from error
    return frames


def check_decodes(source: Source, number: int) -> None:
    """Decode picture `number` (from 0). Raises DocumentFault (truncated, corrupt)."""
    try:
        with _opened(source.path) as image:
            image.seek(number)
            image.load()
    except (OSError, EOFError, SyntaxError, ValueError) as error:
        raise _damaged(source, error) from error


def load_frame(path: Path, number: int) -> Image.Image:
    """Picture `number` (from 0) as OCR wants it: grey, the right way up by the camera's own mark, at an effective 300 dpi."""
    with _opened(path) as image:
        image.seek(number)
        return prepare_image(ImageOps.exif_transpose(image))


@contextmanager
def _opened(path: Path) -> Iterator[Image.Image]:
    with warnings.catch_warnings():
        # Pillow warns at a smaller size than is checked here.
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        with Image.open(path, formats=FORMATS) as image:
            yield image


def _damaged(source: Source, error: BaseException) -> DocumentFault:
    words = source.tidy(str(error))
    if "truncated" in words.lower() or isinstance(error, EOFError):
        return DocumentFault(Reason.TRUNCATED, f"{source.name} ends before its picture does; upload the whole file again")
    return DocumentFault(Reason.CORRUPT, f"{source.name} cannot be read as an image ({words}); save it again")
