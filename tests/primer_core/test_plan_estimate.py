"""Estimates rest on what was measured, and say where they do not."""

from primer_core.plan_estimate import NEW_SHARE, OCR_CORE_SECONDS_A_PAGE, Measured, ToIndex, estimate

NOTHING = Measured(0, {}, None)


def content(mime: str = "text/plain", size: int = 1000, is_edit: bool = False, ocr_pages: int = 0, has_chunks: bool = False) -> ToIndex:
    return ToIndex(mime, size, is_edit, ocr_pages, has_chunks)


def test_what_was_measured_wins_over_the_defaults() -> None:
    assert estimate([content()], NOTHING).tokens_to_embed == 250
    assert estimate([content()], Measured(9, {"text/plain": 0.5}, None)).tokens_to_embed == 500
    assert "defaults for text/plain" in estimate([content()], NOTHING).basis[0]
    assert "default" not in estimate([content()], Measured(9, {"text/plain": 0.5}, None)).basis[0]


def test_an_edit_brings_a_share_of_its_tokens() -> None:
    assert estimate([content(is_edit=True)], NOTHING).tokens_to_embed == round(250 * NEW_SHARE)
    assert estimate([content(is_edit=True)], Measured(9, {}, 0.5)).tokens_to_embed == 125


def test_what_was_chunked_before_is_neither_parsed_nor_embedded_again() -> None:
    cost = estimate([content(has_chunks=True, ocr_pages=7)], NOTHING)
    assert (cost.tokens_to_embed, cost.ocr_pages) == (0, 0)


def test_pages_of_ocr_cost_by_the_page() -> None:
    one, ten = (estimate([content("application/pdf", ocr_pages=pages)], NOTHING) for pages in (1, 10))
    assert ten.ocr_pages == 10
    assert round(ten.core_seconds - one.core_seconds, 1) == 9 * OCR_CORE_SECONDS_A_PAGE
