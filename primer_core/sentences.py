"""Sentences and white space: where prose may be cut, and how it is folded. Pure text rules, no model and no format in sight."""

import re
from itertools import pairwise

_CLOSERS = "\"'”’»)\\]"
_STOP = re.compile(rf"(?:[.!?…]+[{_CLOSERS}]*(?=\s)|[。！？]+[」』）”]*)")
_SPACES = re.compile(r"[^\S\n]+")
_BLANK_LINES = re.compile(r"\s*\n\s*")
_WHITE = re.compile(r"\s*")
_POSSESSIVE = re.compile(r"['’]s\b")
_STOPS = ",.;:!?’"
_LAST_WORD = re.compile(r"[\w.]*$")
_ABBREVIATIONS = frozenset({
    "mr", "mrs", "ms", "dr", "prof", "st", "no", "nos", "vs", "cf", "ca", "approx", "fig", "figs", "eq", "sec", "vol", "ed", "eds", "al",
    "art", "p", "pp", "e.g", "i.e", "etc", "inc", "ltd", "co", "corp", "dept",
    "nr", "abs", "bzw", "z.b", "d.h", "u.a", "usw", "vgl", "ggf", "inkl", "evtl",
    "mme", "m", "p.ej", "sr", "sra",
})  # fmt: skip
"""Words whose full stop ends no sentence unless a new line follows (English, German, French, Spanish). "etc." before a capital
is ambiguous; it is read as no end, since a cut too few costs nothing."""


def fold_space(text: str) -> str:
    """White space folded: runs of blanks to one, blank lines gone, ends stripped. Line ends stay, so rows and list items stay apart."""
    return _BLANK_LINES.sub("\n", _SPACES.sub(" ", text)).strip()


def sentence_starts(text: str) -> list[int]:
    """Offsets in `text` where a sentence or a line begins, in order, without 0 and without the end.

    White space belongs to the sentence before it, so slices between the offsets join to exactly `text`.
    A full stop after an abbreviation or a single capital, and one before a lower-case letter, end no sentence.
    """
    starts: set[int] = set()
    for match in _STOP.finditer(text):
        after = _end_of_white(text, match.end())
        if after < len(text) and ("\n" in text[match.end() : after] or _ends_sentence(text, match.start(), text[match.start()], after)):
            starts.add(after)
    position = text.find("\n")
    while position != -1:
        after = _end_of_white(text, position)
        if after < len(text) and text[:position].strip():
            starts.add(after)
        position = text.find("\n", max(after, position + 1))
    return sorted(starts)


def split_sentences(text: str) -> list[str]:
    """The sentences and lines of `text`, stripped, empty ones left out."""
    edges = [0, *sentence_starts(text), len(text)]
    pieces = (text[first:last].strip() for first, last in pairwise(edges))
    return [piece for piece in pieces if piece]


def joins_tightly(before: str, after: str) -> bool:
    """Whether no space stands between two inline fragments whose own white space is lost.

    Docling strips the fragments of a paragraph ("see", "the page", ". Then"). Closing punctuation that ends there or is followed
    by white space binds to the left (so ".bashrc" and ":name:" do not), opening brackets to the right.
    """
    if not before or not after:
        return True
    if before[-1] in "([{“„«‹¿¡" or after[0] in ")]}”»›…%" or _POSSESSIVE.match(after):
        return True
    tail = after.lstrip(_STOPS)
    return len(tail) < len(after) and not tail[:1].isalnum()


def _end_of_white(text: str, position: int) -> int:
    match = _WHITE.match(text, position)
    return match.end() if match else position


def _ends_sentence(text: str, stop: int, mark: str, after: int) -> bool:
    if mark in "。！？":
        return True
    if text[after].islower():
        return False
    if mark != ".":
        return True
    found = _LAST_WORD.search(text, max(0, stop - 12), stop)
    word = found.group() if found else ""
    if len(word) == 1 and word.isupper():
        return False
    return word.lower() not in _ABBREVIATIONS
