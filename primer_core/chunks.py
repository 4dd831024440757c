"""Chunks: the passage value, numbering of equal ones, and the diff of a new chunk set against a document's manifest."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from primer_core import ids


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage, independent of the document that holds it.

    `text` is the document's own words, quoted to readers. `embed_text` is what the model sees: heading path, overlap
    and text, plain. `overlap` is whole sentences of the previous chunk; it is embedded and never quoted.
    `occurrence` counts chunks of equal key in document order from 0. `pages` counts from 1, empty where the format has none.
    `token_count` is of `embed_text`, special tokens included.
    """

    ordinal: int
    heading_path: tuple[str, ...]
    overlap: str
    text: str
    embed_text: str
    pages: tuple[int, ...]
    token_count: int
    occurrence: int = 0

    @property
    def key(self) -> str:
        """What shapes this chunk, whatever document it stands in."""
        return ids.chunk_key(self.heading_path, self.overlap, self.text)

    def id_in(self, canonical_doc_id: str) -> str:
        """The chunk's id in a document."""
        return ids.chunk_id(canonical_doc_id, self.key, self.occurrence)


def number_occurrences(chunks: Iterable[Chunk]) -> tuple[Chunk, ...]:
    """Give equal chunks their occurrence numbers and all chunks their ordinals, in order."""
    seen: Counter[str] = Counter()
    numbered = []
    for ordinal, chunk in enumerate(chunks):
        key = chunk.key
        numbered.append(replace(chunk, ordinal=ordinal, occurrence=seen[key]))
        seen[key] += 1
    return tuple(numbered)


@dataclass(frozen=True, slots=True)
class ChunkDiff:
    """What a new chunk set changes: ids to add, ids kept, ids gone, each in a stable order."""

    new: tuple[str, ...]
    kept: tuple[str, ...]
    gone: tuple[str, ...]


def diff_chunks(chunk_ids: Sequence[str], manifest: Mapping[str, int]) -> ChunkDiff:
    """Compare a document's new chunk ids with its manifest (chunk_id → added_gen).

    The gone set is old − new, computed here and nowhere else, so a chunk just written is never removed.
    """
    present = set(chunk_ids)
    return ChunkDiff(
        new=tuple(c for c in chunk_ids if c not in manifest),
        kept=tuple(c for c in chunk_ids if c in manifest),
        gone=tuple(sorted(c for c in manifest if c not in present)),
    )


def next_manifest(chunk_ids: Iterable[str], manifest: Mapping[str, int], generation: int) -> dict[str, int]:
    """The manifest after a flip: kept chunks keep the generation that added them, new ones get `generation`."""
    return {c: manifest.get(c, generation) for c in chunk_ids}
