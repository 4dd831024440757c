"""The golden set's values: a question with its answer, and a canary."""

from dataclasses import dataclass

SCAN = "scan"
"""The format of pages that were read by OCR: their answers are compared with a tolerance."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the words of a document that answer it.

    `path` is a path of the golden set (see PathMap). A passage of a document in `identical_files` (the same bytes elsewhere) or `also_in`
    (other files that hold the same words) answers as well. `answer_value` is the cell beside the label that `answer` names. `groups` are
    those of the person who asks; None stands for the groups that may read the document. `format` only groups the figures, but for SCAN.
    """

    question_id: str
    text: str
    path: str
    answer: str
    format: str
    answer_value: str | None = None
    identical_files: tuple[str, ...] = ()
    also_in: tuple[str, ...] = ()
    groups: tuple[str, ...] | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path whose passages may answer, its own first."""
        return tuple(dict.fromkeys((self.path, *self.identical_files, *self.also_in)))


@dataclass(frozen=True, slots=True)
class Canary:
    """A document with known permissions: searched for with `text`, each of the groups `found_by` alone must find it, and none of those in
    `hidden_from` may."""

    path: str
    text: str
    found_by: tuple[str, ...]
    hidden_from: tuple[str, ...]
