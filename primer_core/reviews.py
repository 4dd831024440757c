"""Pages that a machine could not read well enough: what a person is shown, what they decide, and what a decision makes of a parse."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from primer_core.ids import recipe_key


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


class ReviewState(StrEnum):
    """What a person said of a page. `open`: nothing yet."""

    OPEN = "open"
    ACCEPTED = "accepted"
    REJECTED = "rejected"


def page_label(pages: Iterable[int]) -> str:
    """Pages as people write them: "1-3,7"; "" for none. The same pages give the same label, so it can be a key."""
    ranges: list[list[int]] = []
    for page in sorted(set(pages)):
        if ranges and page == ranges[-1][1] + 1:
            ranges[-1][1] = page
        else:
            ranges.append([page, page])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def pages_of(label: str) -> frozenset[int]:
    """The pages of a label."""
    pages: set[int] = set()
    for part in label.split(",") if label else ():
        first, _, last = part.partition("-")
        pages.update(range(int(first), int(last or first) + 1))
    return frozenset(pages)


def output_version(parser_version: str, accepted_pages: str) -> str:
    """The version of a parse's output: the parser's own, and the pages that a person let through, since they shape it too.

    So what was parsed before a decision and after it never meet, and neither do the chunk sets made of them. A digest of the label,
    since a label of a long document would not fit a database key.
    """
    return f"{parser_version};accepted={recipe_key(accepted_pages)}" if accepted_pages else parser_version
