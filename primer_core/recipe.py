"""Recipes: what an index version is made with. A version string names everything that shapes the output."""

import hashlib
import json
import re
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

_TOKENIZER = re.compile(r"(?:^|;)tokenizer=(.+?)@[0-9a-f]+(?:;|$)")


class ChunkerKind(StrEnum):
    """HYBRID is Docling's HybridChunker, refined; STABLE cuts by content alone, so that an edit changes few passages."""

    HYBRID = "hybrid"
    STABLE = "stable"


MAX_TOKENS = {ChunkerKind.HYBRID: 400, ChunkerKind.STABLE: 340}
"""The limit where nobody chooses one: for both, 340 tokens of a passage's own (docs/adr/0014-the-stable-chunker.md)."""
OVERLAP_PERCENT = {ChunkerKind.HYBRID: 15, ChunkerKind.STABLE: 0}
"""The overlap where nobody chooses one. Measured, it found nothing more and cost 6 to 10 % more tokens an edit."""


@dataclass(frozen=True, slots=True)
class ParserSpec:
    """A parser: its engine, the versions of the libraries behind it and its options, in one version string."""

    engine: str
    version: str


@dataclass(frozen=True, slots=True)
class ChunkerSpec:
    """A chunker. `max_tokens` bounds the final embed string, special tokens included; `overlap_percent` of it may be
    sentences of the previous chunk."""

    kind: str
    library: str
    max_tokens: int
    overlap_percent: int

    @property
    def tokenizer(self) -> str:
        """The model whose tokenizer measures the passages; "" where the spec names none."""
        found = _TOKENIZER.search(self.library)
        return found[1] if found else ""

    @property
    def version(self) -> str:
        """Everything that shapes the chunk set."""
        return f"{self.kind};{self.library};max_tokens={self.max_tokens};overlap={self.overlap_percent}%"


@dataclass(frozen=True, slots=True)
class EmbeddingSpec:
    """An embedding model. `prefix` is put before every passage; `max_tokens` is where the model cuts its input."""

    model: str
    revision: str
    dims: int
    prefix: str
    normalize: bool
    precision: str
    max_tokens: int

    @property
    def version(self) -> str:
        """Everything that shapes a vector but the string itself."""
        return (
            f"{self.model}@{self.revision};dims={self.dims};prefix={self.prefix!r};normalize={self.normalize};"
            f"precision={self.precision};max_tokens={self.max_tokens}"
        )


@dataclass(frozen=True, slots=True)
class Recipe:
    """What an index version is made with. Sealed when the version is made."""

    parser: ParserSpec
    chunker: ChunkerSpec
    embedding: EmbeddingSpec

    @property
    def digest(self) -> str:
        """A short name for exactly this recipe."""
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()[:32]

    def to_json(self) -> dict[str, Any]:
        """The recipe as plain JSON, for the catalog."""
        return asdict(self)

    @staticmethod
    def from_json(data: dict[str, Any]) -> "Recipe":
        """The recipe back from the catalog's JSON."""
        return Recipe(ParserSpec(**data["parser"]), ChunkerSpec(**data["chunker"]), EmbeddingSpec(**data["embedding"]))


def recipe_difference(sealed: Recipe, present: Recipe, here: str = "here it is") -> str:
    """What differs between a sealed recipe and the present one, in words; the parts and fields that are equal are left out.

    `here` says where the present one comes from."""
    differences = []
    then, now = sealed.to_json(), present.to_json()
    for part in then:
        for name, value in then[part].items():
            if now[part][name] != value:
                differences.append(f"{part} {name} {value!r}, and {here} {now[part][name]!r}")
    return "; ".join(differences) or "the same recipe"
