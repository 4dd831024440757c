"""Routes of events: those that somebody makes and signs, and the webhooks that services send of themselves."""

import json
from contextlib import closing
from typing import Annotated, Any

from fastapi import APIRouter, Header, HTTPException, Path, Request
from fastapi.responses import JSONResponse
from pydantic import TypeAdapter, ValidationError
from starlette.concurrency import run_in_threadpool

from primer.api.auth import signed_sources, webhook_source
from primer.api.context import Context, InContext, RawBody, problems
from primer.api.event_batches import receive_batch, receive_changes
from primer.api.models import MOST_EVENTS, SOURCE_ID, EventIn, EventsIn, EventsOut, EventsRefused, Verdict, WebhookOut
from primer_core.events import check_path
from primer_core.signatures import MOST_SIGNATURES

router = APIRouter(tags=["events"])
_EVENT: TypeAdapter[EventIn] = TypeAdapter(EventIn)
_SCHEMA: dict[str, Any] = {
    "requestBody": {"required": True, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/EventsIn"}}}}
}
_ANY_JSON: dict[str, Any] = {"requestBody": {"required": True, "content": {"application/json": {"schema": {}}}}}


@router.post(
    "/internal/events",
    status_code=202,
    response_model=EventsOut,
    responses={**problems(401, 403), 422: {"model": EventsRefused}},
    openapi_extra=_SCHEMA,
)
async def receive_events(
    context: InContext, body: RawBody, x_primer_signature: Annotated[str | None, Header(description="t=SECONDS,v1=HEX")] = None
) -> Any:
    """Take a batch of events in, signed by their source: HMAC-SHA256 of `SECONDS.BODY` under its webhook secret. What is answered with
    `accepted` is kept, and the next tick of the sensor settles it; one bad event does not refuse the others."""
    return await run_in_threadpool(_receive, context, body, x_primer_signature)


def _receive(context: Context, body: bytes, signature: str | None) -> Any:
    events = _events(body)
    named = {event["source_id"] for event in events if isinstance(event, dict) and isinstance(event.get("source_id"), str)}
    if len(named) > MOST_SIGNATURES:
        raise HTTPException(401, f"nobody signs for more than {MOST_SIGNATURES} sources at once; send a batch a source")
    signed = signed_sources(context, signature, body, named)
    verdicts: list[Verdict | None] = [None] * len(events)
    of_source: dict[str, list[tuple[int, EventIn]]] = {}
    for place, raw in enumerate(events):
        try:
            event = _EVENT.validate_python(raw)
        except ValidationError as error:
            verdicts[place] = Verdict(accepted=False, error=first_error(error))
            continue
        if event.source_id in signed:
            of_source.setdefault(event.source_id, []).append((place, event))
        else:
            verdicts[place] = Verdict(accepted=False, event_id=event.event_id, error="the batch is not signed by this source")
    for source_id, sent in of_source.items():
        for (place, _), verdict in zip(sent, receive_batch(context, signed[source_id], [event for _, event in sent]), strict=True):
            verdicts[place] = verdict
    told = [verdict for verdict in verdicts if verdict is not None]
    if any(verdict.accepted for verdict in told):
        return EventsOut(events=told)
    refused = EventsRefused(detail=f"no event could be taken: {told[0].error}", events=told)
    return JSONResponse(refused.model_dump(), status_code=422)


def _events(body: bytes) -> list[Any]:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise HTTPException(422, f"the body is no JSON: {error}") from error
    events = content.get("events") if isinstance(content, dict) and content.keys() == EventsIn.model_fields.keys() else None
    if not isinstance(events, list) or not 1 <= len(events) <= MOST_EVENTS:
        raise HTTPException(422, f'the body is no batch: write {{"events": [...]}} with 1 to {MOST_EVENTS} events')
    return events


def first_error(error: ValidationError) -> str:
    """The first fault of a value: where it is, and the rule."""
    first = error.errors(include_url=False, include_context=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{place}: {first['msg']}" if place else str(first["msg"])


@router.post("/v1/sources/{source_id}/webhook", status_code=202, responses=problems(401, 403, 422), openapi_extra=_ANY_JSON)
async def receive_webhook(
    context: InContext, request: Request, body: RawBody, source_id: Annotated[str, Path(pattern=SOURCE_ID)]
) -> WebhookOut:
    """Take the webhook of the source's own service in: a push of GitHub, GitLab or Gitea, an issue of a tracker, a notification of S3.

    It is signed as the service does that: X-Hub-Signature-256, X-Gitlab-Token, or the secret as bearer token.
    """
    headers = {name.lower(): value for name, value in request.headers.items()}
    return await run_in_threadpool(_receive_webhook, context, source_id, headers, body)


def _receive_webhook(context: Context, source_id: str, headers: dict[str, str], body: bytes) -> WebhookOut:
    source = webhook_source(context, source_id, headers, body)
    if headers.get("x-github-event") == "ping":
        return WebhookOut(accepted=0, duplicates=0, ignored=["ping"])
    with closing(context.connectors.open(source)) as connector:
        decoded = connector.decode(headers, body)
    if decoded is None:
        raise HTTPException(422, f"a source of type {source.type} has no webhooks of its own; send its events to /internal/events")
    changes, ignored = [], list(decoded.ignored)
    for change in decoded:
        try:
            check_path(change.path)
        except ValueError as error:
            ignored.append(str(error))
        else:
            changes.append(change)
    accepted, duplicates = receive_changes(context, source, changes)
    return WebhookOut(accepted=accepted, duplicates=duplicates, ignored=ignored)
