"""The reader's gate: which index rows count, as of the moment a search began.

Two indexes and the catalog never commit together. Rows are immutable, a document flips from one generation to the next
in one transaction, and removed rows stay for a grace longer than any query; so the state as of the start of a search is
always whole, whatever is being written meanwhile.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Holding:
    """What a document is in the indexes at one generation: the content, and whether it is a copy, whose rows another document has."""

    content_hash: str | None = None
    is_copy: bool = False


@dataclass(frozen=True, slots=True)
class DocumentView:
    """What one catalog look-up says of a document: its generations, when they flipped and what they hold, and whether it is hidden."""

    doc_id: str
    generation: int
    previous_generation: int
    flipped_at: datetime | None
    previous_flipped_at: datetime | None
    hidden: bool
    holding: Holding = Holding()
    previous_holding: Holding = Holding()


class TwoFlips(Exception):
    """A document flipped twice since the search began: neither generation is certain, so the search must start again."""


def generation_as_of(view: DocumentView, started_at: datetime) -> int:
    """The generation that was current when the search began. Raises TwoFlips where that can no longer be known."""
    if view.flipped_at is None or view.flipped_at <= started_at:
        return view.generation
    if view.previous_flipped_at is not None and view.previous_flipped_at > started_at:
        raise TwoFlips(view.doc_id)
    return view.previous_generation


def holding_as_of(view: DocumentView, started_at: datetime) -> Holding:
    """What the document was in the indexes when the search began; nothing before its first generation, and again once it was deleted.
    Raises TwoFlips as `generation_as_of` does."""
    generation = generation_as_of(view, started_at)
    if generation == 0:
        return Holding()
    return view.holding if generation == view.generation else view.previous_holding


def is_visible(added_gen: int, dead_gens: Mapping[str, int], row_id: str, generation: int) -> bool:
    """Whether a row counts at `generation`: added by then, and not purged by then. `dead_gens` maps row_id → dead_gen."""
    if added_gen > generation:
        return False
    dead = dead_gens.get(row_id)
    return dead is None or dead > generation
