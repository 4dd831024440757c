"""Makes the chunker that the settings ask for."""

from primer_resources.chunker.hybrid import HybridChunker
from primer_resources.embedder.model import open_counter, resolve_model
from primer_resources.settings import Settings


def open_chunker(settings: Settings) -> HybridChunker:
    """The chunker of a deployment: the model's own tokenizer, and the model's limit where it is less than the setting's.

    Raises PrimerError where the model or its tokenizer does not load, or where the limit leaves no room for text.
    """
    return make_chunker(settings.embedding_model, settings.chunk_max_tokens, settings.chunk_overlap_percent)


def make_chunker(model: str, max_tokens: int, overlap_percent: int) -> HybridChunker:
    """The same from plain values, as a worker process gets them."""
    files = resolve_model(model)
    return HybridChunker(open_counter(files), min(max_tokens, files.max_tokens(max_tokens)), overlap_percent)
