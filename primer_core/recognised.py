"""Recognised words: what an OCR engine read on one page picture, how sure it is, and which words stand together. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from statistics import median

SURE_FROM = 60.0
"""A word is sure from this confidence on: of Tesseract's words on the pages with known text, 99 % above it are right and half below it."""

DESCENT = 0.15
"""How far a line's letters reach below most of its words' lower edges, in line heights: half of the words have a descender."""

DEFAULT_BAR = 0.65
"""The confidence of a page below which a person is asked. Of some hundred real scans, those that no one could read have 0.2 at most,
those with 10 to 17 % of their characters wrong have 0.57 to 0.60, and the worst with less has 0.67."""

WIDE_GAP = 2.0
"""A gap of more than so many line heights inside a line is a column's edge, not a space between words."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word: its text, the engine's confidence 0 to 100, its box in pixels from the top left, and the engine's line number."""

    text: str
    confidence: float
    left: int
    top: int
    width: int
    height: int
    line: tuple[int, int, int]

    @property
    def area(self) -> int:
        """Pixels of its box."""
        return self.width * self.height

    @property
    def right(self) -> int:
        """The first pixel column after it."""
        return self.left + self.width

    @property
    def bottom(self) -> int:
        """The first pixel row below it."""
        return self.top + self.height


def sure_area(words: Iterable[Word]) -> int:
    """Pixels in boxes of sure words."""
    return sum(word.area for word in words if word.confidence >= SURE_FROM)


def page_confidence(words: Sequence[Word], missed_area: float) -> float:
    """The share of the page's text area that lies in sure words, 0 to 1. `missed_area` is what looks like text and was read as no word,
    in pixels. A page without text area gives 1: there is nothing to be unsure of."""
    everything = sum(word.area for word in words) + missed_area
    return sure_area(words) / everything if everything else 1.0


def group_lines(words: Iterable[Word]) -> list[tuple[Word, ...]]:
    """The words by line, in the engine's order. A line that runs across a column's edge is as many lines as columns."""
    lines: list[tuple[Word, ...]] = []
    for _, group in groupby(words, key=lambda word: word.line):
        whole = list(group)
        height = median(word.height for word in whole)
        piece = [whole[0]]
        for before, word in pairwise(whole):
            if word.left - before.right > WIDE_GAP * height:
                lines.append(tuple(piece))
                piece = []
            piece.append(word)
        lines.append(tuple(piece))
    return lines


def even_out(words: Sequence[Word]) -> list[Word]:
    """The words, those of one line equally high and low, and lines of one paragraph equally high.

    An engine's box is as high as the word's own letters, so that "one" looks like smaller print than "height", and a layout made of such
    boxes sees many sizes. A line stands on the middle of its words' lower edges; its height is the middle one of its paragraph's lines.
    """
    heights: dict[tuple[int, int], list[int]] = {}
    lines: dict[tuple[int, int, int], list[Word]] = {}
    for word in words:
        lines.setdefault(word.line, []).append(word)
    for line, members in lines.items():
        heights.setdefault(line[:2], []).append(max(word.bottom for word in members) - min(word.top for word in members))
    evened = []
    for word in words:
        members = lines[word.line]
        height = round(median(heights[word.line[:2]]))
        bottom = round(median(member.bottom for member in members) + DESCENT * height)
        evened.append(replace(word, top=max(0, bottom - height), height=height))
    return evened


def as_text(words: Iterable[Word]) -> str:
    """What was read, a line of text a line."""
    return "\n".join(" ".join(word.text for word in group) for _, group in groupby(words, key=lambda word: word.line))
