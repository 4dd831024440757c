"""An index version's chunker and model come from its own sealed recipe, whatever the settings would choose for a new one."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from primer_core.failures import PrimerError
from primer_core.recipe import ChunkerKind, Recipe, recipe_difference
from primer_resources.catalog.deployments import IndexVersion, VersionState
from primer_resources.chunker.base import ChunkRequest
from primer_resources.recipes import present_recipe, remake, vary
from primer_resources.settings import BUNDLED_MODEL, Settings
from primer_resources.toolkit import Toolkit
from tests.tiny_model import DIMS, make_tiny_model


def version(name: str, recipe: Recipe) -> IndexVersion:
    return IndexVersion(name, recipe, VersionState.BUILDING, datetime(2026, 1, 1, tzinfo=UTC))


@contextmanager
def toolkit(settings: Settings) -> Iterator[Toolkit]:
    made = Toolkit(settings)
    try:
        yield made
    finally:
        made.close()


def document() -> bytes:
    from docling_core.types.doc import DocItemLabel, DoclingDocument

    made = DoclingDocument(name="made")
    for n in range(40):
        made.add_text(label=DocItemLabel.TEXT, text=f"Paragraph {n} tells of the weather on island number {n} and of its harbour.")
    packed: bytes = pa.compress(made.model_dump_json().encode(), codec="zstd", asbytes=True)
    return packed


def settings_of(home: Path, **wanted: Any) -> Settings:
    return Settings(home=home, parse_workers=1, **wanted)


def test_versions_of_other_chunkers_and_models_work_in_one_process(tmp_path: Path, tiny_model: Path) -> None:
    plain, small = settings_of(tmp_path), settings_of(tmp_path, chunker="stable", chunk_max_tokens=64, embedding_model=str(tiny_model))
    versions = [version("v1", present_recipe(plain)), version("v2", present_recipe(small))]
    shutil.copytree(tiny_model, tmp_path / "models" / tiny_model.name)
    request = ChunkRequest("h", document(), "made.md")
    with toolkit(settings_of(tmp_path, chunk_max_tokens=100)) as tools:  # neither is what the settings would choose
        longest, widths = [], []
        for each in versions:
            made = tools.of(each)
            (outcome,) = made.chunker.chunk_many([request])
            longest.append(max(chunk.token_count for chunk in outcome.chunks))
            widths.append(made.embedder.embed([outcome.chunks[0].embed_text]).shape)
            assert made.embedder.spec == each.recipe.embedding
        assert 100 < longest[0] <= 400
        assert longest[1] <= 64
        assert widths == [(1, 384), (1, DIMS)]


def test_versions_of_one_model_share_what_is_loaded_of_it(tmp_path: Path) -> None:
    recipe = present_recipe(settings_of(tmp_path))
    with toolkit(settings_of(tmp_path)) as tools:
        one, other = tools.of(version("v1", recipe)), tools.of(version("v2", vary(recipe, settings_of(tmp_path), max_tokens=300)))
        assert one.embedder is other.embedder
        assert one.cache is other.cache


def test_a_sealed_model_that_is_nowhere_is_named_with_where_to_put_it(tmp_path: Path, tiny_model: Path) -> None:
    sealed = present_recipe(settings_of(tmp_path, embedding_model=str(tiny_model)))
    with pytest.raises(PrimerError, match=f"embedding model '{tiny_model.name}' .* put its folder into {tmp_path}/models"):
        remake("v2", sealed, settings_of(tmp_path))


def test_of_two_models_of_one_name_the_one_that_was_sealed_is_found(tmp_path: Path, tiny_model: Path) -> None:
    settings = settings_of(tmp_path, embedding_model=str(tiny_model))
    other = make_tiny_model(tmp_path / "other" / tiny_model.name, seed=2)
    sealed = present_recipe(settings_of(tmp_path, embedding_model=str(other)))
    with pytest.raises(PrimerError, match=r"index version v2 was made with embedding revision '\w+', and here it is"):
        remake("v2", sealed, settings)
    assert remake("v2", sealed, settings_of(tmp_path, embedding_model=str(tiny_model), models_folder=other.parent)).model.folder == other


@pytest.mark.parametrize(("part", "name"), [("parser", "version"), ("chunker", "library"), ("embedding", "revision")])
def test_what_the_installed_libraries_cannot_make_again_is_refused_with_the_difference(tmp_path: Path, part: str, name: str) -> None:
    settings = settings_of(tmp_path)
    present = present_recipe(settings)
    spec = getattr(present, part)
    sealed = replace(present, **{part: replace(spec, **{name: getattr(spec, name) + ";older"})})
    with pytest.raises(PrimerError) as caught:
        remake("v1", sealed, settings)
    assert recipe_difference(sealed, present) in str(caught.value)
    assert f"{part} {name}" in str(caught.value)


def test_a_chunker_of_an_unknown_kind_is_named(tmp_path: Path) -> None:
    sealed = present_recipe(settings_of(tmp_path))
    with pytest.raises(PrimerError, match="chunker 'windows' is unknown; known are hybrid, stable"):
        remake("v1", replace(sealed, chunker=replace(sealed.chunker, kind="windows")), settings_of(tmp_path))


def test_another_model_that_counts_alike_keeps_the_chunks_and_a_shorter_one_does_not(tmp_path: Path, tiny_model: Path) -> None:
    settings = settings_of(tmp_path)
    base = present_recipe(settings)
    varied = vary(base, settings, model=str(tiny_model))
    assert (varied.parser, varied.chunker) == (base.parser, base.chunker)
    assert (varied.embedding.model, varied.embedding.dims) == (tiny_model.name, DIMS)
    short = make_tiny_model(tmp_path / "short", positions=128)
    cut = vary(base, settings, model=str(short))
    assert (cut.chunker.max_tokens, cut.embedding.max_tokens) == (128, 128)


def test_another_model_that_counts_otherwise_gets_a_chunker_of_its_own(tmp_path: Path, tiny_model: Path) -> None:
    settings = settings_of(tmp_path)
    other = tmp_path / "others"
    shutil.copytree(tiny_model, other)
    (other / "tokenizer.json").write_bytes((other / "tokenizer.json").read_bytes() + b"\n")
    assert vary(present_recipe(settings), settings, model=str(other)).chunker.tokenizer == "others"


def test_another_chunker_keeps_the_model_and_has_its_own_limit_and_overlap_unless_chosen(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    base = present_recipe(settings)
    varied = vary(base, settings, chunker=ChunkerKind.STABLE)
    assert (varied.chunker.kind, varied.chunker.max_tokens, varied.chunker.overlap_percent) == ("stable", 340, 0)
    assert varied.embedding == base.embedding
    assert varied == present_recipe(settings_of(tmp_path, chunker="stable"))
    assert vary(varied, settings, chunker=ChunkerKind.HYBRID) == base
    chosen = vary(base, settings, chunker=ChunkerKind.STABLE, max_tokens=200, overlap_percent=10)
    assert (chosen.chunker.max_tokens, chosen.chunker.overlap_percent) == (200, 10)


def test_another_limit_keeps_the_model_and_so_its_vectors(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    base = present_recipe(settings)
    varied = vary(base, settings, max_tokens=200, overlap_percent=0)
    assert varied.embedding == base.embedding
    assert (varied.chunker.max_tokens, varied.chunker.overlap_percent, varied.chunker.tokenizer) == (200, 0, BUNDLED_MODEL)
    assert vary(base, settings) == base
