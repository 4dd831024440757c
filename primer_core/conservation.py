"""Text conservation: whether a document's words are in what parsing gave. Pure: multisets of words, told apart by nothing but the words.

A parser that loses a text box says nothing of it; a count of the source's words by an independent reader does. What is left out on
purpose (a script, a running header) is a named loss and no fault.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

FLAGGED_BELOW = 0.98
"""Least share of the words that must be kept, or stand in a named loss, for a document not to be flagged."""

MISSING_SHOWN = 20
"""Words that are named as examples of what is missing."""

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Scripts written without spaces, where a letter counts as a word: Thai to Lao, Myanmar, Khmer, kana, Han."""

_HANGUL = "\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3"
_SEMITIC = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc"
_WORD = re.compile(
    rf"[{_UNSPACED}]|[{_HANGUL}]+|[{_SEMITIC}]+|[^\W\D{_SEMITIC}]+|[^\W\d_{_UNSPACED}{_HANGUL}{_SEMITIC}]+",
)
_ASCII_WORD = re.compile(r"[a-z]+|[0-9]+")
"""Digits part from letters, and so do scripts: whether a space stands between "H", "2" and "O" is how a page is set, not what it says."""

_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]+")


@dataclass(frozen=True, slots=True)
class Conservation:
    """What became of a source's words.

    `share` (0 to 1) of its `words` are kept or in a named loss; `missing` are examples of the others, the most frequent first. `losses`
    names what was left out on purpose, with the number of words in each.
    """

    share: float
    words: int
    missing: tuple[str, ...] = ()
    losses: tuple[tuple[str, int], ...] = ()

    @property
    def is_flagged(self) -> bool:
        """Whether too many words are missing."""
        return self.share < FLAGGED_BELOW


def count_words(text: str) -> Counter[str]:
    """The words of a text with how often each stands there: runs of letters or of digits after NFKC and case folding."""
    return Counter(_words(text))


def number_of_words(text: str) -> int:
    """How many words a text has."""
    return len(_words(text))


def _words(text: str) -> list[str]:
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    return _WORD.findall(unicodedata.normalize("NFKC", _INVISIBLE.sub("", text)).casefold())


def weigh(source: Counter[str], kept: Counter[str], set_aside: Mapping[str, Counter[str]], losses: Mapping[str, int]) -> Conservation:
    """Weigh what was kept against the source.

    `source` are the words that an independent reader finds, those in `losses` (name → words) not among them. `set_aside` are words that
    the parser itself put apart under a name: they account for missing words, in their order, and what they account for becomes a loss.
    """
    words = source.total()
    missing = source - kept
    named = Counter({name: number for name, number in losses.items() if number})
    for name, apart in set_aside.items():
        accounted = missing & apart
        if accounted:
            named[name] += accounted.total()
            missing -= accounted
    share = 1.0 if words == 0 else 1.0 - missing.total() / words
    shown = tuple(word for word, _ in sorted(missing.items(), key=lambda pair: (-pair[1], pair[0]))[:MISSING_SHOWN])
    return Conservation(share, words, shown, tuple(sorted(named.items())))
