"""Pictures of pages, taken in a worker: a renderer may end its process on a hostile file."""

import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from primer_core.conservation import count_words, weigh
from primer_core.routing import Format
from primer_resources.workers import Call, Ending, WorkerPool

LONGEST_SIDE = 1_100
"""Pixels: small print of a whole page can still be read."""
QUALITY = 70
"""Of the JPEG: about 150 kB a page of text."""
_PICTURE_FILE = "page.jpg"


@dataclass(frozen=True, slots=True)
class Shot:
    """A page to be taken: `page` counts from 1; None for the one that has most words that `read` (page → text) has not."""

    path: Path
    format: Format
    page: int | None
    read: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class Picture:
    """The page that was taken and its JPEG; no bytes where it could not be."""

    page: int
    jpeg: bytes = b""


def take_pictures(shots: Iterable[Shot], pool: WorkerPool[Any]) -> Iterator[tuple[int, Picture]]:
    """Pictures with the number of their shot (from 0), in the order in which they are ready."""
    shots = list(shots)
    calls = (
        Call(number, take, (shot.path.absolute(), shot.format, shot.page, dict(shot.read)), shot.path.stat().st_size)
        for number, shot in enumerate(shots)
    )
    for finished in pool.run(calls):
        if finished.ending is Ending.RETURNED:
            yield finished.key, Picture(finished.value, (finished.directory / _PICTURE_FILE).read_bytes())
        else:
            yield finished.key, Picture(shots[finished.key].page or 1)


def take(directory: Path, path: Path, format_: Format, page: int | None, read: dict[int, str]) -> int:
    """The task, in the worker: the page that it took."""
    if format_ is Format.PDF:
        page = page or _page_with_most_missing(path, read)
        picture = _of_pdf(path, page)
    else:
        page = page or 1
        picture = _of_image(path, page)
    (directory / _PICTURE_FILE).write_bytes(picture)
    return page


def _of_pdf(path: Path, page: int) -> bytes:
    import pypdfium2

    with pypdfium2.PdfDocument(path) as pdf:
        sheet = pdf[page - 1]
        try:
            return _jpeg(sheet.render(scale=LONGEST_SIDE / max(sheet.get_size())).to_pil())
        finally:
            sheet.close()


def _of_image(path: Path, page: int) -> bytes:
    from PIL import Image

    with Image.open(path) as image:
        image.seek(page - 1)
        return _jpeg(image)


def _jpeg(image: Any) -> bytes:
    small = image.convert("RGB")
    small.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    out = io.BytesIO()
    small.save(out, "JPEG", quality=QUALITY, optimize=True)
    return out.getvalue()


def _page_with_most_missing(path: Path, read: Mapping[int, str]) -> int:
    import pypdfium2

    lost: dict[int, float] = {}
    with pypdfium2.PdfDocument(path) as pdf:
        for number in range(1, len(pdf) + 1):
            page = pdf[number - 1]
            layer = page.get_textpage()
            weighed = weigh(count_words(layer.get_text_range()), count_words(read.get(number, "")), {}, {})
            lost[number] = (1 - weighed.share) * weighed.words
            layer.close()
            page.close()
    return max(lost, key=lambda number: lost[number], default=1)
