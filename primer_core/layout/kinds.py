"""What kind of thing each block of a whole document is: judged at the end, when it is known which style most of the text has."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from primer_core.layout.geometry import Box
from primer_core.layout.marks import (
    is_caption,
    is_contents_line,
    is_footnote_mark,
    is_list_item,
    is_sure_caption,
    section_depth,
)


class BlockKind(StrEnum):
    """What a block is."""

    TEXT = "text"
    HEADING = "heading"
    LIST_ITEM = "list_item"
    CAPTION = "caption"
    CODE = "code"
    FOOTNOTE = "footnote"


@dataclass(frozen=True, slots=True)
class BlockFacts:
    """What is looked at in one block. `beside_graphic` is whether a table or picture is right above or below it; `in_figure` whether it
    stands inside a drawing."""

    page: int
    text: str
    box: Box
    size: float
    bold: bool
    italic: bool
    lines: int
    mono: bool = False
    beside_graphic: bool = False
    in_figure: bool = False


HEADING_WORDS = 20
HEADING_LINES = 3
HEADING_LETTERS = 160
"""More is a paragraph, however it is set."""

LARGER = 1.12
"""A heading in plain type is this much larger than the body."""

COMMON = 0.3
"""A style in which more of the document's letters are set is no heading style."""

RUN = 4
"""So many blocks in a row that look like headings of one style are something else: a form's labels, an address, a chart's words."""

CAPTION_LINES = 8

LEADS_WITHIN = 3.0
"""Farthest that what a heading heads is below it, in its own sizes."""

SMALLER = 0.93
"""A footnote is set this much smaller than the body."""

FOOT = 0.55
"""Footnotes stand below this share of what the page's blocks span."""

TYPEWRITTEN = 0.5
"""A document with more of its letters in a typewriter font is typewritten: none of it is code."""

_SENTENCE_ENDS = (".", ",", ";", "。", "،")
Style = tuple[float, bool, bool]


def body_size(blocks: Sequence[BlockFacts]) -> float:
    """The size of most letters; 0 for no blocks."""
    sizes: Counter[float] = Counter()
    for block in blocks:
        sizes[block.size] += len(block.text)
    return sizes.most_common(1)[0][0] if sizes else 0.0


def judge_kinds(blocks: Sequence[BlockFacts]) -> list[BlockKind]:
    """The kind of each block of a document, in the order given, which should be reading order."""
    body = body_size(blocks)
    letters: Counter[Style] = Counter()
    for block in blocks:
        letters[_style(block)] += len(block.text)
    total = sum(letters.values()) or 1
    body_bold = sum(len(block.text) for block in blocks if block.bold) > 0.5 * total
    typewritten = sum(len(block.text) for block in blocks if block.mono) > TYPEWRITTEN * total
    by_page: defaultdict[int, list[BlockFacts]] = defaultdict(list)
    for block in blocks:
        by_page[block.page].append(block)
    found = []
    for block in blocks:
        rare = letters[_style(block)] <= COMMON * total or block.size >= LARGER * body
        if block.mono and not typewritten and not block.in_figure:
            found.append(BlockKind.CODE)
        else:
            found.append(_kind(block, by_page[block.page], body, body_bold, rare))
    return _without_runs(blocks, found, body)


def _style(block: BlockFacts) -> Style:
    return round(block.size, 1), block.bold, block.italic


def _kind(block: BlockFacts, page: Sequence[BlockFacts], body: float, body_bold: bool, rare: bool) -> BlockKind:
    text = block.text
    if block.lines <= CAPTION_LINES and is_caption(text) and (block.beside_graphic or is_sure_caption(text)):
        return BlockKind.CAPTION
    if not block.in_figure and _is_footnote(block, page, body):
        return BlockKind.FOOTNOTE
    if rare and not block.in_figure and _looks_like_heading(block, page, body, body_bold):
        return BlockKind.HEADING
    return BlockKind.LIST_ITEM if is_list_item(text) else BlockKind.TEXT


def _looks_like_heading(block: BlockFacts, page: Sequence[BlockFacts], body: float, body_bold: bool) -> bool:
    text = block.text.strip()
    words = text.split()
    if block.lines > HEADING_LINES or len(words) > HEADING_WORDS or len(text) > HEADING_LETTERS or is_contents_line(text):
        return False
    if sum(char.isalpha() for char in text) < 2 or sum(char.isalpha() for char in text) < 0.4 * len(text.replace(" ", "")):
        return False
    first = next(char for char in text if char.isalpha() or char.isdigit() or not char.isspace())
    if first.islower() or (not first.isalnum() and first not in '§¿¡"“«('):
        return False
    larger = block.size >= LARGER * body
    if text.endswith(_SENTENCE_ENDS) and not (larger and len(words) <= 8) and not (section_depth(text) and block.bold and len(words) <= 8):
        return False
    if text.endswith(":") and not larger:
        return False
    if larger:
        return True
    if block.size < 0.93 * body:
        return False
    led = _led(block, page)
    if block.bold and not body_bold:
        return led is not None or block.beside_graphic
    if led is None or led.lines < 2 or led.italic or led.box.top - block.box.bottom > 1.2 * body:
        return False
    if block.italic and block.lines == 1 and len(words) <= 8:
        return True
    capitals = sum(char.isalpha() for char in text) >= 4 and text.upper() == text != text.lower()
    return capitals and block.lines == 1 and len(words) <= 10


def _is_footnote(block: BlockFacts, page: Sequence[BlockFacts], body: float) -> bool:
    """Small text with a mark before it, at the foot of its column: nothing but small text below."""
    if block.size > SMALLER * body or not is_footnote_mark(block.text):
        return False
    top, bottom = min(other.box.top for other in page), max(other.box.bottom for other in page)
    if block.box.top < top + FOOT * (bottom - top):
        return False
    below = [other for other in page if other.box.top >= block.box.bottom - 1 and other.box.shared_width(block.box) > 0]
    return all(other.size <= SMALLER * body for other in below)


def _led(block: BlockFacts, page: Sequence[BlockFacts]) -> BlockFacts | None:
    """What stands right below a block, begins at its left edge (or around its middle) and is longer than a label."""
    below = [
        other
        for other in page
        if other.box.middle - block.box.bottom >= 0
        and other.box.top - block.box.bottom <= LEADS_WITHIN * block.size
        and other.box.shared_width(block.box) > 0
        and other is not block
    ]
    led = min(below, key=lambda other: other.box.top, default=None)
    if led is None or led.in_figure:
        return None
    aligned = -1.0 * block.size <= led.box.left - block.box.left <= 4 * block.size or abs(led.box.centre - block.box.centre) <= block.size
    aligned = aligned or abs(led.box.right - block.box.right) <= block.size
    return led if aligned and (led.lines > 1 or len(led.text) >= 30 or is_list_item(led.text) or led.bold) else None


def _without_runs(blocks: Sequence[BlockFacts], found: list[BlockKind], body: float) -> list[BlockKind]:
    """The kinds, with runs of alike headings that nothing follows taken back, and a heading that ends the document too."""
    kept = list(found)
    start = 0
    while start < len(blocks):
        end = start
        while end < len(blocks) and found[end] is BlockKind.HEADING and _style(blocks[end]) == _style(blocks[start]):
            end += 1
        if end - start >= RUN and blocks[start].size < 1.5 * body:
            for number in range(start, end):
                kept[number] = BlockKind.LIST_ITEM if is_list_item(blocks[number].text) else BlockKind.TEXT
        start = max(end, start + 1)
    return kept
