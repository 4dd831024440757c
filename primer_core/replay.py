"""Replay: which documents can be taken through a stage again, judged from their manifests without reading one byte.

A stage needs the parts that the stage before it left. Where one is not kept, the source may still have the document.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from primer_core.failures import PrimerError
from primer_core.outcomes import Outcome
from primer_core.part_keys import DOCUMENT, ELEMENTS, SOURCE, chunk_set
from primer_core.stages import CHUNK, PARSE, STAGES, Stage
from primer_core.stored_states import DeletedReason, Manifest, PartKey


class ReplayVerdict(StrEnum):
    """What a replay can do for a document.

    REPLAYABLE: all parts that the stage needs are kept. SOURCE_RECEIPT: they are not, but the document is alive and its source can be
    asked for it again. BODY_MISSING: they are not, and nobody can be asked; so it is for a deleted document, whose bodies go.
    """

    REPLAYABLE = "replayable"
    SOURCE_RECEIPT = "source_receipt"
    BODY_MISSING = "body_missing"


@dataclass(frozen=True, slots=True)
class Selectors:
    """Which documents a replay is about: those that meet all that is given, of what the ledger says of an index version (the live one where
    none is named). `since` and `until` are of the time when the newest attempt on a document ended: from then on, and before then."""

    doc_ids: tuple[str, ...] = ()
    source_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    outcome: Outcome | None = None
    index_version: str | None = None

    def check(self) -> None:
        """Raise PrimerError where nothing is given, which would be all documents of a tenant."""
        if self == Selectors():
            raise PrimerError(
                "a replay of everything that a tenant has is refused; say which documents: by id, source, outcome, index version, "
                "since or until"
            )

    def meets(self, source_id: str, outcome: Outcome, ended_at: datetime) -> bool:
        """Whether an entry of the ledger meets all that is given, its document and index version aside."""
        return (
            self.source_id in (None, source_id)
            and self.outcome in (None, outcome)
            and (self.since is None or ended_at >= self.since)
            and (self.until is None or ended_at < self.until)
        )


class ReplayAction(StrEnum):
    """What is done for a document: a job at the stage's entry; its source asked for it again; or nothing, since a job of it is under way
    in that index version, whose end will be newer."""

    JOB = "job"
    FETCH = "fetch"
    UNDER_WAY = "under_way"


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept of a document: the manifest of its source bytes, that of the parse output which an index version uses, and the chunker
    of that version; whether the document is alive, and whether its source stands."""

    intake: Manifest
    output: Manifest
    chunker_version: str
    lives: bool
    source_stands: bool


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict; the parts that are missing ("part/sub-key"); and where some are, the nearest earlier stage that has all it needs."""

    verdict: ReplayVerdict
    missing: tuple[str, ...] = ()
    instead: str | None = None


def parts_needed(stage: Stage, chunker_version: str) -> Collection[PartKey]:
    """The parts that a stage reads: of the intake state for the parse, of the parse output's state for all others."""
    if stage is PARSE:
        return (SOURCE,)
    return (DOCUMENT, ELEMENTS) if stage is CHUNK else (chunk_set(chunker_version),)


def judge_replay(stage: Stage, kept: Kept) -> Judgement:
    """The verdict on one document for a stage. What was forgotten on request is never asked for again."""
    missing = _missing(stage, kept)
    named = tuple("/".join(filter(None, key)) for key in missing)
    if not kept.lives:
        return Judgement(ReplayVerdict.BODY_MISSING, named)
    if not missing:
        return Judgement(ReplayVerdict.REPLAYABLE)
    earlier = STAGES[: STAGES.index(stage)]
    instead = next((each.name for each in reversed(earlier) if not _missing(each, kept)), None)
    asks = kept.source_stands and not _is_forgotten(kept)
    return Judgement(ReplayVerdict.SOURCE_RECEIPT if asks else ReplayVerdict.BODY_MISSING, named, instead)


def _missing(stage: Stage, kept: Kept) -> list[PartKey]:
    manifest = kept.intake if stage is PARSE else kept.output
    return [key for key in parts_needed(stage, kept.chunker_version) if not manifest.has(*key)]


def _is_forgotten(kept: Kept) -> bool:
    entries = (*kept.intake.entries.values(), *kept.output.entries.values())
    return any(entry.deleted_reason is DeletedReason.RTBF for entry in entries)
