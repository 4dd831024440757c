"""Counting tokens with a model's own tokenizer."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primer_core.failures import PrimerError
from primer_resources.embedder.model import ModelFiles, resolve_model
from primer_resources.settings import BUNDLED_MODEL
from primer_resources.tokenizer import FileTokenCounter


@pytest.fixture(scope="module")
def files() -> ModelFiles:
    return resolve_model(BUNDLED_MODEL)


@pytest.fixture(scope="module")
def counter(files: ModelFiles) -> FileTokenCounter:
    assert files.tokenizer is not None
    return FileTokenCounter(files.tokenizer, files.name)


@pytest.fixture(scope="module")
def own(files: ModelFiles) -> Any:
    """The tokenizer as transformers, and so the model, loads it."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(str(files.folder), local_files_only=True)


def test_a_long_text_is_counted_to_its_end(counter: FileTokenCounter) -> None:
    # The file itself says "cut at 128, pad to 128".
    assert counter.count("word " * 1000) == 1000
    assert counter.count("word") == 1
    assert counter.count("") == 0
    assert counter.special_tokens == 2


@given(parts=st.lists(st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30), max_size=6))
def test_counts_are_those_of_the_models_own_tokenizer(counter: FileTokenCounter, own: Any, parts: list[str]) -> None:
    text = " ".join(parts)
    assert counter.count(text) + counter.special_tokens == len(own(text)["input_ids"])


def test_the_identity_changes_with_the_file(tmp_path: Path, files: ModelFiles, counter: FileTokenCounter) -> None:
    assert files.tokenizer is not None
    changed = tmp_path / "tokenizer.json"
    changed.write_text(files.tokenizer.read_text() + "\n")
    assert FileTokenCounter(changed, files.name).identity != counter.identity


@pytest.mark.parametrize("content", ["", "{}", "not json"])
def test_a_tokenizer_that_does_not_load_is_named(tmp_path: Path, content: str) -> None:
    broken = tmp_path / "tokenizer.json"
    broken.write_text(content)
    with pytest.raises(PrimerError, match=r"tokenizer .*tokenizer\.json of model mine does not load"):
        FileTokenCounter(broken, "mine")
