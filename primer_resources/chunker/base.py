"""The chunker port."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from primer_core.chunks import Chunk
from primer_core.elements import ParsedDocument
from primer_core.failures import DocumentFault
from primer_core.recipe import ChunkerSpec


class Chunker(Protocol):
    """Cuts a parsed document into chunks; a pure function of the parsed document and the spec."""

    @property
    def spec(self) -> ChunkerSpec:
        """What shapes the output."""
        ...

    def chunk(self, parsed: ParsedDocument) -> tuple[Chunk, ...]:
        """The document's chunks in order, occurrences numbered, no `embed_text` over `spec.max_tokens`.

        Raises DocumentFault(EMPTY) where no words are left.
        """
        ...


@dataclass(frozen=True, slots=True)
class ChunkRequest:
    """One parsed content to chunk: its DoclingDocument as zstd-compressed JSON; `name` is the document's, for messages."""

    content_hash: str
    docling_json_zst: bytes
    name: str


@dataclass(frozen=True, slots=True)
class ChunkOutcome:
    """What became of one request: its chunks, or the fault that is the document's own."""

    content_hash: str
    chunks: tuple[Chunk, ...]
    fault: DocumentFault | None


class ChunkService(Protocol):
    """Chunks many contents at once, each where it can be killed."""

    def chunk_many(self, requests: Iterable[ChunkRequest]) -> Iterator[ChunkOutcome]:
        """Outcomes in the order in which they finish, one a request. A poison document is an outcome, never an exception."""
        ...
