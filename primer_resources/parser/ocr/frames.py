"""Image files: how many pictures they hold, whether they may be decoded, and one picture ready to be read. Pillow decodes them.

Sizes are looked at in the headers before a pixel is decoded: a few kilobytes of PNG may stand for gigabytes.
"""

import struct
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image, ImageOps, UnidentifiedImageError

from primer_core.failures import DocumentFault, Reason, is_of_system
from primer_resources.parser.ocr.pictures import prepare_image

MAX_IMAGE_PIXELS = 150_000_000
"""Pixels of one picture: a sheet of A0 at 300 dpi has 139 million."""

MAX_FRAMES = 2_000
"""Pictures in one file: a scanner's tray holds some hundred sheets."""

FORMATS = ("PNG", "JPEG", "TIFF", "BMP", "WEBP")
"""What Pillow may try, by its names."""


def frame_sizes(path: Path, name: str) -> list[tuple[int, int]]:
    """Width and height in pixels of each picture in the file. Raises DocumentFault (too_large, truncated, corrupt) that names `name`."""
    sizes = []
    with _faults(name), _opened(path) as image:
        # A camera's MPO is a JPEG with the same view behind it.
        frames = 1 if image.format == "MPO" else int(getattr(image, "n_frames", 1))
        if frames > MAX_FRAMES:
            raise DocumentFault(Reason.TOO_LARGE, f"{name} holds {frames:,} pictures, more than {MAX_FRAMES:,}; split it")
        for number in range(frames):
            image.seek(number)
            width, height = image.size
            if width * height > MAX_IMAGE_PIXELS:
                which = f"{name}, picture {number + 1}," if frames > 1 else name
                much = f"{width:,} × {height:,} pixels, more than {MAX_IMAGE_PIXELS:,}"
                raise DocumentFault(Reason.TOO_LARGE, f"{which} has {much}; scan it more coarsely")
            sizes.append((width, height))
    return sizes


def load_frame(path: Path, number: int, name: str) -> Image.Image:
    """Picture `number` (from 0) as OCR wants it: grey, the right way up by the camera's own mark, at an effective 300 dpi.

    Raises DocumentFault (truncated, corrupt) where it cannot be decoded.
    """
    with _faults(name), _opened(path) as image:
        image.seek(number)
        return prepare_image(ImageOps.exif_transpose(image))


@contextmanager
def _faults(name: str) -> Iterator[None]:
    """What Pillow raises on damaged files, as the document's fault."""
    try:
        yield
    except UnidentifiedImageError as error:
        raise DocumentFault(Reason.CORRUPT, f"{name} cannot be opened as an image; save it again") from error
    except Image.DecompressionBombError as error:
        raise DocumentFault(Reason.TOO_LARGE, f"{name} has far more than {MAX_IMAGE_PIXELS:,} pixels; scan it more coarsely") from error
    except (OSError, EOFError, SyntaxError, ValueError, struct.error) as error:
        if is_of_system(error):
            raise
        words = " ".join(str(error).split())
        if "truncated" in words.lower() or isinstance(error, EOFError):
            raise DocumentFault(Reason.TRUNCATED, f"{name} ends before its picture does; upload the whole file again") from error
        raise DocumentFault(Reason.CORRUPT, f"{name} cannot be read as an image ({words}); save it again") from error


@contextmanager
def _opened(path: Path) -> Iterator[Image.Image]:
    with warnings.catch_warnings():
        # Pillow warns at a smaller size than is checked here.
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        with Image.open(path, formats=FORMATS) as image:
            yield image
