"""Why a question was not answered: how far the answer came on its way from the file to the first passages."""

from dataclasses import dataclass
from enum import StrEnum

DEPTH = 100
"""Passages looked through for an answer that is not among the first k: it was found, and ranked too low."""


class Cause(StrEnum):
    """What a miss is put down to: the first step that the answer did not pass."""

    NO_DOCUMENT = "no_document"
    """No source has a document at that path."""
    NOT_INDEXED = "not_indexed"
    """The document does not stand in the index version: a dead letter, held back, or not done yet."""
    PARSE = "parse"
    """The answer is not in what was read from the document."""
    CHUNK = "chunk"
    """It was read, and no passage holds it in one piece."""
    RANKING = "ranking"
    """A passage holds it, among the first DEPTH and not among the first k."""
    MODEL = "model"
    """A passage holds it, and neither index brings it among the first DEPTH."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """How far the answer came, in any of the documents that may give it. `deep_rank` is where it stands among the first DEPTH."""

    is_known: bool
    is_indexed: bool = False
    in_elements: bool = False
    in_passages: bool = False
    deep_rank: int | None = None

    @property
    def cause(self) -> Cause:
        """The first step that it did not pass."""
        if not self.is_known:
            return Cause.NO_DOCUMENT
        if self.deep_rank is not None:
            return Cause.RANKING
        if not self.is_indexed:
            return Cause.NOT_INDEXED
        if self.in_passages:
            return Cause.MODEL
        return Cause.CHUNK if self.in_elements else Cause.PARSE
