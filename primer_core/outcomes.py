"""Outcomes: how an attempt to index a document ended, and the receipt that says so."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from primer_core.stages import Operation


class Outcome(StrEnum):
    """How an attempt to index a document ended."""

    INDEXED = "indexed"
    EMPTY = "empty"
    """Indexed, and there is no passage in it."""
    COPY = "copy"
    """Indexed as a copy: the passages of its content's canonical document stand for it."""
    DELETED = "deleted"
    DEAD = "dead"
    """A dead letter; what was indexed before it stands."""


SUCCESSES = frozenset({Outcome.INDEXED, Outcome.EMPTY, Outcome.COPY})


@dataclass(frozen=True, slots=True)
class Receipt:
    """What one attempt says of one document in one index version.

    `attempt_ulid` orders the attempts: it is taken when the document's generation is opened for its write, or when it dies.
    `source_version` and `content_hash` are of the version that the attempt was on. `chunks` counts the document's own passages, so a
    copy has none. `reason` and `error` are of a dead letter. `job_id` is None where no job did it.
    """

    doc_id: str
    index_version: str
    source_id: str
    attempt_ulid: str
    outcome: Outcome
    source_version: str
    content_hash: str | None
    chunks: int
    reason: str | None
    error: str | None
    job_id: int | None
    ended_at: datetime


def outcome_of(operation: Operation, is_copy: bool, chunks: int) -> Outcome:
    """What a write that came to its end has made of a document, which then is a copy or not and has `chunks` passages of its own."""
    if operation is Operation.DELETE:
        return Outcome.DELETED
    if is_copy:
        return Outcome.COPY
    return Outcome.INDEXED if chunks else Outcome.EMPTY
