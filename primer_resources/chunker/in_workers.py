"""Chunking in the worker pool: a document that would keep the chunker busy for ever is killed like one that hangs a parser.

Light: docling_core is imported in the workers only.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

from primer_core.chunks import Chunk
from primer_core.elements import ParsedDocument
from primer_core.failures import DocumentFault, Reason
from primer_resources.chunker.base import Chunker, ChunkOutcome, ChunkRequest
from primer_resources.chunker.factory import ChunkerOptions, make_chunker
from primer_resources.worker_faults import fault_of
from primer_resources.workers import Call, Ending, WorkerPool

CHUNKS_FILE = "chunks.json"


class WorkerChunker:
    """ChunkService over the pool that documents are parsed in."""

    def __init__(self, pool: WorkerPool[Any], options: ChunkerOptions) -> None:
        self._pool = pool
        self._options = options

    def chunk_many(self, requests: Iterable[ChunkRequest]) -> Iterator[ChunkOutcome]:
        """Outcomes in the order in which they finish, one a request; requests are read as workers come free.

        Raises SystemFault where the surroundings fail.
        """
        for finished in self._pool.run(self._call(request) for request in requests):
            request: ChunkRequest = finished.key
            fault = fault_of(finished, request.name, self._pool.limits)
            if fault is None and finished.value is not None:
                fault = DocumentFault(Reason.EMPTY, str(finished.value))
            made = _read(finished.directory) if fault is None and finished.ending is Ending.RETURNED else ()
            yield ChunkOutcome(request.content_hash, made, fault)

    def _call(self, request: ChunkRequest) -> Call[ChunkRequest]:
        return Call(request, chunk_in_worker, (request.docling_json_zst, self._options), len(request.docling_json_zst))


@lru_cache(maxsize=4)
def _chunker(options: ChunkerOptions) -> Chunker:
    return make_chunker(options)


def chunk_in_worker(directory: Path, document_zst: bytes, options: ChunkerOptions) -> str | None:
    """The task: write the chunks to the task's directory. Returns why there are none, None where there are."""
    try:
        made = _chunker(options).chunk(ParsedDocument((), None, document_zst))
    except DocumentFault as fault:
        return fault.message
    (directory / CHUNKS_FILE).write_text(json.dumps([asdict(chunk) for chunk in made]), encoding="utf-8")
    return None


def _read(directory: Path) -> tuple[Chunk, ...]:
    rows: list[dict[str, Any]] = json.loads((directory / CHUNKS_FILE).read_text(encoding="utf-8"))
    return tuple(Chunk(**(row | {name: tuple(row[name]) for name in ("heading_path", "pages")})) for row in rows)
