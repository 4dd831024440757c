"""Page kinds: which pages of a file go to OCR, decided page by page from what the text layer holds. Pure: the caller looks at the page."""

from enum import StrEnum

from primer_core.garbled import is_garbled

LEAST_CHARACTERS = 50
"""A page with a picture and fewer characters than this is a scan: stamps, page numbers and titles are shorter, a paragraph is longer."""


class PageKind(StrEnum):
    """What a page is to a reader of its text layer."""

    TEXT = "text"
    SCAN = "scan"
    GARBLED = "garbled"
    BLANK = "blank"

    @property
    def needs_ocr(self) -> bool:
        """Whether the page must be read from its picture."""
        return self in (PageKind.SCAN, PageKind.GARBLED)


def page_kind(text: str, has_picture: bool) -> PageKind:
    """What a page is. `text` is its text layer, `has_picture` whether a bitmap stands on it."""
    characters = sum(map(len, text.split()))
    if is_garbled(text):
        return PageKind.GARBLED
    if has_picture and characters < LEAST_CHARACTERS:
        return PageKind.SCAN
    return PageKind.TEXT if characters else PageKind.BLANK
