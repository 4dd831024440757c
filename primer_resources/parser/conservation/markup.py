"""The words of files made of characters: pages by lxml, Markdown by taking its marks away, mail by the standard library."""

import re
from email import message_from_bytes, policy
from email.message import EmailMessage
from functools import partial
from html import unescape
from pathlib import Path
from typing import Any

from lxml import etree, html

from primer_resources.parser.conservation.reader import SourceText
from primer_resources.parser.text import decode, mail_bytes
from primer_resources.parser.wiki import Page, split_page

_INLINE = frozenset(
    {
        *("a", "abbr", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i", "ins", "kbd", "label", "mark"),
        *("q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr", "nobr"),
    }
)
_LOST_TAGS = {
    "script": "scripts and styles",
    "style": "scripts and styles",
    "template": "scripts and styles",
    "noscript": "noscript",
    "head": "page head",
    "select": "forms",
    "option": "forms",
    "textarea": "forms",
    "svg": "drawings",
    "iframe": "embedded frames",
    "object": "embedded frames",
    "math": "formulas",
    "footer": "furniture",
}
_HIDDEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)

_MARKDOWN_LOSSES: tuple[tuple[str, str, re.Pattern[str]], ...] = (
    ("comments", "<!--", re.compile(r"<!--.*?-->", re.DOTALL)),
    ("scripts and styles", "</", re.compile(r"<(script|style)\b.*?</\1\s*>", re.DOTALL | re.IGNORECASE)),
    ("link targets", "]:", re.compile(r"^[ ]{0,3}\[[^\]\n]+\]:[ \t]*\n?[ \t]*\S+.*$", re.MULTILINE)),
    ("list numbers", "", re.compile(r"^[ \t>]*\d{1,9}[.)](?=\s)", re.MULTILINE)),
    ("pictures", "![", re.compile(r"!\[[^\]\n]*\](?:\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)|\[[^\]\n]*\])")),
    ("link targets", "]", re.compile(r"(?<=\])\((?:[^()\n]|\([^()\n]*\))*\)|(?<=\])\[[^\]]{0,200}\]")),
    ("code languages", "", re.compile(r"(?<=```)[ \t]*[\w+#.-]+[ \t]*$|(?<=~~~)[ \t]*[\w+#.-]+[ \t]*$", re.MULTILINE)),
    ("tags", "<", re.compile(r"</?[a-zA-Z][\w-]*(?:\s[^<>]*)?/?>")),
)


def read_plain(path: Path) -> SourceText:
    """All of it."""
    return SourceText([decode(path.read_bytes())])


def read_markdown(path: Path) -> SourceText:
    """The text without marks; front matter, template codes, link targets, pictures and comments are losses."""
    page = split_page(decode(path.read_bytes()))
    found = _with_metadata(page)
    body = page.body
    for name, mark, rule in _MARKDOWN_LOSSES:
        if mark in body:
            body = rule.sub(partial(_lose_match, found, name), body)
    found.pieces.append(unescape(body))
    return found


def _lose_match(found: SourceText, name: str, match: re.Match[str]) -> str:
    """Leave a match out, and what stands in its place: nothing where the words before and after are one."""
    found.lose(name, match[0])
    return "" if name in ("link targets", "tags") else " "


def _with_metadata(page: Page) -> SourceText:
    found = SourceText()
    if page.metadata.get("front_matter"):
        found.lose("front matter", str(page.metadata["front_matter"]))
    for code in page.metadata.get("template_codes", ()):
        found.lose("template codes", code)
    return found


def read_html(path: Path) -> SourceText | None:
    """The text that a reader of the page sees."""
    page = split_page(decode(path.read_bytes(), is_markup=True), is_html=True)
    found = _with_metadata(page)
    return found if _read_page(page.body, found) else None


def _read_page(text: str, found: SourceText) -> bool:
    try:
        root = html.document_fromstring(text.encode("utf-8", "replace"), parser=html.HTMLParser(encoding="utf-8", huge_tree=True))
    except etree.ParserError:
        return False
    pieces: list[str] = []
    _gather(root, pieces, found)
    found.pieces.append("".join(pieces))
    return True


def _gather(root: Any, pieces: list[str], found: SourceText) -> None:
    """Text in order, a space wherever a tag that is not inline begins or ends."""
    lost: Any = None
    for event, element in etree.iterwalk(root, events=("start", "end", "comment", "pi")):
        if event in ("comment", "pi"):
            if lost is None and element.tail:
                pieces.append(element.tail)
            continue
        tag = element.tag if isinstance(element.tag, str) else ""
        gap = "" if tag in _INLINE else " "
        if event == "start":
            if lost is None and (name := _loss_of(element, tag)) is not None:
                lost = element
                found.lose(name, " ".join(element.itertext()))
            if lost is None:
                pieces.append(gap + (element.text or ""))
            continue
        if lost is element:
            lost = None
        if lost is None:
            pieces.append(gap + (element.tail or ""))


def _loss_of(element: Any, tag: str) -> str | None:
    if element.get("hidden") is not None or _HIDDEN_STYLE.search(element.get("style", "")):
        return "hidden"
    return _LOST_TAGS.get(tag)


def read_mail(path: Path) -> SourceText | None:
    """Subject and the text that a mail program shows; other headers, the other form of the same text and attachments are losses."""
    found = SourceText()
    mail = message_from_bytes(mail_bytes(path.read_bytes()), _class=EmailMessage, policy=policy.default)
    try:
        found.pieces.append(str(mail.get("subject", "")))
        body = mail.get_body(("plain", "html"))
        if body is None:
            return found
        text = body.get_content()
    except (LookupError, ValueError, TypeError, AttributeError, IndexError):
        return None  # headers or encodings that the standard library cannot read
    if not isinstance(text, str):
        return None
    if body.get_content_type() == "text/html":
        _read_page(text, found)
    else:
        found.pieces.append(text)
    return found
