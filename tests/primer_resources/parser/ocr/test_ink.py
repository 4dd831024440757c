"""What is seen on a page without reading it."""

from typing import Any

import pytest
from PIL import Image

from primer_core.recognised import Word
from primer_resources.parser.ocr.ink import find_ink, ink_box, is_one_column, letter_height, missed_area, seems_turned, skew_of


@pytest.mark.parametrize("angle", [-12.0, -3.3, -0.6, 0.0, 0.4, 5.0])
def test_the_angle_of_the_lines_is_found(draw: Any, angle: float) -> None:
    turned = draw.text().rotate(angle, Image.Resampling.BILINEAR, fillcolor=255)
    assert skew_of(find_ink(turned)) == pytest.approx(-angle, abs=0.25)


def test_a_shadow_over_half_of_the_page_is_no_ink(draw: Any) -> None:
    page = draw.text()
    page.paste(page.crop((0, 0, 950, 1_200)).point(lambda level: level * 6 // 10), (0, 0))
    ink = find_ink(page).mask
    assert ink.mean() < 0.06
    assert skew_of(find_ink(page)) == 0.0


def test_a_page_on_its_side_seems_turned(draw: Any) -> None:
    page = draw.text()
    assert [seems_turned(find_ink(page.rotate(angle, expand=True))) for angle in (90, 270)] == [True, True]


def test_columns_and_tables_are_told_from_one_column(draw: Any) -> None:
    assert [is_one_column(find_ink(page)) for page in (draw.text(), draw.columns(), draw.table())] == [True, False, False]


def test_the_box_of_the_ink_holds_all_of_it_and_little_paper(draw: Any) -> None:
    box = ink_box(find_ink(draw.text()))
    assert box is not None
    left, top, right, bottom = box
    assert 160 < left < 200
    assert 170 < top < 215
    assert 1_300 < right < 1_700
    assert 700 < bottom < 850
    assert ink_box(find_ink(Image.new("L", (500, 500), 255))) is None


def test_text_outside_all_words_is_missed(draw: Any) -> None:
    page, line = draw.text(), (1, 1, 1)
    ink = find_ink(page)
    everything = Word("all", 90, 180, 180, 1_500, 800, line)
    upper_half = Word("half", 90, 180, 180, 1_500, 280, line)
    assert missed_area(ink, [everything]) == 0.0
    assert 0.3 < missed_area(ink, [upper_half]) / missed_area(ink, []) < 0.7


def test_letters_are_measured(draw: Any) -> None:
    small, large = letter_height(draw.text(size=24)), letter_height(draw.text(size=72))
    assert small is not None
    assert large is not None
    assert large == pytest.approx(3 * small, rel=0.25)
    assert letter_height(Image.new("L", (500, 500), 255)) is None
