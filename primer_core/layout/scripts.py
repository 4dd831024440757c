"""What script a text is in, as far as layout cares: whether it runs from the right, and whether it has no spaces between words."""

import unicodedata

RTL_CLASSES = frozenset({"R", "AL"})
"""Bidirectional classes of letters that run from the right (Unicode Standard Annex 9)."""

_UNSPACED = (
    (0x3040, 0x30FF),  # Hiragana, Katakana
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),  # Han
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0xFF66, 0xFF9D),  # half-width Katakana
    (0x20000, 0x3134F),
    (0x3001, 0x3002),  # ideographic comma and full stop
    (0xFF01, 0xFF0F),  # full-width punctuation
)


def runs_from_the_right(text: str) -> bool:
    """Whether more of its letters run from the right than from the left. Digits and marks do not count."""
    right = left = 0
    for char in text:
        if ord(char) < 0x590:
            left += char.isalpha()
        elif (kind := unicodedata.bidirectional(char)) in RTL_CLASSES:
            right += 1
        elif kind == "L":
            left += 1
    return right > left


def has_letter_from_the_right(text: str) -> bool:
    """Whether any letter runs from the right."""
    return any(ord(char) >= 0x590 and unicodedata.bidirectional(char) in RTL_CLASSES for char in text)


def written_width(text: str) -> int:
    """How many Latin letters take the room of a text: East Asian ones count twice."""
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def is_unspaced(char: str) -> bool:
    """Whether the character is of a script that is written without spaces between words."""
    code = ord(char)
    return code >= 0x3001 and any(first <= code <= last for first, last in _UNSPACED)
