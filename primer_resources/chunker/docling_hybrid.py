"""Docling's HybridChunker, with three of its steps refined. Imports docling_core: import this module only inside steps.

The order of steps is HybridChunker's own: hierarchical items, too long ones split, peers merged. Refined are
- splitting by items: an item that fits stays whole (HybridChunker rebuilds every item of several fragments with line ends between
  the words);
- splitting by text: sentences, lines and table rows that join to the item, captions and headers repeated, instead of semchunk's
  greedy cuts;
- merging peers: cuts that hang on the content (primer_core.packing) instead of filling up from the start, so that an edit near the top
  of a long section does not move every later cut.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import Any

from docling_core.transforms.chunker import BaseChunk, DocChunk, DocMeta
from docling_core.transforms.chunker.hybrid_chunker import HybridChunker
from docling_core.transforms.chunker.tokenizer.base import BaseTokenizer
from docling_core.transforms.serializer.base import BaseDocSerializer, BaseSerializerProvider
from docling_core.types.doc import TableItem
from docling_core.types.doc.document import DocItem

from primer_core.packing import Level, Unit, pack, rank_of
from primer_core.sentences import fold_space
from primer_resources.chunker.marked import plain
from primer_resources.chunker.pieces import Count, split_prose, split_table
from primer_resources.chunker.serializer import MarkedSerializerProvider, without_placeholders

_HEADING_SHARE = 3
"""The heading path may take one part in this many of a passage; leading headings are left out beyond it."""
_LEAST_PERCENT = 30
"""A cut leaves at least this much of the limit on both sides, where it can (100 of 340 tokens in the measurement)."""


class PlainTokenizer(BaseTokenizer):
    """Tells HybridChunker the size of the plain words in a marked text."""

    counter: Any
    limit: int

    def count_tokens(self, text: str) -> int:
        """Tokens of the plain words, special tokens not included."""
        return int(self.counter.count(fold_space(plain(text))))

    def get_max_tokens(self) -> int:
        """The limit of one passage, heading path included."""
        return self.limit

    def get_tokenizer(self) -> Any:
        """The counting function."""
        return self.count_tokens


class PassageChunker(HybridChunker):
    """HybridChunker with the three refined steps; its chunks hold marked text."""

    tokenizer: PlainTokenizer
    serializer_provider: BaseSerializerProvider = MarkedSerializerProvider()
    always_emit_headings: bool = True

    def contextualize(self, chunk: BaseChunk) -> str:
        """Heading path and text, as the model will read them."""
        headings = self.short_path(chunk.meta.headings or []) if isinstance(chunk.meta, DocMeta) else ()
        return "\n".join([*headings, chunk.text])

    def short_path(self, headings: Sequence[str]) -> tuple[str, ...]:
        """The heading path within its share: leading headings left out, a last one that is too long cut at a word."""
        share = self.max_tokens // _HEADING_SHARE
        path = list(plain_path(headings))
        while len(path) > 1 and self.tokenizer.count_tokens("\n".join(path)) > share:
            path.pop(0)
        if path and self.tokenizer.count_tokens(path[0]) > share:
            path = [split_prose_words(path[0], share, self.tokenizer.count_tokens)]
        return tuple(path)

    def _split_by_doc_items(self, doc_chunk: DocChunk, doc_serializer: BaseDocSerializer) -> list[DocChunk]:
        text = without_placeholders(doc_chunk.text)
        headings = doc_chunk.meta.headings
        if not text.strip() and headings and not doc_chunk.text:
            # A heading with nothing below it: its words are the passage, under the headings above it.
            meta = DocMeta(doc_items=doc_chunk.meta.doc_items[-1:], headings=headings[:-1] or None, origin=doc_chunk.meta.origin)
            words = plain(headings[-1]).strip()
            return [DocChunk(text=words, meta=meta)] if words else []
        return [DocChunk(text=text, meta=doc_chunk.meta)] if text.strip() else []

    def _split_using_plain_text(self, doc_chunk: DocChunk, doc_serializer: BaseDocSerializer) -> list[DocChunk]:
        if self._count_chunk_tokens(doc_chunk) <= self.max_tokens:
            return [doc_chunk]
        return super()._split_using_plain_text(doc_chunk, doc_serializer)

    def segment(self, doc_chunk: DocChunk, available_length: int, doc_serializer: BaseDocSerializer) -> list[str]:
        """Pieces of one too long chunk, each of at most `available_length` tokens."""
        count: Count = self.tokenizer.count_tokens
        split = split_table if holds_table(doc_chunk) else split_prose
        return split(doc_chunk.text, available_length, count)

    def _merge_chunks_with_matching_metadata(self, chunks: list[DocChunk]) -> list[DocChunk]:
        merged: list[DocChunk] = []
        for _, run in groupby(_runs(chunks), key=lambda pair: pair[0]):
            merged += self._pack_run([chunk for _, chunk in run])
        return merged

    def _pack_run(self, run: list[DocChunk]) -> Iterator[DocChunk]:
        if len(run) == 1:
            yield run[0]
            return
        count = self.tokenizer.count_tokens
        headings = count("\n".join(self.short_path(run[0].meta.headings or [])))
        room = self.max_tokens - headings
        levels = [Level.BLOCK, *(_level(before, after) for before, after in pairwise(run))]
        units = [Unit(count(chunk.text), level, rank_of(plain(chunk.text))) for chunk, level in zip(run, levels, strict=True)]

        def measure(first: int, stop: int) -> int:
            return int(self._count_chunk_tokens(_join(run[first:stop]))) - headings

        for first, stop in pack(units, room, room * _LEAST_PERCENT // 100, measure):
            yield _join(run[first:stop])


def plain_path(headings: Sequence[str]) -> tuple[str, ...]:
    """The words of a heading path, each heading on one line, empty ones left out."""
    path = (fold_space(plain(heading)).replace("\n", " ") for heading in headings)
    return tuple(heading for heading in path if heading)


def split_prose_words(text: str, budget: int, count: Count) -> str:
    """The leading words of `text` that fit into `budget` tokens."""
    return split_prose(text.replace("\n", " "), budget, count)[0].strip()


def holds_table(chunk: DocChunk) -> bool:
    """Whether the chunk is, or begins with, a table (its caption aside)."""
    return any(isinstance(item, TableItem) for item in chunk.meta.doc_items[:2])


def _runs(chunks: list[DocChunk]) -> Iterator[tuple[int, DocChunk]]:
    """Chunks with the number of their run: neighbours of one heading path; the pieces of a split table stand alone."""
    number = 0
    was_split = False
    for n, chunk in enumerate(chunks):
        before = chunks[n - 1] if n else None
        split = holds_table(chunk) and any(0 <= m < len(chunks) and chunks[m].meta is chunk.meta for m in (n - 1, n + 1))
        if before is None or split or before.meta.headings != chunk.meta.headings or was_split:
            number += 1
        was_split = split
        yield number, chunk


def _level(before: DocChunk, after: DocChunk) -> Level:
    if before.meta is not after.meta:
        return Level.BLOCK
    words = plain(before.text)
    if words.endswith("\n"):
        return Level.LINE
    return Level.SENTENCE if words.rstrip()[-1:] in tuple(".!?…。！？\"'”’»)]") else Level.WORD


def _join(run: list[DocChunk]) -> DocChunk:
    """One chunk of a run: pieces of one item as they stood, items as paragraphs."""
    if len(run) == 1:
        return run[0]
    text = run[0].text
    items: list[DocItem] = list(run[0].meta.doc_items)
    for before, after in pairwise(run):
        same = before.meta is after.meta
        text += ("" if same else "\n\n") + after.text
        items += [] if same else after.meta.doc_items
    return DocChunk(text=text, meta=DocMeta(doc_items=items, headings=run[0].meta.headings, origin=run[0].meta.origin))
