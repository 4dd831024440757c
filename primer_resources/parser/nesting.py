"""HTML that is nested too deeply for a reader that recurses: flattened before it is read, with every word kept. Bytes and trees only.

Docling reads pages with BeautifulSoup's html.parser, which closes nothing by itself: a page of a thousand unclosed <p> is a tree a
thousand deep, takes time by its square, and ends the interpreter's stack. libxml2 closes such tags as browsers do.
"""

import re
from collections import Counter

from lxml import etree, html

MAX_DEPTH = 100
"""Levels that are kept. Docling read 300 nested divisions and gave up at 600 nested lists; the deepest of 171 real pages has 56."""

MAX_PARSED_DEPTH = 1_000
"""Levels that libxml2 is given: from 2,048 on (xmlParserMaxDepth with huge_tree) it drops what lies deeper, words and all."""

_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9:-]*)[^<>]*?(/?)>")
_VOID = frozenset(
    {*("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"), "!doctype"}
)
"""Elements without an end tag (HTML Living Standard, 13.1.2)."""


_CLOSED_BY_ITS_LIKE = frozenset({"p", "li", "td", "th", "tr", "dt", "dd", "option"})


def depth_of(text: str) -> int:
    """How deep a reader that closes nothing by itself would stand at the deepest place."""
    depth = deepest = 0
    for closing, name, empty in _TAG.findall(text):
        if closing:
            depth = max(0, depth - 1)
        elif not empty and name.lower() not in _VOID:
            depth += 1
            deepest = max(deepest, depth)
    return deepest


def flatten(text: str) -> str:
    """The page as it is where its depth is ordinary; else with all tags closed, and those below MAX_DEPTH levels replaced by line ends."""
    if depth_of(text) <= MAX_DEPTH:
        return text
    parser = html.HTMLParser(encoding="utf-8", huge_tree=True)
    try:
        root = html.document_fromstring(_cut_deepest(text).encode("utf-8", "replace"), parser=parser)
    except etree.ParserError:
        return text  # nothing in it but tags that hold nothing
    for element in _below(root, MAX_DEPTH):
        element.text = "\n" + (element.text or "")
        element.tail = "\n" + (element.tail or "")
        element.drop_tag()
    return str(etree.tostring(root, encoding="unicode", method="html"))


def _cut_deepest(text: str) -> str:
    """The page with each tag below MAX_PARSED_DEPTH levels replaced by a line end."""
    stack: list[str] = []
    present: Counter[str] = Counter()

    def judge(tag: re.Match[str]) -> str:
        closing, name, empty = tag[1], tag[2].lower(), tag[3]
        if name in _VOID or empty:
            return tag[0]
        if not closing:
            if not (stack and stack[-1] == name and name in _CLOSED_BY_ITS_LIKE):
                stack.append(name)
                present[name] += 1
            return tag[0] if len(stack) <= MAX_PARSED_DEPTH else "\n"
        if not present[name]:
            return tag[0]
        depth = len(stack)
        while (top := stack.pop()) != name:
            present[top] -= 1
        present[name] -= 1
        return tag[0] if depth <= MAX_PARSED_DEPTH or len(stack) < MAX_PARSED_DEPTH else "\n"

    return _TAG.sub(judge, text)


def _below(root: html.HtmlElement, most: int) -> list[html.HtmlElement]:
    found = []
    depth = 0
    for event, element in etree.iterwalk(root, events=("start", "end")):
        if event == "end":
            depth -= 1
            continue
        depth += 1
        if depth > most and isinstance(element, html.HtmlElement) and element.tag not in ("script", "style"):
            found.append(element)
    return found
