"""Which model is meant, and what its files say of it."""

import json
import shutil
from pathlib import Path

import pytest

from primer_core.failures import PrimerError
from primer_resources.embedder.model import check_model, describe_model, open_counter, resolve_model
from primer_resources.settings import BUNDLED_MODEL, Settings


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the bundled model's folder with 1 kB of weights: enough to be described, not to be loaded."""
    source = resolve_model(BUNDLED_MODEL).folder
    target = tmp_path / "my-model"
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.safetensors", "README.md"))
    (target / "model.safetensors").write_bytes(b"w" * 1000)
    return target


def test_the_bundled_model_is_described_from_its_files() -> None:
    spec = describe_model(resolve_model(BUNDLED_MODEL), 400)
    assert (spec.model, spec.dims, spec.normalize, spec.precision, spec.prefix) == (BUNDLED_MODEL, 384, True, "fp32", "")
    assert spec.max_tokens == 512
    assert len(spec.revision) == 16


def test_the_limit_is_the_makers_or_all_that_the_model_takes() -> None:
    files = resolve_model(BUNDLED_MODEL)
    assert (files.trained_tokens, files.positions) == (256, 512)
    assert [files.max_tokens(wanted) for wanted in (100, 256, 400, 512, 9000)] == [256, 256, 512, 512, 512]


def test_a_folder_is_named_by_its_last_part_and_not_by_this_machine(folder: Path) -> None:
    spec = describe_model(resolve_model(str(folder)), 400)
    assert spec.model == "my-model"
    assert str(folder.parent) not in spec.version


@pytest.mark.parametrize("changed", ["model.safetensors", "1_Pooling/config.json", "tokenizer.json"])
def test_any_file_that_shapes_a_vector_changes_the_revision(folder: Path, changed: str) -> None:
    before = describe_model(resolve_model(str(folder)), 400).revision
    (folder / changed).write_bytes((folder / changed).read_bytes() + b"\n")
    assert describe_model(resolve_model(str(folder)), 400).revision != before


def test_prefixes_are_read_from_the_models_own_file(folder: Path) -> None:
    prompts = {"prompts": {"query": "query: ", "passage": "passage: "}}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    files = resolve_model(str(folder))
    assert (files.passage_prefix, files.query_prefix) == ("passage: ", "query: ")
    assert describe_model(files, 400).prefix == "passage: "


@pytest.mark.parametrize("name", ["no/such/folder", "./nowhere", "/nowhere/at/all", "", "someone/a-model-nobody-has", "not a name!"])
def test_a_model_that_is_nowhere_is_named_with_the_fix(name: str) -> None:
    with pytest.raises(PrimerError) as caught:
        resolve_model(name)
    assert repr(name) in str(caught.value)
    assert f"set embedding_model to {BUNDLED_MODEL}" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("file", "content"), [("modules.json", None), ("config.json", None), ("config.json", "{broken"), ("modules.json", "{}")]
)
def test_a_folder_that_is_not_whole_is_named_with_the_file(folder: Path, file: str, content: str | None) -> None:
    if content is None:
        (folder / file).unlink()
    else:
        (folder / file).write_text(content)
    with pytest.raises(PrimerError, match=f"not a whole sentence-transformers folder: .*{file}"):
        resolve_model(str(folder))


def test_a_model_without_a_tokenizer_is_a_warning_and_is_measured_with_the_bundled_one(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    warnings = check_model(Settings(embedding_model=str(folder), chunk_max_tokens=256))
    assert len(warnings) == 1
    assert "my-model has no tokenizer.json" in warnings[0]
    assert open_counter(resolve_model(str(folder))).identity.startswith(BUNDLED_MODEL)


def test_a_tokenizer_that_does_not_load_refuses_the_start(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(PrimerError, match=r"tokenizer .*tokenizer\.json of model my-model does not load"):
        check_model(Settings(embedding_model=str(folder)))


def test_a_limit_over_what_the_model_takes_is_a_warning() -> None:
    assert any("512 tokens" in warning for warning in check_model(Settings(chunk_max_tokens=600)))


def test_the_measured_default_is_no_warning_and_another_model_over_its_makers_limit_is(folder: Path) -> None:
    assert check_model(Settings()) == ()
    assert any("256 tokens that my-model was set to" in warning for warning in check_model(Settings(embedding_model=str(folder))))


def test_the_keys_of_vectors_outlive_another_chunk_limit() -> None:
    files = resolve_model(BUNDLED_MODEL)
    assert describe_model(files, 400).version == describe_model(files, 300).version
