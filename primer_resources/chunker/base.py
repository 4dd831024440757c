"""The chunker port."""

from typing import Protocol

from primer_core.chunks import Chunk
from primer_core.elements import ParsedDocument
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
