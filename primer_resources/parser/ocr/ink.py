"""What can be seen on a page picture without reading it: how far its lines are turned, how high its letters are, which lines nobody read.

All of it looks at a small copy of the page, so it costs some hundredths of a second.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter
from scipy import ndimage

from primer_core.recognised import Word

Mask = NDArray[np.bool_]

LONG_SIDE = 1_200
"""Pixels of the small copy's longer side: about 110 dpi for a page of A4, where a small x-height still is 5 pixels."""

CONTRAST = 20
"""How much darker than its surroundings (grey levels) ink is: faint copies have 40, noise of a scanner 10."""

SURROUNDINGS = 12
"""Radius in pixels of the surroundings that ink is compared with; a shadow over half of the page is wider."""

GRAINY_FROM = 5
"""Grey levels by which half of the pixels or more differ from the middle one of their neighbours on a grainy page. Clean paper has 0."""

MAX_SKEW = 15.0
"""Degrees. Beyond it a page is turned, not skewed."""

LEAST_SKEW = 0.25
"""Degrees below which turning back costs more sharpness than it brings."""

SKEW_GAIN = 1.1
"""How much crisper the lines must get for an angle to be believed."""

LEAST_INK = 300
"""Ink pixels below which a page has no direction."""

MAX_POINTS = 20_000
"""Ink pixels that an angle is judged by: more cost time and change no angle by a tenth of a degree."""

SIDEWAYS_FROM = 2.0
"""How many times crisper than across the lines must be from top to bottom."""

ON_HEAD_FROM = 0.53
"""The share of the steps from row to row (cubed, so that lines' edges count and noise does not) that lies at the lines' heads: 0.25 to 0.52
on upright pages of print, 0.54 to 0.61 on those upside down; a page of few words may have any."""

BANDS = 6
"""Bands that a page is looked at in, from top to bottom, for gaps between columns: a table may fill a sixth of it."""

GAP = 28
"""Pixels at 300 dpi, 2 mm: no space between words is so wide, unless the line is stretched, and then the next one is not."""

SMEAR = 40
"""Pixels at 300 dpi by which letters are smeared sideways to make lines of them."""

TALLEST_LINE = 165
"""Pixels at 300 dpi, 14 mm, beyond which what is smeared together is a picture or a frame."""

LEAST_INK_A_ROW = 2
"""Ink pixels in a row or column of the small copy that are more than a speck."""

PAPER_AROUND = 8
"""Pixels of the small copy that are left around the ink: Tesseract misreads letters at a picture's very edge."""

_ANGLES = np.arange(-MAX_SKEW, MAX_SKEW + 0.5, 0.5)


@dataclass(frozen=True, slots=True)
class Ink:
    """The ink of a page's small copy, and how many pixels of the page one of its pixels stands for (a side)."""

    mask: Mask
    scale: float


def find_ink(image: Image.Image) -> Ink:
    """The ink of a grey page picture, whatever its shading."""
    scale = max(1.0, max(image.size) / LONG_SIDE)
    small = image if scale == 1.0 else image.resize((round(image.width / scale), round(image.height / scale)), Image.Resampling.BOX)
    around = np.asarray(small.filter(ImageFilter.BoxBlur(SURROUNDINGS)), dtype=np.int16)
    return Ink(np.asarray(small, dtype=np.int16) < around - CONTRAST, scale)


