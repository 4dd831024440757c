"""Docling's Markdown serializers, writing marked text. Imports docling_core: import this module only inside steps.

What differs from Docling's own: marks round links, emphasis, fences and list markers; inline fragments join without a space before closing
punctuation (Docling strips the fragments, so "*MUST*" and ": read" would become "*MUST* : read"); no placeholder comments; a
table's separator row is always the same, so one cell that turns into a number does not rewrite every piece of its table.
"""

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from docling_core.transforms.chunker.hierarchical_chunker import ChunkingDocSerializer
from docling_core.transforms.serializer.base import BaseSerializerProvider, SerializationResult
from docling_core.transforms.serializer.common import create_ser_result
from docling_core.transforms.serializer.markdown import (
    MARKDOWN_SEPARATOR_ROW_RE,
    MarkdownInlineSerializer,
    MarkdownParams,
    MarkdownTableSerializer,
    MarkdownTextSerializer,
)
from docling_core.types.doc import CodeItem, ContentLayer, DoclingDocument, FormulaItem, ListItem, NodeItem, TableItem, TitleItem
from docling_core.types.doc.base import ImageRefMode
from docling_core.types.doc.document import DocItem, InlineGroup, ListGroup, SectionHeaderItem, TextItem

from primer_core.sentences import joins_tightly
from primer_resources.chunker.marked import closing, opening, page_note, plain, section_tag
from primer_resources.chunker.pieces import separator

PRINTED_LAYERS = (ContentLayer.BODY, ContentLayer.NOTES)
"""The body, and the notes that a speaker wrote under a slide."""
_LIST_MARKER = re.compile(r"(?:[-*+]|\d+\.) ")
_PLACEHOLDER = re.compile(r"<!-- (?:missing-[a-z-]+|formula-not-decoded|image) -->")


def without_placeholders(text: str) -> str:
    """The text without the comments that Docling writes where it has no words."""
    return _PLACEHOLDER.sub("", text) if "<!--" in text else text


class MarkedTextSerializer(MarkdownTextSerializer):
    """Text items, with marks and page notes."""

    def _md_line_breaks(self, text: str) -> str:
        return text

    def serialize(self, *, item: TextItem, **kwargs: Any) -> SerializationResult:
        """Serialise one text item."""
        result = super().serialize(item=item, **kwargs)
        if not result.text:
            return result
        if isinstance(item, CodeItem):
            result.text = _mark_fences(result.text, item.text)
        elif isinstance(item, FormulaItem) and not item.text:
            result.text = item.orig
        elif isinstance(item, ListItem) and (marker := _LIST_MARKER.match(result.text)):
            result.text = opening(marker.group()) + result.text[marker.end() :]
        result.text = _page_notes(item) + result.text
        return result


class MarkedInlineSerializer(MarkdownInlineSerializer):
    """Inline groups, joined as they are read."""

    def serialize(
        self, *, item: InlineGroup, doc_serializer: Any, doc: DoclingDocument, visited: set[str] | None = None, **kwargs: Any
    ) -> SerializationResult:
        """Serialise the fragments of one paragraph."""
        kwargs.pop("is_inline_scope", None)
        seen = visited if visited is not None else set()
        parts = doc_serializer.get_parts(item=item, is_inline_scope=True, visited=seen, **kwargs)
        text = join_inline([part.text for part in parts])
        if text and item.parent is not None and isinstance(item.parent.resolve(doc), ListGroup):
            # Docling's list serializer appends such a paragraph to the item before it, with nothing between the two words.
            text = "\n" + text
        return create_ser_result(text=text, span_source=parts)


class MarkedTableSerializer(MarkdownTableSerializer):
    """Tables as compact Markdown rows."""

    def serialize(self, **kwargs: Any) -> SerializationResult:
        """Serialise one table, caption first."""
        result = super().serialize(**kwargs)
        lines = result.text.split("\n")
        for number, line in enumerate(lines):
            if number and MARKDOWN_SEPARATOR_ROW_RE.match(line):
                body = "\n".join(lines[number + 1 :])
                result.text = "\n".join(lines[:number]) + "\n" + separator(line.count("|") - 1) + body
                break
        if result.text and not kwargs.get("_nested_in_table"):
            result.text = _page_notes(kwargs["item"]) + result.text
        return result


