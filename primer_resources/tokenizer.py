"""Counting tokens with a model's own tokenizer, without loading the model (no torch).

The chunker measures passages with it and the embedder refuses what is too long with it, so both mean the same count.
"""

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from primer_core.failures import PrimerError

CACHED_COUNTS = 8192
"""Counts kept a counter: a chunker asks for the same piece up to four times."""
_IDENTITY_HEX = 12


class TokenCounter(Protocol):
    """Measures strings as the model does."""

    @property
    def identity(self) -> str:
        """Name and content hash of the tokenizer: what shapes the counts."""
        ...

    @property
    def special_tokens(self) -> int:
        """Tokens that the model adds round every string."""
        ...

    def count(self, text: str) -> int:
        """Tokens of `text`, special ones not included."""
        ...


class FileTokenCounter:
    """A counter from a `tokenizer.json` (the fast tokenizer that transformers and sentence-transformers load themselves).

    Raises PrimerError where the file does not load.
    """

    def __init__(self, path: Path, name: str) -> None:
        from tokenizers import Tokenizer

        try:
            raw = path.read_bytes()
            self._tokenizer = Tokenizer.from_buffer(raw)
        except (OSError, ValueError) as error:
            raise PrimerError(
                f"tokenizer {path} of model {name} does not load ({error}); "
                "put back the model's own tokenizer.json, or choose another embedding_model"
            ) from error
        # The file may say "cut at 128" or "pad to 128"; a count is of the whole string.
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._identity = f"{name}@{hashlib.sha256(raw).hexdigest()[:_IDENTITY_HEX]}"
        self._special = int(self._tokenizer.num_special_tokens_to_add(is_pair=False))
        self._count = lru_cache(maxsize=CACHED_COUNTS)(self._count_anew)

    @property
    def identity(self) -> str:
        """Name and content hash of the tokenizer: what shapes the counts."""
        return self._identity

    @property
    def special_tokens(self) -> int:
        """Tokens that the model adds round every string."""
        return self._special

    def count(self, text: str) -> int:
        """Tokens of `text`, special ones not included."""
        return self._count(text)

    def _count_anew(self, text: str) -> int:
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids) if text else 0
