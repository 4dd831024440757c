import json
from dataclasses import replace

import pytest

from primer_core.recipe import ChunkerSpec, EmbeddingSpec, ParserSpec, Recipe

CHUNKER = ChunkerSpec("hybrid", "docling 2", 400, 15)
EMBEDDING = EmbeddingSpec("minilm", "1", 384, "passage: ", True, "f32", 256)


@pytest.mark.parametrize("change", [{"kind": "stable"}, {"library": "docling 3"}, {"max_tokens": 399}, {"overlap_percent": 14}])
def test_all_that_shapes_a_chunk_set_is_in_the_chunkers_version(change: dict[str, object]) -> None:
    assert replace(CHUNKER, **change).version != CHUNKER.version  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change",
    [
        {"model": "bge"},
        {"revision": "2"},
        {"dims": 385},
        {"prefix": ""},
        {"normalize": False},
        {"precision": "bf16"},
        {"max_tokens": 512},
    ],
)
def test_all_that_shapes_a_vector_is_in_the_models_version(change: dict[str, object]) -> None:
    assert replace(EMBEDDING, **change).version != EMBEDDING.version  # type: ignore[arg-type]


def test_a_recipe_comes_back_from_json_as_it_was() -> None:
    recipe = Recipe(ParserSpec("docling", "2"), CHUNKER, EMBEDDING)
    assert Recipe.from_json(json.loads(json.dumps(recipe.to_json()))) == recipe
