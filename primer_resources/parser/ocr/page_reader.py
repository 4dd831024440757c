"""How one page picture is read: straightened, segmented as its layout asks for, and read again another way where text is left unread.

Each further try costs as much as the first, so none is made on a page that the first one read: that is nine pages of ten.
"""

from dataclasses import dataclass, replace

from PIL import Image, ImageFilter

from primer_core.recognised import Word, page_confidence, sure_area
from primer_resources.parser.ocr.ink import Ink, find_ink, ink_box, is_grainy, is_one_column, missed_area, seems_turned, skew_of
from primer_resources.parser.ocr.tesseract import ReadingTimedOut, Segmentation, read_words, turned_by

UPRIGHT_FROM = 0.5
"""Pages that are upside down are read with a confidence of 0.2 at most. Below this the page's orientation is asked for."""

MISSED_FROM = 0.1
"""Where a larger share of the page's text area was read as no word, the page is segmented the other way too: as one block it gives lines
that the automatic segmentation takes for a picture. On a page whose words are merely unsure it would give the same ones."""

GRAIN_BLUR = 2.0
"""Radius of the blur for grainy pages: without it each grain is a letter to Tesseract, which then takes minutes and reads nothing; with it
a page whose grain is a quarter as strong as its print has an error rate of 1 %."""

BETTER_BY = 1.05
"""How much more sure text another segmentation must bring: as one block a page of two columns is read across them."""

LEAST_TEXT_SHARE = 0.0015
"""Below this share of the page's area, text in which nothing is sure is a speck or a picture's detail, not words."""

_OTHER = {Segmentation.AUTOMATIC: Segmentation.ONE_BLOCK, Segmentation.ONE_BLOCK: Segmentation.AUTOMATIC}


@dataclass(frozen=True, slots=True)
class PageReading:
    """What was read: the words, the upright picture that their boxes refer to, the pixels of text that were read as no word, degrees
    clockwise (0, 90, 180, 270) by which the page was turned, and how it was segmented."""

    words: list[Word]
    image: Image.Image
    missed: float = 0.0
    turned: int = 0
    segmentation: Segmentation = Segmentation.AUTOMATIC
    timed_out: bool = False

    @property
    def sure(self) -> int:
        """Pixels of sure words."""
        return sure_area(self.words)

    @property
    def text_area(self) -> float:
        """Pixels of all words, read or not."""
        return sum(word.area for word in self.words) + self.missed

    @property
    def confidence(self) -> float:
        """The share of the text area that lies in sure words, 0 to 1."""
        return 0.0 if self.timed_out else page_confidence(self.words, self.missed)


def read_page(image: Image.Image, languages: tuple[str, ...]) -> PageReading:
    """Read a grey page picture of 300 dpi, whichever way up it is. A page that takes too long is read as nothing, with confidence 0."""
    if is_grainy(image):
        image = image.filter(ImageFilter.GaussianBlur(GRAIN_BLUR))
    try:
        reading = _read_upright(image, languages)
        if reading.missed > MISSED_FROM * reading.text_area:
            segmentation = _OTHER[reading.segmentation]
            reading = _better(reading, _read_straight(reading.image, find_ink(reading.image), languages, segmentation, reading.turned))
    except ReadingTimedOut:
        return PageReading([], image, timed_out=True)
    return _without_specks(reading)


def _read_upright(image: Image.Image, languages: tuple[str, ...]) -> PageReading:
    """Read the page as it lies unless it seems turned, and the other way where that gives no sense."""
    ink = find_ink(image)
    asked = seems_turned(ink)
    turned = turned_by(image) if asked else 0
    reading = _read_turned(image, ink, languages, turned)
    if reading.confidence >= UPRIGHT_FROM:
        return reading
    other = 0 if asked else turned_by(image)
    return reading if other == turned else _better(reading, _read_turned(image, ink, languages, other))


def _read_turned(image: Image.Image, ink: Ink, languages: tuple[str, ...], turned: int) -> PageReading:
    """Turn the page upright and its lines level, then read it."""
    if turned:
        image = image.rotate(-turned, expand=True)
        ink = find_ink(image)
    skew = skew_of(ink)
    if skew:
        image = image.rotate(skew, Image.Resampling.BILINEAR, fillcolor=_paper(image))
        ink = find_ink(image)
    segmentation = Segmentation.ONE_BLOCK if is_one_column(ink) else Segmentation.AUTOMATIC
    return _read_straight(image, ink, languages, segmentation, turned)


def _read_straight(image: Image.Image, ink: Ink, languages: tuple[str, ...], segmentation: Segmentation, turned: int) -> PageReading:
    """Read an upright page. Only where there is ink: a third of most pages is margin, which Tesseract looks at as long as at the rest."""
    box = ink_box(ink)
    if box is None:
        return PageReading([], image, turned=turned)
    left, top, right, bottom = box
    inked = image.crop((left, top, min(right, image.width), min(bottom, image.height)))
    words = [replace(word, left=word.left + left, top=word.top + top) for word in read_words(inked, languages, segmentation)]
    return PageReading(words, image, missed_area(ink, words), turned, segmentation)


def _better(first: PageReading, second: PageReading) -> PageReading:
    return second if second.sure > BETTER_BY * first.sure else first


def _without_specks(reading: PageReading) -> PageReading:
    """A page where nothing is sure and next to nothing is there has no text, and no one need look at it."""
    if reading.sure == 0 and reading.text_area < LEAST_TEXT_SHARE * reading.image.width * reading.image.height:
        return replace(reading, words=[], missed=0.0)
    return reading


def _paper(image: Image.Image) -> int:
    """The grey of the paper: what the corners that turning lays bare are filled with."""
    histogram = image.histogram()
    return max(range(128, 256), key=lambda level: histogram[level])
