"""Which pages go to OCR: pictures without text and broken text layers, and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primer_core.page_kinds import LEAST_CHARACTERS, PageKind, page_kind


@pytest.mark.parametrize(
    ("text", "has_picture", "kind"),
    [
        ("", False, PageKind.BLANK),
        (" \n", False, PageKind.BLANK),
        ("", True, PageKind.SCAN),
        ("Page 3 of 9", True, PageKind.SCAN),
        ("Page 3 of 9", False, PageKind.TEXT),
        ("words " * 20, True, PageKind.TEXT),
        ("\ufffd" * 60, True, PageKind.GARBLED),
        ("\ufffd" * 60, False, PageKind.GARBLED),
    ],
)
def test_each_kind(text: str, has_picture: bool, kind: PageKind) -> None:
    assert page_kind(text, has_picture) is kind
    assert kind.needs_ocr is (kind in (PageKind.SCAN, PageKind.GARBLED))


@given(st.integers(0, 200), st.integers(0, 5))
def test_characters_count_and_white_space_does_not(letters: int, spaces: int) -> None:
    text = (" " * spaces).join("e" * letters)
    assert (page_kind(text, has_picture=True) is PageKind.SCAN) == (letters < LEAST_CHARACTERS)