def is_grainy(image: Image.Image) -> bool:
    """Whether a grey page picture is grainy all over, as copies of copies and photographs by night are. Looks at its middle only."""
    width, height = image.size
    middle = image.crop((2 * width // 5, 2 * height // 5, 3 * width // 5, 3 * height // 5))
    smooth = np.asarray(middle.filter(ImageFilter.MedianFilter(3)), dtype=np.int16)
    return bool(np.median(np.abs(np.asarray(middle, dtype=np.int16) - smooth)) >= GRAINY_FROM)


def skew_of(ink: Ink) -> float:
    """Degrees by which the page must be turned counter-clockwise for its lines to be level; 0 where that would change little.

    The right angle is the one at which rows of ink and rows of paper differ most (the projection profile, Postl 1986).
    """
    x, y = _points(ink)
    if len(y) < LEAST_INK:
        return 0.0
    coarse = max(_ANGLES, key=lambda degrees: _crispness(x, y, degrees))
    best = max(np.arange(coarse - 0.5, coarse + 0.55, 0.1), key=lambda degrees: _crispness(x, y, degrees))
    if abs(best) < LEAST_SKEW or _crispness(x, y, best) < SKEW_GAIN * _crispness(x, y, 0.0):
        return 0.0
    return float(best)


def seems_turned(ink: Ink) -> bool:
    """Whether the page seems to lie on its side or on its head. A hint that costs nothing, for asking Tesseract, which costs a second."""
    x, y = _points(ink)
    if len(y) < LEAST_INK:
        return False
    height, width = ink.mask.shape
    across = max(_crispness(x, y, degrees) for degrees in _ANGLES) / width
    down = max(_crispness(y, x, degrees) for degrees in _ANGLES) / height
    if down > SIDEWAYS_FROM * across:
        return True
    # Lines end more sharply at their feet than at their heads, since letters have more ascenders and capitals than descenders.
    steps = np.diff(_profile(x, y, skew_of(ink)))
    heads, feet = (np.power(np.clip(signed, 0, None), 3).sum() for signed in (steps, -steps))
    return bool(heads > ON_HEAD_FROM * (heads + feet))


def ink_box(ink: Ink) -> tuple[int, int, int, int] | None:
    """Left, top, right and bottom, in pixels of the page, of all ink but specks, with some paper around; None where there is none."""
    rows, columns = (np.flatnonzero(ink.mask.sum(axis=axis) >= LEAST_INK_A_ROW) for axis in (1, 0))
    if not len(rows) or not len(columns):
        return None
    left, right = columns[0] - PAPER_AROUND, columns[-1] + 1 + PAPER_AROUND
    top, bottom = rows[0] - PAPER_AROUND, rows[-1] + 1 + PAPER_AROUND
    return (int(max(0, left) * ink.scale), int(max(0, top) * ink.scale), int(right * ink.scale), int(bottom * ink.scale))


def is_one_column(ink: Ink) -> bool:
    """Whether the upright page is lines of one column and nothing else: no picture, and in no band of it a white gap from top to bottom
    with ink on both sides, as columns, tables and short lists leave."""
    rows = np.flatnonzero(ink.mask.sum(axis=1) >= LEAST_INK_A_ROW)
    if not len(rows):
        return False
    labels, _ = ndimage.label(ndimage.maximum_filter1d(ink.mask, size=max(3, round(SMEAR / ink.scale)), axis=1))
    if any((found[0].stop - found[0].start) * ink.scale > TALLEST_LINE for found in ndimage.find_objects(labels)):
        return False
    for band in np.array_split(ink.mask[rows[0] : rows[-1] + 1], BANDS):
        columns = np.flatnonzero(band.any(axis=0))
        if len(columns) > 1 and np.diff(columns).max() * ink.scale >= GAP:
            return False
    return True


def _points(ink: Ink) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Columns and rows of the ink pixels, evenly thinned out."""
    y, x = np.nonzero(ink.mask)
    step = 1 + len(y) // MAX_POINTS
    return x[::step], y[::step]


def _crispness(x: NDArray[np.int64], y: NDArray[np.int64], degrees: float) -> float:
    return float(np.square(np.diff(_profile(x, y, degrees))).sum())


def _profile(x: NDArray[np.int64], y: NDArray[np.int64], degrees: float) -> NDArray[np.float64]:
    """Ink a row, if the page were turned by the angle."""
    rows = y - x * np.tan(np.radians(degrees))
    return np.bincount((rows - rows.min()).astype(np.int64)).astype(np.float64)


def letter_height(image: Image.Image) -> float | None:
    """Median height in pixels of what look like letters; None where there are too few to tell."""
    ink = find_ink(image)
    heights = [height for height, width in _sizes(ink.mask) if 4 <= height <= 0.2 * ink.mask.shape[0] and 0.15 <= width / height <= 2.5]
    return float(np.median(heights)) * ink.scale if len(heights) >= 20 else None


def _sizes(mask: Mask) -> Iterable[tuple[int, int]]:
    labels, _ = ndimage.label(mask, structure=np.ones((3, 3), dtype=int))
    for rows, columns in ndimage.find_objects(labels):
        yield rows.stop - rows.start, columns.stop - columns.start


def missed_area(ink: Ink, words: Iterable[Word]) -> float:
    """The area of what looks like lines of text and lies outside all words' boxes, in pixels of the page.

    A line is a strip of ink, its letters smeared into one another, that is as high as the words are, or as print commonly is where
    there are none, much longer than high, and neither solid nor thin. Pictures, rules and frames are not.
    """
    boxes = [(word.left / ink.scale, word.top / ink.scale, word.right / ink.scale, word.bottom / ink.scale) for word in words]
    heights = sorted(bottom - top for _, top, _, bottom in boxes)
    usual = heights[len(heights) // 2] if len(heights) >= 10 else None
    least, most = (0.5 * usual, 2.0 * usual) if usual else (5.0, 40.0)
    read = np.zeros_like(ink.mask)
    for left, top, right, bottom in boxes:
        read[max(0, int(top) - 1) : int(bottom) + 2, max(0, int(left) - 1) : int(right) + 2] = True
    smeared = ndimage.maximum_filter1d(ink.mask, size=int(max(5.0, least * 2)) | 1, axis=1)
    labels, _ = ndimage.label(smeared)
    missed = 0.0
    for rows, columns in ndimage.find_objects(labels):
        height, width = rows.stop - rows.start, columns.stop - columns.start
        if not (least <= height <= most and width >= 4 * height):
            continue
        strip = ink.mask[rows, columns]
        if not 0.1 <= strip.mean() <= 0.6:
            continue
        unread = 1.0 - read[rows, columns].mean()
        if unread > 0.6:
            missed += unread * height * width
    return float(missed * ink.scale**2)
