"""Makes the chunker that the settings ask for."""

from primer_resources.chunker.hybrid import HybridChunker
from primer_resources.embedder.model import open_counter, resolve_model
from primer_resources.settings import Settings


def open_chunker(settings: Settings) -> HybridChunker:
    """The chunker of a deployment: the model's own tokenizer, and the model's limit where it is less than the setting's.

    Raises PrimerError where the model or its tokenizer does not load, or where the limit leaves no room for text.
    """
    files = resolve_model(settings.embedding_model)
    limit = min(settings.chunk_max_tokens, files.max_tokens(settings.chunk_max_tokens))
    return HybridChunker(open_counter(files), limit, settings.chunk_overlap_percent)
