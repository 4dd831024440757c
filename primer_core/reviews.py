"""Pages that a machine could not read well enough: what a person is shown before they decide."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReviewPage:
    """One page, or region of a page, whose reading is below the bar.

    `page` counts from 1. `confidence` is the share of its text area that lies in words the reader is sure of, 0 to 1. `text` is what was
    read. `image` is the region as it looks, a PNG.
    """

    page: int
    confidence: float
    text: str
    image: bytes
