"""A page is read whichever way up it lies, and what nobody could read is known as such. With a real Tesseract."""

from itertools import pairwise
from typing import Any

import pytest
from PIL import Image, ImageFilter

from primer_core.recognised import DEFAULT_BAR, as_text
from primer_resources.parser.ocr import page_reader
from primer_resources.parser.ocr.page_reader import read_page
from primer_resources.parser.ocr.tesseract import ReadingTimedOut, Segmentation, read_words


def lines_read(image: Image.Image) -> list[str]:
    return as_text(read_page(image, ("eng",)).words).splitlines()


@pytest.mark.parametrize("turned", [0, 90, 180, 270])
def test_a_page_is_read_whichever_way_up_it_lies(draw: Any, turned: int) -> None:
    reading = read_page(draw.text().rotate(turned, expand=True), ("eng",))
    assert as_text(reading.words).splitlines() == list(draw.lines)
    assert reading.turned == turned
    assert reading.confidence > 0.9
    first, last = reading.words[0], reading.words[-1]
    assert first.top < last.top


@pytest.mark.parametrize("skew", [-6.0, 2.4])
def test_a_skewed_page_is_straightened(draw: Any, skew: float) -> None:
    reading = read_page(draw.text().rotate(skew, Image.Resampling.BICUBIC, fillcolor=255), ("eng",))
    assert as_text(reading.words).splitlines() == list(draw.lines)
    tops = [word.top for word in reading.words if word.line == reading.words[0].line]
    assert max(tops) - min(tops) < 20


def test_a_blurred_and_faint_page_is_read(draw: Any) -> None:
    page = draw.text().filter(ImageFilter.GaussianBlur(2.5)).point(lambda level: 130 + level * 110 // 255)
    assert lines_read(page) == list(draw.lines)


def test_a_grainy_page_is_read(draw: Any) -> None:
    assert lines_read(Image.blend(draw.text(), Image.effect_noise(draw.text().size, 60), 0.5)) == list(draw.lines)


def test_columns_are_read_one_after_the_other(draw: Any) -> None:
    text = " ".join(lines_read(draw.columns()))
    assert text.index("Nothing is left after") < text.index("Cheese ripens in caves")


def test_a_table_is_read_row_by_row(draw: Any) -> None:
    text = " ".join(lines_read(draw.table()))
    places = [text.index(word) for word in ("Ashford", "914220", "Bexley", "120451", "Derby", "399817")]
    assert all(before < after for before, after in pairwise(places))


def test_one_column_is_read_as_one_block_and_columns_are_not(draw: Any) -> None:
    assert read_page(draw.text(), ("eng",)).segmentation is Segmentation.ONE_BLOCK
    assert read_page(draw.columns(), ("eng",)).segmentation is Segmentation.AUTOMATIC


def test_lines_that_one_segmentation_misses_are_found_by_the_other(draw: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def miss_half(image: Image.Image, languages: tuple[str, ...], segmentation: Segmentation) -> Any:
        words = read_words(image, languages, segmentation)
        return words if segmentation is Segmentation.AUTOMATIC else words[: len(words) // 2]

    monkeypatch.setattr(page_reader, "read_words", miss_half)
    assert lines_read(draw.text()) == list(draw.lines)


def test_an_empty_page_has_no_text_and_nothing_to_review() -> None:
    reading = read_page(Image.new("L", (1_000, 1_000), 250), ("eng",))
    assert reading.words == []
    assert reading.confidence == 1.0


def test_a_page_that_nobody_could_read_is_below_the_bar(draw: Any) -> None:
    assert read_page(draw.unreadable(), ("eng",)).confidence < DEFAULT_BAR / 2


def test_a_page_that_takes_too_long_is_for_a_person(draw: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any) -> Any:
        raise ReadingTimedOut("Tesseract process timeout")

    monkeypatch.setattr(page_reader, "read_words", never)
    reading = read_page(draw.text(), ("eng",))
    assert (reading.words, reading.confidence) == ([], 0.0)
