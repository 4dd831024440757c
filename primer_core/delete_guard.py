"""The delete guard: whether what a listing no longer shows may be deleted.

An unmounted share looks like an empty folder, and a broken service answers with an empty page: both would delete everything.
So an incomplete listing deletes nothing, and a complete one that would delete much must be confirmed.

| listing | deletes | verdict |
|---|---|---|
| incomplete | any | REFUSE: nothing is deleted, and an earlier hold stands as it was |
| complete | at most the allowance | APPLY |
| complete | more than the allowance | HOLD, until the next complete listing would delete the same set or an operator approves that set |
| complete | with documents whose deletes an operator rejected | HOLD, until an operator approves that set |
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

ALLOWED_DOCUMENTS = 10
"""Deletes that are never held. Lower, and a person who tidies a small folder waits for a second listing; higher, and a small source
can lose everything at once."""

ALLOWED_PERCENT = 5
"""Share of the known documents that is never held. Higher, and one unmounted sub-folder of twenty passes; lower, and the ordinary
turnover of a large source is held every day, so that people approve without looking."""


class Verdict(StrEnum):
    """What to do with the deletes of a listing."""

    APPLY = "apply"
    HOLD = "hold"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class DeleteDecision:
    """A verdict with its reasons for people. `held` is the digest to remember for the source: the set that the next complete
    listing must agree with; None when nothing is held, or what is held waits for a person and for no listing."""

    verdict: Verdict
    reasons: tuple[str, ...]
    held: str | None


def vanishing_digest(sorted_doc_ids: Iterable[str]) -> str:
    """Digest of a set of document ids, 64 hex digits: equal exactly when the sets are. The empty set has one too.

    Reads the ids once, so they can be streamed from a query `ORDER BY doc_id`. Raises ValueError unless they strictly ascend,
    since another order or a repeated id would make equal sets look different. The format is stored and must never change.
    """
    sha = hashlib.sha256(b"vanishing documents\n")
    before: str | None = None
    for doc_id in sorted_doc_ids:
        if before is not None and doc_id <= before:
            raise ValueError(f"document ids must ascend without repeats, yet {doc_id!r} follows {before!r}; sort them in the query")
        raw = doc_id.encode("utf-8", "surrogatepass")
        sha.update(len(raw).to_bytes(8, "big"))
        sha.update(raw)
        before = doc_id
    return sha.hexdigest()


def delete_allowance(known: int) -> int:
    """How many of `known` documents one complete listing may delete unconfirmed: the greater of 10 documents and 5 %, rounded down."""
    return max(ALLOWED_DOCUMENTS, known * ALLOWED_PERCENT // 100)


def decide_deletes(
    *,
    known: int,
    vanishing: int,
    digest: str,
    complete: bool,
    previously_held: str | None,
    approved: str | None = None,
    rejected: bool = False,
) -> DeleteDecision:
    """Decide on the deletes of one listing.

    `known` counts the source's live documents before the listing, `vanishing` those of them that it did not show (renames taken out),
    `digest` is their vanishing_digest. `previously_held` is the `held` of this source's last decision, `approved` the digest that
    an operator let through. `rejected` says that an operator turned the deletes of some of them down: then all of them wait for an
    operator, however few they are. Raises ValueError where the counts contradict each other.
    """
    if not 0 <= vanishing <= known:
        raise ValueError(f"{vanishing} vanishing documents of {known} known ones cannot be; count them in one transaction")
    if not complete:
        reason = f"the listing is incomplete and proves no absence: none of {vanishing} documents not seen is deleted"
        return DeleteDecision(Verdict.REFUSE, (reason,), previously_held)
    allowance = delete_allowance(known)
    if rejected and approved != digest:
        some = f"{vanishing} of {known} documents are gone, and an operator rejected the deletes of some of them"
        return DeleteDecision(Verdict.HOLD, (some, "they wait until an operator approves the set"), None)
    if vanishing <= allowance:
        reasons = (f"{vanishing} of {known} documents are gone, within the allowance of {allowance}",) if vanishing else ()
        return DeleteDecision(Verdict.APPLY, reasons, None)
    much = (
        f"{vanishing} of {known} documents are gone, more than the allowance of {allowance} "
        f"(the greater of {ALLOWED_DOCUMENTS} documents and {ALLOWED_PERCENT} %)"
    )
    if approved == digest:
        return DeleteDecision(Verdict.APPLY, (much, "an operator approved this very set"), None)
    if previously_held == digest:
        return DeleteDecision(Verdict.APPLY, (much, "a second complete listing agrees on this very set"), None)
    fix = "held until the next complete listing agrees or `primer deletes approve`; see that the source is mounted and whole"
    changed = ("the set differs from the one held before",) if previously_held is not None else ()
    return DeleteDecision(Verdict.HOLD, (much, *changed, fix), digest)
