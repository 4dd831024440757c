"""What every chunker built on Docling does behind Primer's port. Light to import; docling_core is loaded at the first document.

A cutter cuts to the limit less the overlap's share and the model's special tokens; here its chunks get their two texts, their overlap
and their pages.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from primer_core.chunks import Chunk, number_occurrences
from primer_core.elements import ParsedDocument
from primer_core.failures import DocumentFault, PrimerError, Reason, SystemFault
from primer_core.recipe import ChunkerKind, ChunkerSpec
from primer_core.sentences import fold_space, split_sentences
from primer_resources.chunker.marked import pages_of, plain, shown, without_marks
from primer_resources.tokenizer import TokenCounter

if TYPE_CHECKING:
    from docling_core.transforms.chunker import DocChunk

SMALLEST_LIMIT = 32
_TRAILING = re.compile(r"[^\S\n]+$", re.MULTILINE)
_MANY_BLANK_LINES = re.compile(r"\n{3,}")


class Cutter(Protocol):
    """A Docling chunker whose chunks hold marked text, each within the limit that it was made for."""

    def chunk(self, dl_doc: Any, **kwargs: Any) -> Iterator[Any]:
        """The DocChunks of a DoclingDocument that was mended, in order."""
        ...

    def short_path(self, headings: Sequence[str]) -> tuple[str, ...]:
        """The heading path as the model reads it."""
        ...


class DoclingChunker(ABC):
    """Chunks of at most `max_tokens` of the embed string, special tokens included.

    `overlap_percent` of the limit is kept free for whole sentences of the passage before.
    Raises PrimerError where the limit leaves no room for text.
    """

    kind: ClassVar[ChunkerKind]
    rules: ClassVar[str]
    """Names and versions of the cutting and rendering rules; a change of any of them is a new chunker version."""

    def __init__(self, counter: TokenCounter, max_tokens: int, overlap_percent: int) -> None:
        self._counter = counter
        self._overlap_tokens = max_tokens * overlap_percent // 100
        self._limit = max_tokens - counter.special_tokens - self._overlap_tokens
        if self._limit < SMALLEST_LIMIT // 2:
            raise PrimerError(
                f"chunk_max_tokens = {max_tokens} with chunk_overlap_percent = {overlap_percent} leaves {self._limit} tokens for text; "
                f"raise the first to at least {SMALLEST_LIMIT * 2} or lower the second"
            )
        self._spec = ChunkerSpec(
            kind=self.kind.value,
            library=f"docling-core={version('docling-core')};tokenizer={counter.identity};tables=markdown;{self.rules}",
            max_tokens=max_tokens,
            overlap_percent=overlap_percent,
        )

    @property
    def spec(self) -> ChunkerSpec:
        """What shapes the output."""
        return self._spec

    def chunk(self, parsed: ParsedDocument) -> tuple[Chunk, ...]:
        """The document's chunks in order, occurrences numbered, no `embed_text` over `spec.max_tokens`.

        Raises DocumentFault(EMPTY) where no words are left, SystemFault where a passage comes out too long all the same.
        """
        from docling_core.types.doc import DoclingDocument

        from primer_resources.chunker.serializer import mend

        document = DoclingDocument.model_validate_json(without_marks(_decompress(parsed.docling_json_zst)))
        mend(document)
        chunks = list(self._render([chunk for chunk in self._cutter.chunk(document) if plain(chunk.text).strip()]))
        if not any(map(str.isalnum, "".join(chunk.embed_text for chunk in chunks))):
            raise DocumentFault(Reason.EMPTY, "the document holds no words to index")
        return number_occurrences(chunks)

    @abstractmethod
    def _open_cutter(self, counter: TokenCounter, limit: int) -> Cutter:
        """The cutter, for passages of `limit` tokens without special ones."""

    @cached_property
    def _cutter(self) -> Cutter:
        return self._open_cutter(self._counter, self._limit)

    def _render(self, cut: "Sequence[DocChunk]") -> Iterator[Chunk]:
        from docling_core.types.doc import TableItem

        from primer_resources.chunker.docling_items import plain_path

        words_before = ""
        headings_before: list[str] = []
        for ordinal, piece in enumerate(cut):
            headings = piece.meta.headings or []
            path = plain_path(headings)
            words = fold_space(plain(piece.text))
            table = any(isinstance(item, TableItem) for item in piece.meta.doc_items)
            overlap = self._tail(words_before) if words_before and not table and headings == headings_before else ""
            embed_text = "\n".join([*self._cutter.short_path(headings), *([overlap] if overlap else []), words])
            tokens = self._counter.count(embed_text) + self._counter.special_tokens
            if tokens > self._spec.max_tokens:
                raise SystemFault(
                    f"a passage under {' > '.join(path) or 'no heading'} came out at {tokens} tokens where chunk_max_tokens is "
                    f"{self._spec.max_tokens}; this is a fault of the chunker, report it with the document"
                )
            words_before, headings_before = "" if table else words, headings
            yield Chunk(
                ordinal=ordinal,
                heading_path=path,
                overlap=overlap,
                text=_tidy(shown(piece.text)),
                embed_text=embed_text,
                pages=pages_of(piece.text) or _pages_of_items(piece),
                token_count=tokens,
            )

    def _tail(self, words: str) -> str:
        """Whole sentences from the end of the passage before, as many as the overlap's share holds."""
        taken = ""
        for sentence in reversed(split_sentences(words)):
            longer = f"{sentence} {taken}" if taken else sentence
            # A line end costs no token in the tokenizers known, but the final count decides, so keep one token free.
            if self._counter.count(longer) >= self._overlap_tokens:
                break
            taken = longer
        return taken


def _decompress(compressed: bytes) -> str:
    import pyarrow as pa

    raw: bytes = pa.CompressedInputStream(pa.BufferReader(compressed), "zstd").read()
    return raw.decode("utf-8")


def _tidy(text: str) -> str:
    return _MANY_BLANK_LINES.sub("\n\n", _TRAILING.sub("", text)).strip("\n")


def _pages_of_items(piece: "DocChunk") -> tuple[int, ...]:
    return tuple(sorted({prov.page_no for item in piece.meta.doc_items for prov in item.prov}))
