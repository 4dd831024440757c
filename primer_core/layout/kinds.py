"""What kind of thing each block of a whole document is: judged at the end, when it is known which style most of the text has."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from primer_core.layout.geometry import Box
from primer_core.layout.marks import (
    is_caption,
    is_contents_line,
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
    found = []
    for number, block in enumerate(blocks):
        following = next((other for other in blocks[number + 1 : number + 2] if other.page == block.page), None)
        rare = letters[_style(block)] <= COMMON * total or block.size >= LARGER * body
        found.append(_kind(block, following, body, body_bold, rare))
    return _without_runs(blocks, found, body)


def _style(block: BlockFacts) -> Style:
    return round(block.size, 1), block.bold, block.italic


def _kind(block: BlockFacts, following: BlockFacts | None, body: float, body_bold: bool, rare: bool) -> BlockKind:
    text = block.text
    if block.lines <= CAPTION_LINES and is_caption(text) and (block.beside_graphic or is_sure_caption(text)):
        return BlockKind.CAPTION
    if rare and not block.in_figure and _looks_like_heading(block, following, body, body_bold):
        return BlockKind.HEADING
    return BlockKind.LIST_ITEM if is_list_item(text) else BlockKind.TEXT


def _looks_like_heading(block: BlockFacts, following: BlockFacts | None, body: float, body_bold: bool) -> bool:
    text = block.text.strip()
    words = text.split()
    if block.lines > HEADING_LINES or len(words) > HEADING_WORDS or len(text) > HEADING_LETTERS or is_contents_line(text):
        return False
    if sum(char.isalpha() for char in text) < 2 or sum(char.isalpha() for char in text) < 0.4 * len(text.replace(" ", "")):
        return False
    first = next(char for char in text if char.isalpha() or char.isdigit() or not char.isspace())
    if first.islower() or not first.isalnum() and first not in "§¿¡\"“«(":
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
    if block.bold and not body_bold:
        return True
    leads = following is not None and not following.italic and following.lines > 1 and following.box.top - block.box.bottom < 1.2 * body
    leads = leads and following is not None and following.box.shared_width(block.box) > 0.5 * block.box.width
    if block.italic and block.lines == 1 and len(words) <= 8 and leads:
        return True
    capitals = sum(char.isalpha() for char in text) >= 4 and text.upper() == text != text.lower()
    return capitals and block.lines == 1 and len(words) <= 10 and leads


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
