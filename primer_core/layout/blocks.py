"""From lines to blocks: the lines of one paragraph, heading, list item or caption.

Each line looks for the line below it; a block is a chain of lines that follow one another without a reason to part.
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from primer_core.layout.geometry import Box, Line, Span, union
from primer_core.layout.lines import make_line
from primer_core.layout.marks import is_caption, is_contents_line, is_list_item, is_marker_only
from primer_core.layout.scripts import runs_from_the_right

CLOSE = 1.0
"""Widest gap between two lines of a paragraph, in font sizes."""

LOOSER = 1.45
"""A gap this much wider than the page's usual one, plus a fifth of a line, parts two paragraphs."""

OVER = 0.5
"""Least share of the narrower line that the other covers from above."""

SAME_SIZE = 0.12
"""Sizes that differ by more are different text."""

INDENT = (0.8, 6.0)
"""A first line that stands in by this many font sizes begins a paragraph."""

SHORT = 0.12
"""A line that ends this share of the block's width before its edge, with a full stop, ends a paragraph."""

MARKER_GAP = 4.0
"""Widest gap between a list marker and its text, in font sizes."""

CODE_CLOSE = 2.2
"""Widest gap between two lines of code, in font sizes: one blank line."""

_ENDS = (".", "!", "?", ":", "。", "؟")


@dataclass(frozen=True)
class Block:
    """Lines that belong together, from top to bottom."""

    lines: tuple[Line, ...]

    @cached_property
    def box(self) -> Box:
        """The box around its lines."""
        return union(line.box for line in self.lines)

    @cached_property
    def text(self) -> str:
        """Its lines, one a row."""
        return "\n".join(line.text for line in self.lines)

    @cached_property
    def size(self) -> float:
        """The size that most of its letters have."""
        sizes: Counter[float] = Counter()
        for line in self.lines:
            sizes[line.size] += len(line.text)
        return sizes.most_common(1)[0][0]

    @property
    def bold(self) -> bool:
        """Whether all of it is bold."""
        return all(line.bold for line in self.lines)

    @property
    def italic(self) -> bool:
        """Whether all of it is italic."""
        return all(line.italic for line in self.lines)

    @property
    def mono(self) -> bool:
        """Whether all of it is in a typewriter font."""
        return all(line.mono for line in self.lines)

    @property
    def order(self) -> int:
        """Its first place in the file's own order."""
        return min(line.order for line in self.lines)


def build_blocks(lines: Sequence[Line], barriers: Sequence[Box] = ()) -> list[Block]:
    """Blocks of all lines, in the file's own order. `barriers` are tables and pictures: no paragraph goes through one."""
    lines = join_markers(lines)
    below = _lines_below(lines, barriers)
    usual = _usual_gaps(lines, below)
    chains = [[number] for number in range(len(lines))]
    chain_of = list(range(len(lines)))
    for upper in sorted(below, key=lambda number: lines[number].box.top):
        lower = below[upper]
        chain = chains[chain_of[upper]]
        after = below.get(lower)
        if _parts([lines[number] for number in chain], lines[lower], None if after is None else lines[after], usual):
            continue
        chain.append(lower)
        chain_of[lower] = chain_of[upper]
    blocks = [Block(tuple(lines[number] for number in chain)) for number, chain in enumerate(chains) if chain_of[number] == number]
    return sorted(blocks, key=lambda block: block.order)


def join_markers(lines: Sequence[Line]) -> list[Line]:
    """The lines, with each list marker that stands alone joined to the text beside it."""
    kept: list[Line] = []
    taken: set[int] = set()
    for number, line in enumerate(lines):
        if not is_marker_only(line.text) or line.mono:
            continue
        beside = [
            (other.box.left - line.box.right, position)
            for position, other in enumerate(lines)
            if position not in taken
            and position != number
            and other.box.shared_height(line.box) >= OVER * min(other.box.height, line.box.height)
            and -1.0 <= other.box.left - line.box.right <= MARKER_GAP * max(line.size, other.size)
            and not is_marker_only(other.text)
        ]
        if beside:
            position = min(beside)[1]
            taken |= {number, position}
            kept.append(_marked(line, lines[position]))
    return kept + [line for number, line in enumerate(lines) if number not in taken]


def _marked(marker: Line, text: Line) -> Line:
    """A marker and its text as one line that looks as the text does."""
    spans: tuple[Span, ...] = (*marker.spans, *text.spans)
    joined = make_line(spans)
    words = text.text if text.text.startswith(marker.text + " ") else f"{marker.text} {text.text}"
    return Line(joined.spans, words, union((marker.box, text.box)), text.size, text.bold, text.italic, text.mono)