class MarkedDocSerializer(ChunkingDocSerializer):
    """The document's serializer: Docling's for chunking, with the serializers above."""

    text_serializer: MarkedTextSerializer = MarkedTextSerializer()
    inline_serializer: MarkedInlineSerializer = MarkedInlineSerializer()
    table_serializer: MarkedTableSerializer = MarkedTableSerializer()
    params: MarkdownParams = MarkdownParams(
        layers=set(PRINTED_LAYERS),
        image_mode=ImageRefMode.PLACEHOLDER,
        image_placeholder="",
        escape_underscores=False,
        escape_html=False,
        compact_tables=True,
    )

    @cached_property
    def _left_out(self) -> set[str]:
        return super().get_excluded_refs()

    def get_excluded_refs(self, **kwargs: Any) -> set[str]:
        """References that are not printed. The parameters never change here, so they are worked out once and not for every item."""
        return self._left_out

    def serialize_bold(self, text: str, **kwargs: Any) -> str:
        """Bold, marked."""
        return opening("**") + text + closing("**")

    def serialize_italic(self, text: str, **kwargs: Any) -> str:
        """Italic, marked."""
        return opening("*") + text + closing("*")

    def serialize_strikethrough(self, text: str, **kwargs: Any) -> str:
        """Struck through, marked."""
        return opening("~~") + text + closing("~~")

    def serialize_hyperlink(self, text: str, hyperlink: Any, **kwargs: Any) -> str:
        """A link: its text is words, its target is not."""
        target = super().serialize_hyperlink(text="", hyperlink=hyperlink, **kwargs).removeprefix("[")
        return opening("[") + text + closing(target)


class MarkedSerializerProvider(BaseSerializerProvider):
    """Gives HybridChunker its serializer."""

    def get_serializer(self, doc: DoclingDocument) -> MarkedDocSerializer:
        """The serializer of one document."""
        return MarkedDocSerializer(doc=doc)


def mend(doc: DoclingDocument) -> None:
    """Bring a document into the shape in which the chunker loses no word of it."""
    _mend_headings(doc)
    _tag_headings(doc)
    _free_satellites(doc)


def _tag_headings(doc: DoclingDocument) -> None:
    """Number the headings, so that HybridChunker, which compares heading paths as strings, never merges two sections of one name."""
    for number, item in enumerate(doc.texts):
        if isinstance(item, TitleItem | SectionHeaderItem) and item.text.strip():
            item.text += section_tag(number)


def _free_satellites(doc: DoclingDocument) -> None:
    """Let captions and footnotes stand as text where nothing would print them.

    A caption is printed by its table or picture, so it is lost where that one is furniture (a page's logo) or stands in a table's cell;
    footnotes are printed by none.
    """
    for item in (*doc.tables, *doc.pictures):
        item.footnotes = []
        if item.content_layer not in PRINTED_LAYERS or _in_table(item, doc):
            item.captions = []


def _in_table(item: NodeItem, doc: DoclingDocument) -> bool:
    while item.parent is not None:
        item = item.parent.resolve(doc)
        if isinstance(item, TableItem):
            return True
    return False


def _mend_headings(doc: DoclingDocument) -> None:
    """Give headings their words where Docling keeps them in an inline group below ("## The `foo` command").

    Otherwise the heading path would hold an empty string and the heading would stand as a passage of its own.
    """
    for item in doc.texts:
        if not isinstance(item, TitleItem | SectionHeaderItem) or item.text or not item.children:
            continue
        group = item.children[0].resolve(doc)
        if isinstance(group, InlineGroup):
            fragments = [child.resolve(doc) for child in group.children]
            item.text = join_inline([part.text for part in fragments if isinstance(part, TextItem)])
            item.children = item.children[1:]


def join_inline(fragments: Sequence[str]) -> str:
    """Inline fragments joined with a space, or with none where punctuation binds."""
    joined = before = ""
    for fragment in fragments:
        words = plain(fragment)
        if not words:
            joined += fragment
            continue
        joined += fragment if joins_tightly(before, words) else f" {fragment}"
        before = words
    return joined


def _mark_fences(text: str, code: str) -> str:
    at = text.find(code) if code else -1
    if at < 0:
        return text
    before, after = text[:at], text[at + len(code) :]
    fence = re.search(r"`+\s*$", before)
    back = re.match(r"\s*`+", after)
    if fence is None or back is None:
        return text
    return before[: fence.start()] + opening(fence.group()) + code + closing(back.group()) + after[back.end() :]


def _page_notes(item: DocItem) -> str:
    return "".join(page_note(page) for page in sorted({prov.page_no for prov in item.prov}))
