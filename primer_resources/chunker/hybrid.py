"""The `hybrid` chunker: Docling's HybridChunker, as refined in docling_hybrid. Light to import."""

from primer_core.recipe import ChunkerKind
from primer_resources.chunker.docling_chunker import Cutter, DoclingChunker
from primer_resources.tokenizer import TokenCounter


class HybridChunker(DoclingChunker):
    """Structure first, peers merged."""

    kind = ChunkerKind.HYBRID
    rules = "merge=content;rules=1"

    def _open_cutter(self, counter: TokenCounter, limit: int) -> Cutter:
        from primer_resources.chunker.docling_hybrid import PassageChunker, PlainTokenizer

        return PassageChunker(tokenizer=PlainTokenizer(counter=counter, limit=limit))
