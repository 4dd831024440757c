"""What counts as a word when two readings of one document are compared."""

import html
import re
import unicodedata

_MARKUP = re.compile(r"<!--.*?-->|^\s*\|?(?:\s*:?-+:?\s*\|)+\s*:?-*:?\s*$|^\s*#{1,6}\s|^\s*(?:[-*+]|\d+\.)\s|[|*_`\\]", re.S | re.M)
LINK = re.compile(r"!?\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\((?:[^()\n]|\([^()\n]*\))*\)")
"""A link or picture of Markdown; its first group is what is shown of it."""
_BOX = re.compile(r"\[[ xX]\](?=\s)")
"""The box of a task, ticked or not."""
_WORD = re.compile(r"\w+", re.U)


def plain_text(markdown: str) -> str:
    """Text without Markdown's marks, comments, link targets and table rules; entities of HTML as the letters that they stand for."""
    return html.unescape(_MARKUP.sub(" ", _BOX.sub(" ", LINK.sub(r"\1", markdown))))


def word_list(text: str) -> list[str]:
    """The words of a text in order: runs of letters and digits, folded (NFKC, case); marks do not count."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
