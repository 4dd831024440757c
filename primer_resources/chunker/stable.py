"""The `stable` chunker: cuts by content alone, as docling_stable says. Light to import."""

from primer_core.recipe import ChunkerKind
from primer_resources.chunker.docling_chunker import Cutter, DoclingChunker
from primer_resources.tokenizer import TokenCounter


class StableChunker(DoclingChunker):
    """Fine units, cut where their content says, small sections merged with their siblings: an edit changes few passages."""

    kind = ChunkerKind.STABLE
    rules = "cut=priority;siblings=merged;rules=1"

    def _open_cutter(self, counter: TokenCounter, limit: int) -> Cutter:
        from primer_resources.chunker.docling_stable import StableCutter

        return StableCutter(counter=counter, limit=limit)
