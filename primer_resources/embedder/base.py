"""The embedder and embedding cache ports."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from primer_core.recipe import EmbeddingSpec
from primer_core.upkeep import UpkeepResult

Vector = NDArray[np.float32]
"""One vector of shape (dims,), or several of shape (n, dims)."""


class Embedder(Protocol):
    """Turns strings into vectors."""

    @property
    def spec(self) -> EmbeddingSpec:
        """What shapes the vectors."""
        ...

    def embed(self, texts: Sequence[str]) -> Vector:
        """Vectors of passages, shape (len(texts), dims), in the order given. Raises Deferred when the service is down."""
        ...

    def embed_query(self, text: str) -> Vector:
        """Vector of a query, shape (dims,)."""
        ...


@dataclass(frozen=True, slots=True)
class CacheSize:
    """How much a cache holds: vectors (repeats counted) and bytes of its files."""

    vectors: int
    bytes: int


class EmbeddingCache(Protocol):
    """Vectors by key (ids.embedding_key), for one model."""

    def get(self, keys: Iterable[str]) -> dict[str, Vector]:
        """The vectors that are there, shape (dims,) each; keys that are not there are left out."""
        ...

    def known(self, keys: Iterable[str]) -> set[str]:
        """The keys that are there; no vector is read."""
        ...

    def put(self, vectors: Mapping[str, Vector]) -> None:
        """Keep vectors. Repeating a key is harmless."""
        ...

    def delete(self, keys: Iterable[str]) -> None:
        """Forget vectors; keys that are not there are passed over."""
        ...

    def size(self) -> CacheSize:
        """How much is held."""
        ...

    def upkeep(self, now: datetime) -> UpkeepResult:
        """Compact and index if due. Apart from the write path; a failure is in the result, never raised."""
        ...
