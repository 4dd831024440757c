"""Tesseract through pytesseract: one process a call, one thread a process, a time limit on each."""

import re
import tempfile
from enum import IntEnum
from pathlib import Path
from typing import NoReturn

import pytesseract
from PIL import Image

from primer_core.recognised import Word

READ_SECONDS = 60
"""Wall time of one reading. A full page takes 3 CPU seconds; one that takes longer than this is noise that looks like letters."""


class Segmentation(IntEnum):
    """Tesseract's page segmentation modes that are used."""

    ORIENTATION_ONLY = 0
    AUTOMATIC = 3
    ONE_BLOCK = 6


class ReadingTimedOut(Exception):
    """A page took longer than READ_SECONDS."""


def read_words(image: Image.Image, languages: tuple[str, ...], segmentation: Segmentation) -> list[Word]:
    """The words of a grey image of 300 dpi, in Tesseract's reading order. Raises ReadingTimedOut."""
    with _PictureFile(image) as file:
        try:
            data = pytesseract.image_to_data(
                file,
                lang="+".join(languages),
                config=f"--psm {segmentation} --dpi 300",
                output_type=pytesseract.Output.DICT,
                timeout=READ_SECONDS,
            )
        except RuntimeError as error:
            _raise_timed_out(error)
    boxes = zip(data["left"], data["top"], data["width"], data["height"], strict=True)
    lines = zip(data["block_num"], data["par_num"], data["line_num"], strict=True)
    rows = zip(data["text"], data["conf"], boxes, lines, strict=True)
    return [Word(text.strip(), float(confidence), *box, line) for text, confidence, box, line in rows if text.strip()]


def turned_by(image: Image.Image) -> int:
    """Degrees clockwise by which a page must be turned to stand upright (0, 90, 180, 270); 0 where Tesseract cannot tell."""
    with _PictureFile(image) as file:
        try:
            found = pytesseract.image_to_osd(file, lang="osd", config="--psm 0 --dpi 300", timeout=READ_SECONDS)
        except pytesseract.TesseractError:
            return 0  # too few letters
        except RuntimeError as error:
            _raise_timed_out(error)
    match = re.search(r"^Rotate: (\d+)", found, re.MULTILINE)
    return int(match[1]) % 360 if match else 0


def _raise_timed_out(error: RuntimeError) -> NoReturn:
    """pytesseract tells of a time-out with a bare RuntimeError; its subclass TesseractError is another matter."""
    if isinstance(error, pytesseract.TesseractError):
        raise error
    raise ReadingTimedOut(str(error)) from error


class _PictureFile:
    """The image as an uncompressed TIFF, the quickest for Tesseract to load, which pytesseract hands on as it is."""

    def __init__(self, image: Image.Image) -> None:
        self._image = image
        self._directory = tempfile.TemporaryDirectory(prefix="ocr-")

    def __enter__(self) -> str:
        path = Path(self._directory.name) / "page.tif"
        # Said outright: the image may remember that it came from a fax, whose compression takes black and white only.
        self._image.save(path, compression="raw")
        return str(path)

    def __exit__(self, *_: object) -> None:
        self._directory.cleanup()
