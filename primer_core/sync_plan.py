"""A plan of a sync: what a dry run found, so that exactly this can be applied later. Values and their comparison; no I/O."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

PLAN_FORMAT = 1
"""Of the file. A file of another format is refused."""
NAMED_DIFFERENCES = 5


class PlanOperation(StrEnum):
    """What happens to a document. `touch` moves only metadata; `acl` only who may see it; `hold` is a delete that the guard holds."""

    ADD = "add"
    UPDATE = "update"
    RENAME = "rename"
    ACL = "acl"
    TOUCH = "touch"
    DELETE = "delete"
    HOLD = "hold"


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """One document. `old_path` is where a renamed one stood; `acl_error` why its permissions cannot be read; `reason` why it becomes a dead
    letter at once."""

    operation: PlanOperation
    path: str
    doc_id: str
    old_path: str | None = None
    fingerprint: str | None = None
    content_hash: str | None = None
    acl_id: str | None = None
    acl_error: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class PlannedRead:
    """An item that was read, or could not be (`reason`, `error`). `listed_fingerprint` and `version` are those of the listing, the other
    figures those of the read; sizes in bytes, times in nanoseconds since the epoch. `members` are those of a container, by path in it."""

    path: str
    listed_fingerprint: str
    version: str
    content_hash: str | None
    size: int
    fingerprint: str
    modified_ns: int
    mime: str | None
    lane: str
    reason: str | None
    error: str
    is_taken_apart: bool
    members: tuple["PlannedRead", ...] = ()


@dataclass(frozen=True, slots=True)
class PlannedAcl:
    """An ACL row that is set: the groups that may read under a scope."""

    acl_id: str
    scope: str
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Estimate:
    """What the sync will cost, estimated: tokens sent to the model, pages read by OCR, core-seconds for all of it. `basis` says what each
    figure rests on."""

    tokens_to_embed: int
    ocr_pages: int
    core_seconds: float
    basis: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SyncPlan:
    """A plan. `recipes` is index version → digest of its recipe; `cursor` where the feed stood, `listing_digest` what was listed (None
    where the feed told), `vanished_digest` the set of documents that are missing; `figures` the words of a sync."""

    format: int
    deployment: str
    source: str
    recipes: Mapping[str, str]
    made_at: str
    why_listed: str | None
    cursor: Mapping[str, Any] | None
    listing_digest: str | None
    problems: tuple[str, ...]
    verdict: str | None
    reasons: tuple[str, ...]
    vanished_digest: str | None
    figures: Mapping[str, int]
    steps: tuple[PlannedStep, ...]
    acls: tuple[PlannedAcl, ...]
    reads: tuple[PlannedRead, ...]
    estimate: Estimate

    def counts(self) -> dict[str, int]:
        """operation → how many documents."""
        return {operation.value: sum(step.operation is operation for step in self.steps) for operation in PlanOperation}


def plan_differences(plan: SyncPlan, found: SyncPlan) -> list[str]:
    """What differs between a plan and what the source and the catalog say now, in words, the first few by name; empty: nothing."""
    told = []
    if plan.cursor != found.cursor:
        told.append("another sync has moved the source's cursor on")
    before = {(step.path, step.doc_id): step for step in plan.steps}
    now = {(step.path, step.doc_id): step for step in found.steps}
    changed = sorted(key for key in before.keys() | now.keys() if before.get(key) != now.get(key))
    for key in changed[:NAMED_DIFFERENCES]:
        was, is_now = before.get(key), now.get(key)
        told.append(f"{key[0]}: planned {_said(was)}, now {_said(is_now)}")
    if len(changed) > NAMED_DIFFERENCES:
        told.append(f"{len(changed) - NAMED_DIFFERENCES} more documents")
    if set(plan.acls) != set(found.acls):
        scopes = sorted({acl.scope or "the source" for acl in set(plan.acls) ^ set(found.acls)})
        told.append(f"permissions of {', '.join(scopes[:NAMED_DIFFERENCES])}")
    if (plan.verdict, plan.vanished_digest) != (found.verdict, found.vanished_digest):
        told.append(f"deletes: planned {plan.verdict or 'none'}, now {found.verdict or 'none'}: {'; '.join(found.reasons) or 'none'}")
    if not told and plan.listing_digest != found.listing_digest:
        told.append("the listing shows other items")
    return told


def _said(step: PlannedStep | None) -> str:
    if step is None:
        return "nothing"
    content = "" if step.content_hash is None else f" {step.content_hash[:8]}"
    return f"{step.operation}{content}"
