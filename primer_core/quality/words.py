"""What counts as a word when two readings of one document are compared."""

import re
import unicodedata

_MARKUP = re.compile(r"<!--.*?-->|^\s*\|?(?:\s*:?-+:?\s*\|)+\s*:?-*:?\s*$|^\s*#{1,6}\s|^\s*(?:[-*+]|\d+\.)\s|[|*_`\\]", re.S | re.M)
_WORD = re.compile(r"\w+", re.U)


def plain_text(markdown: str) -> str:
    """Text without Markdown's marks, comments and table rules."""
    return _MARKUP.sub(" ", markdown)


def word_list(text: str) -> list[str]:
    """The words of a text in order: runs of letters and digits, folded (NFKC, case); marks do not count."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
