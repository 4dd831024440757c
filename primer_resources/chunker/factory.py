"""Makes chunkers from plain values, which a worker process can be sent, and those values from the settings or a sealed spec."""

from dataclasses import dataclass
from pathlib import Path

from primer_core.failures import PrimerError
from primer_core.recipe import ChunkerKind, ChunkerSpec
from primer_resources.chunker.base import Chunker
from primer_resources.chunker.docling_chunker import DoclingChunker
from primer_resources.chunker.hybrid import HybridChunker
from primer_resources.chunker.stable import StableChunker
from primer_resources.embedder.model import ModelFiles, models_named, open_tokenizer, tokenizer_file
from primer_resources.settings import Settings

_CHUNKERS: dict[ChunkerKind, type[DoclingChunker]] = {ChunkerKind.HYBRID: HybridChunker, ChunkerKind.STABLE: StableChunker}


@dataclass(frozen=True, slots=True)
class ChunkerOptions:
    """All that a chunker is made from. `tokenizer` is the tokenizer.json of the model `tokenizer_name`."""

    kind: ChunkerKind
    tokenizer: Path
    tokenizer_name: str
    max_tokens: int
    overlap_percent: int


def make_chunker(options: ChunkerOptions) -> Chunker:
    """The chunker. Raises PrimerError where its tokenizer does not load, or where the limit leaves no room for text."""
    counter = open_tokenizer(options.tokenizer, options.tokenizer_name)
    return _CHUNKERS[options.kind](counter, options.max_tokens, options.overlap_percent)


def options_for(kind: ChunkerKind, files: ModelFiles, max_tokens: int, overlap_percent: int) -> ChunkerOptions:
    """A chunker for a model: the model's own tokenizer, and the model's limit where it is less than `max_tokens`."""
    tokenizer, name = tokenizer_file(files)
    return ChunkerOptions(kind, tokenizer, name, min(max_tokens, files.max_tokens(max_tokens)), overlap_percent)


def options_of(spec: ChunkerSpec, settings: Settings) -> ChunkerOptions:
    """What comes nearest here to a sealed spec: its kind, limit and overlap, with the tokenizer of the model that it names.

    Raises PrimerError where the kind is unknown or no such model is here.
    """
    try:
        kind = ChunkerKind(spec.kind)
    except ValueError as error:
        raise PrimerError(f"chunker {spec.kind!r} is unknown; known are {', '.join(ChunkerKind)}") from error
    found = [
        ChunkerOptions(kind, *tokenizer_file(files), spec.max_tokens, spec.overlap_percent)
        for files in models_named(spec.tokenizer, settings)
    ]
    return next((options for options in found if make_chunker(options).spec == spec), found[0])
