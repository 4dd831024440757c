"""Chunking in the worker pool: the same chunks as in this process, and a document that cannot be chunked harms no other."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from primer_core.elements import ParsedDocument
from primer_core.failures import Reason
from primer_core.recipe import ChunkerKind
from primer_resources.chunker.base import ChunkRequest
from primer_resources.chunker.factory import make_chunker, options_for
from primer_resources.chunker.in_workers import WorkerChunker
from primer_resources.embedder.model import resolve_model
from primer_resources.parser.docling_parser import open_worker_pool
from primer_resources.settings import BUNDLED_MODEL, Settings
from primer_resources.workers import WorkerPool


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool[Any]]:
    made = open_worker_pool(Settings(parse_workers=1))
    yield made
    made.close()


def test_a_broken_document_is_an_outcome_and_the_others_are_chunked_as_in_this_process(
    pool: WorkerPool[Any], packed: Callable[[Any], ParsedDocument], paragraphs: Callable[[Sequence[str]], Any]
) -> None:
    options = options_for(ChunkerKind.HYBRID, resolve_model(BUNDLED_MODEL), max_tokens=400, overlap_percent=15)
    good = packed(paragraphs([f"Paragraph {n} is about the weather on the island." for n in range(20)]))
    empty = packed(paragraphs([]))
    documents = {"broken": good.docling_json_zst[: len(good.docling_json_zst) // 2], "empty": empty.docling_json_zst}
    requests = [ChunkRequest(name, document, f"{name}.md") for name, document in (documents | {"good": good.docling_json_zst}).items()]
    outcomes = {o.content_hash: o for o in WorkerChunker(pool, options).chunk_many(requests)}
    assert outcomes["good"].fault is None
    assert outcomes["good"].chunks == make_chunker(options).chunk(good)
    assert outcomes["empty"].fault is not None
    assert outcomes["empty"].fault.reason is Reason.EMPTY
    assert outcomes["broken"].fault is not None
    assert outcomes["broken"].fault.reason is Reason.CORRUPT
    assert "broken.md" in outcomes["broken"].fault.message
