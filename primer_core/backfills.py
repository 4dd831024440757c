"""Backfills: why an index version is filled from what is there, how fast, and how far it is. Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from primer_core.failures import PrimerError
from primer_core.recipe import Recipe, recipe_difference
from primer_core.stages import CHUNK, EMBED, PARSE, WRITE

BURST = timedelta(seconds=10)
"""What a backfill that was held up may make good at once, at its own rate."""


class BackfillReason(StrEnum):
    """Which part of the recipe is another one than the live version's: the earliest stage that has to be gone through again."""

    PARSER = "parser"
    CHUNKER = "chunker"
    EMBEDDING_MODEL = "embedding_model"


class BackfillState(StrEnum):
    """Where a backfill stands. Finished and cancelled are final."""

    RUNNING = "running"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    FINISHED = "finished"


def reason_of(live: Recipe, target: Recipe) -> BackfillReason:
    """The reason that two recipes make: their earliest part that differs. Raises PrimerError where none does."""
    if target.parser != live.parser:
        return BackfillReason.PARSER
    if target.chunker != live.chunker:
        return BackfillReason.CHUNKER
    if target.embedding != live.embedding:
        return BackfillReason.EMBEDDING_MODEL
    raise PrimerError("the two recipes are the same, so there is nothing to fill")


def check_reason(reason: BackfillReason, live: Recipe, target: Recipe, name: str) -> None:
    """Raise PrimerError where a backfill for this reason would have to do more, or less, than the reason says."""
    needed = reason_of(live, target)
    if needed is not reason:
        raise PrimerError(
            f"the recipe of {name} differs in more or less than --reason {reason} says: live has {recipe_difference(live, target)}; "
            f"say --reason {needed}"
        )


def is_remade(stage: str, live: Recipe, target: Recipe) -> bool:
    """Whether the target goes through a stage (by name) in another way than live does: what failed there may pass now."""
    if stage == PARSE.name:
        return target.parser != live.parser
    if stage == CHUNK.name:
        return target.parser != live.parser or target.chunker != live.chunker
    return stage in (EMBED.name, WRITE.name)


@dataclass(frozen=True, slots=True)
class Allowance:
    """How many documents may be taken up now, and what is kept so that the next answer counts them."""

    documents: int
    since: datetime


def allowance(rate: float | None, since: datetime, now: datetime, limit: int) -> Allowance:
    """A token bucket: documents a second since `since`, at most BURST's worth, at most `limit`. No rate is no bound."""
    if rate is None:
        return Allowance(limit, now)
    begin = max(since, now - BURST)
    earned = int((now - begin).total_seconds() * rate)
    return Allowance(min(limit, max(0, earned)), begin)


def spent(rate: float | None, since: datetime, documents: int) -> datetime:
    """From when on documents are earned again, after so many were taken up."""
    return since if rate is None else since + timedelta(seconds=documents / rate)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a backfill is, in documents: `total` is what stood when it was begun, `done` and `failed` have come to their end."""

    total: int
    done: int
    failed: int

    def eta(self, begun_at: datetime, now: datetime) -> timedelta | None:
        """How much longer it takes at the pace so far; None where nothing has come to its end yet."""
        ended, elapsed = self.done + self.failed, now - begun_at
        left = max(0, self.total - ended)
        if not left:
            return timedelta(0)
        return elapsed / ended * left if ended else None
