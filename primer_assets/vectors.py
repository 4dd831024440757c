"""Vectors of strings: from the cache where they are there, from the model where not."""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from primer_core.ids import embedding_key
from primer_core.micro_batch import MicroBatcher
from primer_resources.embedder.base import Vector
from primer_resources.settings import Settings
from primer_resources.toolkit import Tools

KEEP = 512
"""Vectors put into the cache in one commit: a commit costs about 18 ms whatever is in it, and a crash loses at most these."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """Vectors by key, shape (dims,) each, and the keys that the model had to be asked for."""

    vectors: dict[str, Vector]
    computed: frozenset[str]


def vector_key(tools: Tools, text: str) -> str:
    """The cache key of a string under the tools' model."""
    return embedding_key(tools.embedder.spec.version, text)


def embed_texts(tools: Tools, settings: Settings, texts: Mapping[str, str]) -> Embedded:
    """Vectors of `texts` (key → exact string), the missing ones embedded in micro-batches sorted by length. Raises Deferred."""
    vectors = tools.cache.get(texts)
    missing = sorted((key for key in texts if key not in vectors), key=lambda key: (len(texts[key]), key))
    fresh: dict[str, Vector] = {}
    for batch in _micro_batches(missing, settings):
        fresh.update(zip(batch, tools.embedder.embed([texts[key] for key in batch]), strict=True))
        if len(fresh) >= KEEP:
            tools.cache.put(fresh)
            vectors.update(fresh)
            fresh = {}
    if fresh:
        tools.cache.put(fresh)
        vectors.update(fresh)
    return Embedded(vectors, frozenset(missing))


def _micro_batches(keys: Iterable[str], settings: Settings) -> Iterator[list[str]]:
    batcher = MicroBatcher[str](settings.micro_batch_size, settings.micro_batch_wait.total_seconds())
    for key in keys:
        now = time.monotonic()
        if batch := batcher.take_due(now):
            yield batch
        if batch := batcher.add(key, now):
            yield batch
    if batch := batcher.flush():
        yield batch
