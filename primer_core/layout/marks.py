"""What the first characters of a text say: list markers, captions, leaders of a contents page."""

import re

BULLETS = "•‣◦⁃⁌⁍∙▪▫●○■□◆◇►▶▸➤➢✓✔✗✘☐☑☒·–*"
"""Characters that begin a list item; so does any control character above ASCII and any of the private use area, where dingbat
fonts have theirs."""

_BULLET = re.compile(rf"[{re.escape(BULLETS)}\x80-\x9f\ue000-\uf8ff-](?=\s|$)")
_NUMBER = re.compile(r"(?:\(?(?:\d{1,3}|[a-zA-Z]|[ivxlc]{1,6}|[IVXLC]{1,6})\)|(?:\d{1,3}|[a-zA-Z]|[ivxlc]{1,6})\.|\[\d{1,3}\])(?=\s|$)")
_SECTION = re.compile(r"(?:(?:chapter|section|part|article|appendix|annex)\s+)?(\d{1,3}(?:\.\d{1,3})*|[A-Z](?:\.\d{1,3})+)[.)]?\s+\S", re.I)
_CAPTION = re.compile(
    r"[\[(<【]?\s?(?:figure|fig\.?|table|tab\.|chart|exhibit|listing|abbildung|abb\.|tabelle|tableau|figura|tabla|cuadro|tabela|그림|표|図|表)\s*"
    r"[(\[]?(?:\d{1,3}(?:[-.–]\d{1,3})*|[A-Z][-.]?\d{1,3}|[IVX]{1,5})[)\]]?(?P<after>\s*[.:|–—-](?=\s|$)|\s+(?=\S)|$)",
    re.I,
)
_FOOTNOTE = re.compile(r"(?:\d{1,3}|[*∗†‡§¶#]{1,3}|\(\d{1,3}\)|\[\d{1,3}\])\s*[^\W\d]")
_LEADER = re.compile(r"(?:\.\s?){4,}|(?:…\s?){2,}|_{6,}")
_CONTENTS_LINE = re.compile(r".*(?:(?:\.\s?){4,}\s*(?:[\w-]{1,8})?|…\s*[\w-]{1,8})\s*")


def is_bullet(text: str) -> bool:
    """Whether the text begins with a bullet."""
    return _BULLET.match(text) is not None


def is_numbered(text: str) -> bool:
    """Whether the text begins with a list number: "1.", "a)", "(iv)", "[3]"."""
    return _NUMBER.match(text) is not None


def is_list_item(text: str) -> bool:
    """Whether the text begins like a list item."""
    return is_bullet(text) or is_numbered(text)


def is_bare_bullet(text: str) -> bool:
    """Whether the text is bullets and nothing else."""
    return bool(text.strip()) and all(char.isspace() or _BULLET.match(char) for char in text)


def is_marker_only(text: str) -> bool:
    """Whether the text is a list marker and nothing else."""
    match = _BULLET.match(text) or _NUMBER.match(text)
    return match is not None and match.end() == len(text.rstrip())


def is_footnote_mark(text: str) -> bool:
    """Whether the text begins with a footnote's mark: a figure or a dagger, set before the words."""
    return _FOOTNOTE.match(text) is not None


def section_depth(text: str) -> int:
    """Depth of a section number at the text's beginning ("2.1 Roles" is 2), 0 where there is none."""
    match = _SECTION.match(text)
    return match[1].count(".") + 1 if match else 0


def is_caption(text: str) -> bool:
    """Whether the text begins like a caption: "Figure 3-1 The …", "Table 2: …", but not "Table 2 shows …"."""
    match = _CAPTION.match(text)
    return match is not None and not text[match.end() : match.end() + 1].islower()


def is_sure_caption(text: str) -> bool:
    """Whether the text begins like a caption whose number is set off ("Table 2." rather than "Table 2 shows")."""
    match = _CAPTION.match(text)
    return match is not None and bool(match["after"].strip()) and is_caption(text)


def is_contents_line(text: str) -> bool:
    """Whether the text is a line of a contents page: a title, a leader of dots, a page number."""
    return _CONTENTS_LINE.fullmatch(text) is not None


def without_leaders(text: str) -> str:
    """The text with each leader of dots or blank line of underscores as one mark."""
    return " ".join(_LEADER.sub(lambda match: " … " if match[0][0] in ".…" else "____", text).split())
