"""What a document's write does to the indexes and to its manifest, computed the same way before the write and at the flip."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from primer_core.chunks import Chunk, ChunkDiff, diff_chunks, next_manifest
from primer_core.ids import row_id


@dataclass(frozen=True, slots=True)
class PlannedChunk:
    """A chunk of the new generation. `is_new` means that this write adds its row."""

    chunk_id: str
    row_id: str
    chunk: Chunk
    is_new: bool


@dataclass(frozen=True, slots=True)
class WritePlan:
    """A document's step from one manifest to the next."""

    generation: int
    manifest: Mapping[str, int]
    chunks: tuple[PlannedChunk, ...]
    diff: ChunkDiff

    @property
    def added(self) -> tuple[PlannedChunk, ...]:
        """The chunks whose rows this write adds."""
        return tuple(planned for planned in self.chunks if planned.is_new)


def plan_write(doc_id: str, chunks: Sequence[Chunk], manifest: Mapping[str, int], generation: int, rewrite: bool) -> WritePlan:
    """Plan the write of `chunks` over `manifest` under `generation`.

    `rewrite` adds every row anew, because what the kept rows carry besides the chunk (their permissions) has changed.
    """
    chunk_ids = [chunk.id_in(doc_id) for chunk in chunks]
    following = next_manifest(chunk_ids, {} if rewrite else manifest, generation)
    planned = tuple(
        PlannedChunk(chunk_id, row_id(chunk_id, following[chunk_id]), chunk, following[chunk_id] == generation)
        for chunk_id, chunk in zip(chunk_ids, chunks, strict=True)
    )
    return WritePlan(generation, following, planned, diff_chunks(chunk_ids, manifest))
