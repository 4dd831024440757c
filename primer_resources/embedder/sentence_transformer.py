"""The embedder that runs a sentence-transformers model in process. Torch is loaded at the first `embed`, not when this is imported."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from primer_core.failures import PrimerError, SystemFault
from primer_core.recipe import EmbeddingSpec
from primer_resources.embedder.base import Vector
from primer_resources.embedder.model import ModelFiles, describe_model, offline, open_counter
from primer_resources.memory import give_back_memory
from primer_resources.settings import Settings

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_SHOWN = 60


class SentenceTransformerEmbedder:
    """Strings to normalised fp32 vectors, on the CPU.

    `batch` strings go through the model at a time, sorted by length so that little is padded; `threads` is torch's, 0 leaves its choice.
    """

    def __init__(self, files: ModelFiles, max_tokens: int, batch: int = 16, threads: int = 0) -> None:
        self._files = files
        self._spec = describe_model(files, max_tokens)
        self._counter = open_counter(files)
        self._batch = batch
        self._threads = threads
        self._model: SentenceTransformer | None = None

    @property
    def spec(self) -> EmbeddingSpec:
        """What shapes the vectors."""
        return self._spec

    def embed(self, texts: Sequence[str]) -> Vector:
        """Vectors of passages, shape (len(texts), dims), in the order given.

        Raises SystemFault where a string is longer than the model takes: nothing is ever cut in silence.
        Raises PrimerError where the model does not load.
        """
        return self._encode([self._spec.prefix + text for text in texts])

    def embed_query(self, text: str) -> Vector:
        """Vector of a query, shape (dims,). A query longer than the model takes keeps its beginning, since people may paste anything."""
        whole = self._files.query_prefix + text
        if self._length(whole) > self._spec.max_tokens:
            whole = self._shorten(whole)
        vector: Vector = self._encode([whole])[0]
        return vector

    def _encode(self, texts: Sequence[str]) -> Vector:
        if not texts:
            return np.empty((0, self._spec.dims), dtype=np.float32)
        lengths = [self._length(text) for text in texts]
        for text, length in zip(texts, lengths, strict=True):
            if length > self._spec.max_tokens:
                raise SystemFault(
                    f"a string of {length} tokens was sent to {self._spec.model}, which takes {self._spec.max_tokens} "
                    f"({text[:_SHOWN]!r}…); chunk again with a chunker made for this model"
                )
        order = sorted(range(len(texts)), key=lambda n: (lengths[n], n))
        model = self._load()
        found = model.encode(
            [texts[n] for n in order],
            batch_size=self._batch,
            normalize_embeddings=True,
            convert_to_numpy=True,
            show_progress_bar=False,
            prompt="",
        )
        give_back_memory()
        if found.shape != (len(texts), self._spec.dims):
            raise SystemFault(
                f"{self._spec.model} gave vectors of shape {found.shape} where ({len(texts)}, {self._spec.dims}) was due; "
                "its folder's configuration is wrong"
            )
        vectors = np.empty((len(texts), self._spec.dims), dtype=np.float32)
        vectors[order] = found
        return vectors

    def _length(self, text: str) -> int:
        if self._files.tokenizer is None:
            # The counter is another model's; only the loaded model can say what it would cut.
            return len(self._load().tokenizer(text)["input_ids"])
        return self._counter.count(text) + self._counter.special_tokens

    def _shorten(self, text: str) -> str:
        low, high = 0, len(text)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._length(text[:middle]) <= self._spec.max_tokens else (low, middle - 1)
        return text[:low]

    def _load(self) -> "SentenceTransformer":
        if self._model is not None:
            return self._model
        offline()
        import torch
        from safetensors import SafetensorError
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging as transformers_logging

        transformers_logging.disable_progress_bar()  # it writes over a person's own progress bar and into every log
        if self._threads:
            torch.set_num_threads(self._threads)
        try:
            model = SentenceTransformer(str(self._files.folder), device="cpu", local_files_only=True)
        except (OSError, ValueError, KeyError, RuntimeError, ImportError, AttributeError, TypeError, SafetensorError) as error:
            first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise PrimerError(
                f"embedding model {self._spec.model} in {self._files.folder} does not load ({first}); "
                "copy the model again or set another embedding_model"
            ) from error
        model.max_seq_length = self._spec.max_tokens
        self._model = model
        return model


def open_embedder(settings: Settings, files: ModelFiles, max_tokens: int) -> SentenceTransformerEmbedder:
    """The embedder of a model and its limit, with the settings' batches and threads, which shape no vector."""
    return SentenceTransformerEmbedder(files, max_tokens, settings.embedding_batch, settings.embedding_threads)
