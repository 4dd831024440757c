"""Routes of documents: where one stands, and what needs a person."""

from typing import Annotated, Literal

from fastapi import APIRouter, HTTPException, Path, Query

from primer.api.auth import Operator, Reader
from primer.api.context import Context, InContext, problems
from primer.api.models import SOURCE_ID, DeadLetterOut, DeadLettersOut, RetryOut, StatusOut
from primer_core.failures import NEXT_ACTION, Reason
from primer_core.stages import FETCH
from primer_resources.catalog.events import Event
from primer_resources.catalog.lookup import DeadLetter

router = APIRouter(prefix="/v1")
LETTER_ID = r"^(job|event)-[0-9]{1,18}$"
EVENT_ACTION = "see why the source does not show what the event tells, then retry; the daily listing settles the document in any case"


@router.get("/docs/{doc_id}/status", tags=["documents"], responses=problems(401, 403, 404, 422))
def document_status(context: InContext, token: Reader, doc_id: Annotated[str, Path(pattern=r"^[0-9a-f]{32}$")]) -> StatusOut:
    """Where a document stands in the live index version."""
    if not context.catalog.documents.by_id([doc_id]):
        raise HTTPException(404, f"there is no document {doc_id}")
    found = context.catalog.lookup.status(doc_id, context.catalog.deployments.live().name)
    source = context.catalog.sources.find(found.source)
    if source is None or source.tenant_id != token.tenant_id:
        raise HTTPException(404, f"there is no document {doc_id}")
    return StatusOut(
        doc_id=found.doc_id,
        source_id=found.source,
        stage=found.stage,
        source_version=found.source_version,
        outcome=found.outcome,
        indexed_version=found.indexed_version,
        chunks=found.chunks,
        indexed_at=found.indexed_at,
        reason=found.reason,
        error=found.error,
    )


@router.get("/dead-letters", tags=["dead letters"], responses=problems(401, 403, 404, 422))
def list_dead_letters(
    context: InContext,
    token: Reader,
    source_id: Annotated[str | None, Query(pattern=SOURCE_ID)] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: Annotated[str | None, Query(pattern=LETTER_ID, description="next_cursor of the page before")] = None,
) -> DeadLettersOut:
    """Documents that could not be indexed, and events that could not be followed, each with its reason and what to do."""
    if source_id is not None:
        context.source(source_id, token.tenant_id)
    names = [source_id] if source_id is not None else [source.source_id for source in context.sources(token.tenant_id)]
    kind, _, place = (cursor or "job-0").partition("-")
    found: list[DeadLetterOut] = []
    after = int(place)
    if kind == "job":
        found = [_of_document(letter) for letter in context.catalog.lookup.dead_page(names, after, limit + 1)]
        after = 0
    if len(found) <= limit:
        found += [_of_event(event) for event in context.catalog.events.dead(names, after, limit + 1 - len(found))]
    return DeadLettersOut(items=found[:limit], next_cursor=found[limit - 1].id if len(found) > limit else None)


@router.post("/dead-letters/{letter_id}/retry", status_code=202, tags=["dead letters"], responses=problems(401, 403, 404, 422))
def retry_dead_letter(context: InContext, token: Operator, letter_id: Annotated[str, Path(pattern=LETTER_ID)]) -> RetryOut:
    """Put a dead letter back with fresh attempts. One that was never fetched waits for a full listing of its source, an event for the next
    sync."""
    kind, _, place = letter_id.partition("-")
    names = [source.source_id for source in context.sources(token.tenant_id)]
    retry = _retry_document if kind == "job" else _retry_event
    return RetryOut(id=letter_id, waits_for=retry(context, names, int(place)))


def _retry_document(context: Context, names: list[str], job_id: int) -> Literal["sweep", "sync"]:
    letters = [letter for letter in context.catalog.lookup.dead_page(names, job_id - 1, 1) if letter.job_id == job_id]
    if not letters:
        raise HTTPException(404, f"there is no dead letter job-{job_id}")
    if letters[0].stage == FETCH:
        with context.catalog.database.begin() as connection:
            context.catalog.sources.make_due(connection, letters[0].source, in_full=True)
        return "sync"
    context.catalog.dead_letters.retry([job_id])
    return "sweep"


def _retry_event(context: Context, names: list[str], seq: int) -> Literal["sweep", "sync"]:
    events = [event for event in context.catalog.events.dead(names, seq - 1, 1) if event.seq == seq]
    if not events:
        raise HTTPException(404, f"there is no dead letter event-{seq}")
    context.catalog.events.retry([seq])
    return "sync"


def _of_document(letter: DeadLetter) -> DeadLetterOut:
    action = NEXT_ACTION[Reason(letter.reason)] if letter.reason in set(Reason) else ""
    return DeadLetterOut(
        id=f"job-{letter.job_id}",
        kind="document",
        source_id=letter.source,
        doc_id=letter.doc_id,
        path=letter.path,
        stage=letter.stage,
        reason=letter.reason,
        error=letter.error,
        attempts=letter.attempts,
        next_action=action,
    )


def _of_event(event: Event) -> DeadLetterOut:
    return DeadLetterOut(
        id=f"event-{event.seq}",
        kind="event",
        source_id=event.source_id,
        doc_id=event.doc_id,
        path=event.path,
        stage="event",
        reason=Reason.ATTEMPTS_EXHAUSTED,
        error=event.error or "",
        attempts=event.attempts,
        next_action=EVENT_ACTION,
    )
