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

from primer_core.packing import Level, Unit, pack, rank_of
from primer_core.sentences import fold_space
from primer_resources.chunker.docling_items import holds_table, items_of, join_run, level_between, short_path
from primer_resources.chunker.marked import plain
from primer_resources.chunker.pieces import Count, split_prose, split_table
from primer_resources.chunker.serializer import MarkedSerializerProvider

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
        """The heading path as the model reads it."""
        return short_path(headings, self.max_tokens, self.tokenizer.count_tokens)

    def _split_by_doc_items(self, doc_chunk: DocChunk, doc_serializer: BaseDocSerializer) -> list[DocChunk]:
        return items_of(doc_chunk)

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
        levels = [Level.BLOCK, *(level_between(before, after) for before, after in pairwise(run))]
        units = [Unit(count(chunk.text), level, rank_of(plain(chunk.text))) for chunk, level in zip(run, levels, strict=True)]

        def measure(first: int, stop: int) -> int:
            return int(self._count_chunk_tokens(join_run(run[first:stop]))) - headings

        for first, stop in pack(units, room, room * _LEAST_PERCENT // 100, measure):
            yield join_run(run[first:stop])


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
