"""The embedder that runs the bundled model: order, length, and what it refuses."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from primer_core.failures import PrimerError, SystemFault
from primer_resources.embedder.model import resolve_model
from primer_resources.embedder.sentence_transformer import SentenceTransformerEmbedder
from primer_resources.settings import BUNDLED_MODEL


@pytest.fixture(scope="module")
def embedder() -> SentenceTransformerEmbedder:
    return SentenceTransformerEmbedder(resolve_model(BUNDLED_MODEL), max_tokens=400, batch=4, threads=1)


def test_vectors_come_back_in_the_order_of_the_strings(embedder: SentenceTransformerEmbedder) -> None:
    texts = [("word " * length).strip() + f" {length}" for length in (50, 1, 200, 3, 120, 2, 7)]
    together = embedder.embed(texts)
    assert together.shape == (7, 384)
    assert together.dtype == np.float32
    alone = np.stack([embedder.embed([text])[0] for text in texts])
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_vectors_have_length_one(embedder: SentenceTransformerEmbedder) -> None:
    np.testing.assert_allclose(np.linalg.norm(embedder.embed(["one", "another string"]), axis=1), 1, atol=1e-5)


def test_no_strings_are_no_vectors(embedder: SentenceTransformerEmbedder) -> None:
    assert embedder.embed([]).shape == (0, 384)


def test_the_words_beyond_256_tokens_count(embedder: SentenceTransformerEmbedder) -> None:
    start = "river " * 300
    one, other = embedder.embed([start + "bread and butter", start + "orbital mechanics"])
    assert float(one @ other) < 0.9999


def test_a_string_over_the_limit_is_refused_with_its_length(embedder: SentenceTransformerEmbedder) -> None:
    with pytest.raises(SystemFault, match="a string of 514 tokens was sent to all-MiniLM-L6-v2, which takes 512"):
        embedder.embed(["fine", "word " * 512])


def test_a_long_query_keeps_its_beginning(embedder: SentenceTransformerEmbedder) -> None:
    long = embedder.embed_query("river " * 510 + "bread " * 500)
    np.testing.assert_allclose(long, embedder.embed_query("river " * 510), atol=1e-5)


def test_alike_is_nearer_than_unlike(embedder: SentenceTransformerEmbedder) -> None:
    cat, stock = embedder.embed(["A cat sleeps on the sofa.", "Shares fell on Monday."])
    query = embedder.embed_query("Where is the kitten lying?")
    assert float(query @ cat) > float(query @ stock) + 0.2


def test_passages_and_queries_get_their_prefixes(embedder: SentenceTransformerEmbedder) -> None:
    files = replace(resolve_model(BUNDLED_MODEL), passage_prefix="passage: ", query_prefix="query: ")
    prefixed = SentenceTransformerEmbedder(files, max_tokens=400)
    assert prefixed.spec.version != embedder.spec.version
    np.testing.assert_allclose(prefixed.embed(["a river"]), embedder.embed(["passage: a river"]), atol=1e-5)
    np.testing.assert_allclose(prefixed.embed_query("a river"), embedder.embed_query("query: a river"), atol=1e-5)


def test_weights_that_do_not_load_are_named(tmp_path: Path) -> None:
    target = tmp_path / "my-model"
    shutil.copytree(resolve_model(BUNDLED_MODEL).folder, target, ignore=shutil.ignore_patterns("*.safetensors"))
    (target / "model.safetensors").write_bytes(b"not weights at all")
    broken = SentenceTransformerEmbedder(resolve_model(str(target)), max_tokens=256)
    with pytest.raises(PrimerError, match=r"embedding model my-model in .* does not load \(.*\); copy the model again") as caught:
        broken.embed(["anything"])
    assert "\n" not in str(caught.value)


def test_a_width_that_is_not_the_models_is_refused() -> None:
    wrong = SentenceTransformerEmbedder(replace(resolve_model(BUNDLED_MODEL), dims=100), max_tokens=256)
    with pytest.raises(SystemFault, match="vectors of shape"):
        wrong.embed(["anything"])


def test_a_model_without_tokenizer_json_is_asked_itself_what_is_too_long(tmp_path: Path, embedder: SentenceTransformerEmbedder) -> None:
    source = resolve_model(BUNDLED_MODEL).folder
    target = tmp_path / "my-model"
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.safetensors", "tokenizer.json"))
    (target / "model.safetensors").symlink_to(source / "model.safetensors")
    bare = SentenceTransformerEmbedder(resolve_model(str(target)), max_tokens=512)
    np.testing.assert_allclose(bare.embed(["a river"]), embedder.embed(["a river"]), atol=1e-5)
    with pytest.raises(SystemFault, match="a string of 514 tokens"):
        bare.embed(["word " * 512])
