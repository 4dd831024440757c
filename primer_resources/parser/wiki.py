"""What stands in a wiki page and is not its text: front matter and template codes. They are metadata. Pure.

Front matter is YAML between `---` lines or TOML between `+++` lines at the top (Jekyll, Hugo, Docusaurus). Template codes are what a
site's generator or a wiki replaces: `{% … %}` (Liquid, Nunjucks), `{{< … >}}` and `{{% … %}}` (Hugo), `{{ … }}` (Liquid, MediaWiki),
`[[_TOC_]]` and `__TOC__`, `{: … }` (Kramdown). The words between an opening and a closing code are text; only comments go whole.
What a page shows as code stays as it is.
"""

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import yaml


@dataclass(frozen=True, slots=True)
class Page:
    """A page without its metadata: the title that the front matter gives ("" for none), the text, and the metadata as plain JSON
    values: `front_matter` (a mapping) and `template_codes` (a list of strings, in order), each only where there is any."""

    title: str
    body: str
    metadata: Mapping[str, Any] = field(default_factory=dict)


_YAML = re.compile(r"\A\s*---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_TOML = re.compile(r"\A\s*\+\+\+[ \t]*\n(.*?)\n\+\+\+[ \t]*(?:\n|\Z)", re.DOTALL)

_FENCE = r"^[ ]{0,3}(?:>[ ]?|[-*+][ ]+|\d+[.)][ ]+|[ ]{4})*(?P<fence>`{3,}|~{3,})[^\n]*\n(?:.*?\n)??[ >]*(?P=fence)[`~]*[ \t]*$"
_INDENTED = r"(?:(?<=\A)|(?<=\n\n))(?P<indented>(?:(?:[ ]{4}|\t)[^\n]*(?:\n|\Z)|[ \t]*\n(?=[ ]{4}|\t))+)"
_SPAN = r"(?P<ticks>(?<!`)`+(?!`))(?:(?!\n[ \t]*\n).)*?(?<!`)(?P=ticks)(?!`)"
_MATH = r"\$\$.{0,10000}?\$\$"
# Every stretch that may be left unclosed has an end, or a page of openings would take time by its square.
_RAW = r"\{%-?\s*raw\s*-?%\}(?P<raw>.{0,10000}?)\{%-?\s*endraw\s*-?%\}"
_COMMENT = r"\{%-?\s*comment\b.{0,10000}?\{%-?\s*endcomment\s*-?%\}"
_LIQUID = r"\{%.{0,2000}?%\}"
_HUGO = r"\{\{<.{0,2000}?>\}\}|\{\{%.{0,2000}?%\}\}"
_OUTPUT = r"(?<![\\_^{}$])\{\{(?![{}])[-#/!]?\s*[\w\"'][^{}\\]*\}\}(?!\})"
_CONTENTS = r"\[\[_?TOC_?\]\]|(?<!\w)__(?:NO)?TOC__(?!\w)"
_ATTRIBUTES = r"(?<!\{)\{:(?:[ ]*(?:[.#][\w-]+|[\w-]+=(?:\"[^\"\n]*\"|'[^'\n]*')|toc))+[ ]*\}"

_CODES = rf"(?P<code>{_COMMENT}|{_HUGO}|{_LIQUID}|{_OUTPUT}|{_CONTENTS}|{_ATTRIBUTES})"
_IN_MARKDOWN = re.compile(rf"(?P<shown>{_FENCE}|{_SPAN}|{_MATH})|{_INDENTED}|{_RAW}|{_CODES}", re.DOTALL | re.MULTILINE)
_IN_LIST = re.compile(rf"(?P<shown>{_FENCE}|{_SPAN}|{_MATH})|{_RAW}|{_CODES}", re.DOTALL | re.MULTILINE)
_BEFORE_INDENTED_CODE = re.compile(r"(?:\A|\n)(?![ \t]|[-*+][ \t]|\d+[.)][ \t])[^\n]+\s*\Z")
"""An indented block is code only where the line before it neither is a list item nor belongs to one."""
_LINE_WITHIN = 2_000

_SHOWN_IN_HTML = r"<(?P<tag>pre|code|script|style|textarea|math|svg)\b.{0,200000}?</(?P=tag)\s*>|<!--.{0,200000}?-->"
_IN_HTML = re.compile(rf"(?P<shown>{_SHOWN_IN_HTML}|{_MATH})|{_RAW}|{_CODES}", re.DOTALL | re.MULTILINE | re.IGNORECASE)

_A_COMMAND = re.compile(r"\\[A-Za-z]+\Z")
_COMMAND_WITHIN = 40
_MARKERS = ("{%", "{{", "[[TOC", "[[_TOC", "TOC__", "{:")
_PASSES = 8
"""Templates in templates are taken out from the innermost; MediaWiki pages nest four or five."""


@lru_cache(maxsize=1)
def split_page(text: str, is_html: bool = False) -> Page:
    """Part a page from its front matter and template codes. The last page is remembered: its engine and the count of its words ask
    one after the other."""
    front, body = _split_front_matter(text)
    body, codes = _split_codes(body, _IN_HTML if is_html else _IN_MARKDOWN)
    metadata: dict[str, Any] = {}
    if front:
        metadata["front_matter"] = _plain(front)
    if codes:
        metadata["template_codes"] = codes
    title = front.get("title")
    return Page(str(title).strip() if isinstance(title, str | int | float) else "", body, metadata)


def _split_front_matter(text: str) -> tuple[dict[str, Any], str]:
    """The block at the top and what follows it. A rule (`---`) that begins a page is left alone."""
    match = _YAML.match(text)
    if match is not None:
        try:
            data: Any = yaml.load(match[1], Loader=yaml.CSafeLoader)
        except (yaml.YAMLError, ValueError):  # a date that is none is a ValueError
            # Template code in the block: metadata all the same if it looks like keys.
            data = dict(re.findall(r"^(\w+):[ \t]*(.*)$", match[1], re.MULTILINE)) or None
        if data is None or isinstance(data, dict):
            return data or {}, text[match.end() :]
    match = _TOML.match(text)
    if match is not None:
        try:
            return tomllib.loads(match[1]), text[match.end() :]
        except tomllib.TOMLDecodeError:
            return {}, text
    return {}, text


def _plain(value: Any) -> Any:
    """Plain JSON values: dates become strings, and what refers to itself is left out."""
    try:
        return json.loads(json.dumps(value, default=str, ensure_ascii=False, skipkeys=True))
    except (ValueError, RecursionError):
        return {}


def _split_codes(text: str, rule: re.Pattern[str]) -> tuple[str, list[str]]:
    found: list[str] = []

    def judge(match: re.Match[str]) -> str:
        groups = match.groupdict()
        if match["shown"] is not None:
            return match[0]
        if groups.get("indented") is not None:
            before = match.string[max(0, match.start() - _LINE_WITHIN) : match.start()]
            is_code = not before.strip() or _BEFORE_INDENTED_CODE.search(before)
            return match[0] if is_code else _IN_LIST.sub(judge, match[0])
        if match["raw"] is not None:
            # Kept out of the next pass by a mark, since it is what the page shows.
            held.append(match["raw"])
            return f"\x00{len(held) - 1}\x00"
        if _A_COMMAND.search(match.string, max(0, match.start() - _COMMAND_WITHIN), match.start()):
            return match[0]
        found.append(match[0])
        return ""

    held: list[str] = []
    for _ in range(_PASSES):
        if not any(marker in text for marker in _MARKERS):
            break
        before = len(found)
        text = rule.sub(judge, text)
        if len(found) == before:
            break
    if held:
        text = re.sub("\x00(\\d+)\x00", lambda mark: held[int(mark[1])], text)
    return text, found
