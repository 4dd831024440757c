"""The cutter of the `stable` chunker, over Docling's HierarchicalChunker. Imports docling_core: import this module only inside steps.

A section (the items under one heading path) that fits is one passage. A longer one is cut between its units, which are paragraphs, list
items, rows, and lines or sentences of what alone is too long, where their content says (primer_core.packing). Small sections then share
a passage with their neighbours (primer_core.siblings): the heading path is what they have in common, the rest of each path is a line
of the text. A table stays in one piece, or its rows are split under its caption and header.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

from docling_core.transforms.chunker import BaseChunk, BaseChunker, DocChunk, DocMeta, HierarchicalChunker
from docling_core.types.doc import DoclingDocument

from primer_core.packing import Level, Unit, pack, rank_of
from primer_core.sentences import fold_space
from primer_core.siblings import Section, common_path, merge_small
from primer_resources.chunker.docling_items import holds_table, items_of, join_run, level_between, short_path
from primer_resources.chunker.marked import plain
from primer_resources.chunker.pieces import split_list, split_prose, split_table
from primer_resources.chunker.serializer import MarkedSerializerProvider

LEAST, SMALL, MOST = 100, 120, 260
"""Tokens: a cut leaves LEAST on both sides where it can; a section under SMALL shares a passage with its neighbours, up to MOST together.
For a limit so low that they would be most of it, the shares below hold. LEAST was measured to matter little (60 or 130 give the same)."""
_LEAST_PERCENT, _SMALL_PERCENT, _MOST_PERCENT = 30, 35, 75


@dataclass(frozen=True, slots=True)
class _Part:
    """A section and the passages that it is cut into. A bare one has no text: its passage is its own heading, under those above it."""

    path: tuple[str, ...]
    passages: list[DocChunk]

    @property
    def text(self) -> str:
        """What stands under the heading, where that is one passage."""
        bare = len(self.path) > len(self.passages[0].meta.headings or ())
        return "" if bare else str(self.passages[0].text)


class StableCutter(BaseChunker):
    """Cuts a mended document into chunks of marked text, each of at most `limit` tokens with its headings, special tokens aside."""

    counter: Any
    limit: int

    def chunk(self, dl_doc: DoclingDocument, **kwargs: Any) -> Iterator[DocChunk]:
        """The document's passages in order."""
        hierarchical = HierarchicalChunker(serializer_provider=MarkedSerializerProvider(), always_emit_headings=True)
        items = [
            (tuple(found.meta.headings or ()), item)
            for found in hierarchical.chunk(dl_doc, **kwargs)
            if isinstance(found, DocChunk)
            for item in items_of(found)
        ]
        parts = [_Part(path, self._cut([item for _, item in run])) for path, run in groupby(items, key=lambda pair: pair[0])]
        yield from self._merge(parts)

    def contextualize(self, chunk: BaseChunk) -> str:
        """Heading path and text, as the model will read them."""
        headings = self.short_path(chunk.meta.headings or []) if isinstance(chunk.meta, DocMeta) else ()
        return "\n".join([*headings, fold_space(plain(chunk.text))])

    def short_path(self, headings: Sequence[str]) -> tuple[str, ...]:
        """The heading path as the model reads it."""
        return short_path(headings, self.limit, self._count)

    def _count(self, marked: str) -> int:
        return int(self.counter.count(fold_space(plain(marked))))

    def _cut(self, items: list[DocChunk]) -> list[DocChunk]:
        """The passages of one section."""
        room = self.limit - self._count("\n".join(self.short_path(items[0].meta.headings or [])))
        while True:
            passages = [passage for run in self._runs(items, room) for passage in self._pack(run, room)]
            # Words need not add up to the same number of tokens in every tokenizer: the count of the final string decides.
            over = max(self.counter.count(self.contextualize(passage)) for passage in passages) - self.limit
            if over <= 0 or over >= room:
                return passages
            room -= over

    def _runs(self, items: list[DocChunk], room: int) -> Iterator[list[DocChunk]]:
        """Units that may share a passage; the pieces of a split table stand alone, each under its own header."""
        run: list[DocChunk] = []
        for item in items:
            units = self._units(item, room)
            if len(units) > 1 and holds_table(item):
                yield from filter(None, [run, *([unit] for unit in units)])
                run = []
            else:
                run += units
        if run:
            yield run

    def _units(self, item: DocChunk, room: int) -> list[DocChunk]:
        if holds_table(item):
            texts = [item.text] if self._count(item.text) <= room else split_table(item.text, room, self._count)
        else:
            lines = split_list(item.text)
            texts = [text for line in lines for text in ([line] if self._count(line) <= room else split_prose(line, room, self._count))]
        return [item] if len(texts) == 1 else [DocChunk(text=text, meta=item.meta) for text in texts]

    def _pack(self, run: list[DocChunk], room: int) -> Iterator[DocChunk]:
        levels = [Level.BLOCK, *(level_between(before, after) for before, after in pairwise(run))]
        units = [Unit(self._count(unit.text), level, rank_of(plain(unit.text))) for unit, level in zip(run, levels, strict=True)]

        def measure(first: int, stop: int) -> int:
            return self._count(join_run(run[first:stop]).text)

        for first, stop in pack(units, room, min(LEAST, room * _LEAST_PERCENT // 100), measure):
            yield join_run(run[first:stop])

    def _merge(self, parts: list[_Part]) -> Iterator[DocChunk]:
        sections = [self._section(part) for part in parts]

        def together(first: int, stop: int) -> DocChunk:
            return _together(parts[first:stop], common_path(sections[first:stop]))

        most = min(MOST, self.limit * _MOST_PERCENT // 100)

        def measure(first: int, stop: int) -> int:
            made = together(first, stop)
            over = self.counter.count(self.contextualize(made)) - self.limit
            return most + over if over > 0 else self._count(made.text)

        for first, stop in merge_small(sections, min(SMALL, self.limit * _SMALL_PERCENT // 100), most, measure):
            yield from parts[first].passages if stop - first == 1 else [together(first, stop)]

    def _section(self, part: _Part) -> Section:
        own = "\n".join([*part.path[-1:], part.text])
        return Section(part.path, self._count(own), rank_of(plain(own)), whole=len(part.passages) == 1)


def _together(parts: Sequence[_Part], path: tuple[str, ...]) -> DocChunk:
    """One chunk of several sections under what they have in common, each begun by the headings that the one before it does not have."""
    texts = []
    before = path
    for part in parts:
        new = [heading for n, heading in enumerate(part.path) if part.path[: n + 1] != before[: n + 1]]
        texts.append("\n".join(filter(None, [*new, part.text])))
        before = part.path
    items = [item for part in parts for item in part.passages[0].meta.doc_items]
    return DocChunk(
        text="\n\n".join(texts), meta=DocMeta(doc_items=items, headings=list(path) or None, origin=parts[0].passages[0].meta.origin)
    )