def _lines_below(lines: Sequence[Line], barriers: Sequence[Box]) -> dict[int, int]:
    """For each line the one line right below it, where each is the other's only neighbour on that side."""
    by_top = sorted(range(len(lines)), key=lambda number: lines[number].box.top)
    below: defaultdict[int, list[int]] = defaultdict(list)
    above: defaultdict[int, list[int]] = defaultdict(list)
    for place, upper in enumerate(by_top):
        first = lines[upper]
        reach = first.box.bottom + (CODE_CLOSE if first.mono else CLOSE) * first.size
        found: list[int] = []
        for lower in by_top[place + 1 :]:
            second = lines[lower]
            if second.box.top > reach:
                break
            if second.box.middle <= first.box.bottom - 0.2 * first.box.height and second.box.top < first.box.middle:
                continue  # beside it
            if not first.box.shared_width(second.box) or any(_hides(lines[between].box, second.box) for between in found):
                continue
            found.append(lower)
        for lower in found:
            below[upper].append(lower)
            above[lower].append(upper)
    pairs: dict[int, int] = {}
    for upper, lowers in below.items():
        if len(lowers) != 1 or len(above[lowers[0]]) != 1:
            continue
        over, under = lines[upper].box, lines[lowers[0]].box
        code = lines[upper].mono and lines[lowers[0]].mono
        if not code and over.shared_width(under) < OVER * min(over.width, under.width):
            continue
        gap = Box(max(over.left, under.left), over.bottom, min(over.right, under.right), under.top)
        if gap.height > 0 and any(_stands_between(barrier, gap, over, under) for barrier in barriers):
            continue
        pairs[upper] = lowers[0]
    return pairs


def _stands_between(barrier: Box, gap: Box, upper: Box, lower: Box) -> bool:
    """Whether a table or picture is in the gap, rather than under both lines."""
    if not barrier.shared_width(gap) or not barrier.shared_height(gap):
        return False
    return upper.share_inside(barrier) < OVER and lower.share_inside(barrier) < OVER


def _hides(between: Box, lower: Box) -> bool:
    return between.bottom <= lower.middle and between.shared_width(lower) > 0


def _usual_gaps(lines: Sequence[Line], below: dict[int, int]) -> dict[float, float]:
    """The usual gap below a line of each size."""
    gaps: defaultdict[float, list[float]] = defaultdict(list)
    for upper, lower in below.items():
        if abs(lines[upper].size - lines[lower].size) <= SAME_SIZE * lines[upper].size:
            gaps[lines[upper].size].append(lines[lower].box.top - lines[upper].box.bottom)
    return {size: median(sorted(found)[: max(1, (3 * len(found) + 3) // 4)]) for size, found in gaps.items()}


def _parts(block: Sequence[Line], lower: Line, after: Line | None, usual: dict[float, float]) -> bool:
    """Whether a new block begins at the lower line; `after` is the line below that."""
    upper = block[-1]
    size = max(upper.size, lower.size)
    if abs(upper.size - lower.size) > SAME_SIZE * size:
        return True
    gap = lower.box.top - upper.box.bottom
    if upper.mono and lower.mono:
        return False
    if gap > CLOSE * size or gap < -0.7 * size:
        return True
    inner = [second.box.top - first.box.bottom for first, second in itertools.pairwise(block)]
    wont = median(inner) if inner else usual.get(upper.size, gap)
    if gap > wont + (LOOSER - 1) * max(wont, 0.0) + 0.2 * size:
        return True
    if is_list_item(lower.text) or is_contents_line(upper.text) or is_contents_line(lower.text):
        return True
    if is_caption(lower.text) and not is_caption(upper.text) and lower.text[:1].isupper() and upper.text.endswith(_ENDS):
        return True
    if _style(upper) != _style(lower) and len({_style(line) for line in block}) == 1 and not _reads_on(upper, lower):
        return True
    return _begins_paragraph(block, lower, after)


def _reads_on(upper: Line, lower: Line) -> bool:
    """Whether a sentence goes on from one line to the next, whatever the type: some lines are all in italics or bold by chance."""
    if upper.mono != lower.mono:
        return False
    return (lower.text[:1].islower() and not upper.text.endswith(_ENDS)) or upper.text.endswith("-")


def _style(line: Line) -> tuple[bool, bool, bool]:
    return line.bold, line.italic, line.mono


def _begins_paragraph(block: Sequence[Line], lower: Line, after: Line | None) -> bool:
    """Whether indentation, or a line that ends early, says that a paragraph begins. Lines from the right are judged in a mirror."""
    upper = block[-1]
    mirrored = runs_from_the_right(upper.text + lower.text)

    def start(line: Line) -> float:
        return -line.box.right if mirrored else line.box.left

    def end(line: Line) -> float:
        return -line.box.left if mirrored else line.box.right

    size = lower.size
    if is_list_item(block[0].text):
        # What follows an item's first line hangs below its text; a line further out than its marker is no longer of it.
        if start(lower) < start(block[0]) - 0.5 * size:
            return True
        hangs = start(lower) > start(block[0]) + 0.5 * size
        ended = end(lower) - end(upper) > SHORT * (end(lower) - start(lower)) and upper.text.endswith(_ENDS)
        return ended and not hangs and not lower.text[:1].islower()
    stands_in = start(lower) - start(upper)
    if INDENT[0] * size <= stands_in <= INDENT[1] * size and len(block) > 1 and abs(start(upper) - start(block[-2])) < 0.5 * size:
        return after is None or start(after) - start(lower) <= -INDENT[0] * size or upper.text.endswith(_ENDS)
    if INDENT[0] * size <= stands_in <= INDENT[1] * size and upper.text.endswith(_ENDS):
        return True
    edge = max(end(line) for line in (*block, lower))
    width = edge - min(start(line) for line in (*block, lower))
    ended = edge - end(upper) > SHORT * width and upper.text.endswith(_ENDS)
    return ended and width > 10 * size and not lower.text[:1].islower()
