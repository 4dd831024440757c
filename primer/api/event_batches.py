"""Events as they are sent, made into events of the inbox: which document is meant, and whether the event can be true at all."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from primer.api.context import Context
from primer.api.models import EventIn, EventOp, Verdict
from primer_assets.source_events import members_follow
from primer_core import ids
from primer_core.content_roots import path_under
from primer_core.events import check_path
from primer_core.source_time import check_aware
from primer_core.stages import Operation
from primer_resources.catalog.documents import KnownDocument
from primer_resources.catalog.events import NewEvent
from primer_resources.catalog.sources import Source
from primer_resources.connectors.base import Change
from primer_resources.connectors.registry import root_of

AHEAD = timedelta(minutes=5)
"""How far a sender's clock may go ahead. A time beyond it would outrank every later permission."""
_ACL_PART = "#acl"
"""Behind the id of an upsert that tells permissions as well."""


def receive_batch(context: Context, source: Source, sent: Sequence[EventIn]) -> list[Verdict]:
    """Take the events of one source in. Returns a verdict each, in their order."""
    known = _known(context, source, sent)
    now = context.catalog.now()
    told: list[NewEvent] = []
    verdicts: list[Verdict] = []
    for event in sent:
        try:
            made = _new_events(source, event, known.get(event.doc_id), now)
        except ValueError as error:
            verdicts.append(Verdict(accepted=False, event_id=event.event_id, error=str(error)))
        else:
            told.extend(made)
            verdicts.append(Verdict(accepted=True, event_id=made[0].event_id))
    fresh = context.catalog.inbox.receive(source, told)
    first: set[str] = set()
    ended = []
    for verdict in verdicts:
        is_again = verdict.accepted and (verdict.event_id not in fresh or verdict.event_id in first)
        first.add(verdict.event_id or "")
        ended.append(verdict.model_copy(update={"duplicate": is_again}))
    return ended


def receive_changes(context: Context, source: Source, changes: Sequence[Change]) -> tuple[int, int]:
    """Take the changes that a service told of in. Returns how many were new, and how many were told before."""
    told = [
        _event(source, None, change.path, None, change.operation, change.source_version, None, None, change.event_time)
        for change in changes
    ]
    fresh = context.catalog.inbox.receive(source, told)
    return len(fresh), len(told) - len(fresh)


def _known(context: Context, source: Source, sent: Sequence[EventIn]) -> Mapping[str, KnownDocument]:
    """What an event calls its document → the document, where it is known: by its id, or by the path where it stands."""
    names = {event.doc_id for event in sent}
    by_id = context.catalog.documents.of_source(source.source_id, names)
    return {**context.catalog.documents.by_path(source.source_id, names - by_id.keys()), **by_id}


def _new_events(source: Source, event: EventIn, document: KnownDocument | None, now: datetime) -> list[NewEvent]:
    """The event, and the permissions that an upsert tells. Raises ValueError for one that cannot be taken."""
    at = check_aware(event.event_time)
    if at > now + AHEAD:
        raise ValueError(f"event_time {at.isoformat()} lies in the future; see the sender's clock")
    if event.content_uri is not None:
        path_under(root_of(source), event.content_uri)
    tells_groups = event.op is EventOp.ACL or (event.op is EventOp.UPSERT and event.acl_groups is not None)
    if event.op is EventOp.ACL and "acl_groups" not in event.model_fields_set:
        raise ValueError("an acl event needs acl_groups: a list, or null to hand the document back to its source's own rules")
    if tells_groups and document is not None and document.container is not None:
        raise ValueError(members_follow(document.path, document.container))
    path = check_path(event.doc_id) if document is None else document.path
    doc_id = document.doc_id if document is not None and document.doc_id == event.doc_id else None
    groups = None if event.acl_groups is None else tuple(sorted(set(event.acl_groups)))
    made = _event(source, event.event_id, path, doc_id, Operation(event.op), event.source_version, groups, event.content_uri, at)
    if event.op is EventOp.UPSERT and groups is not None:
        acl = _event(source, made.event_id + _ACL_PART, path, doc_id, Operation.ACL, event.source_version, groups, None, at)
        return [made, acl]
    return [made]


def _event(
    source: Source,
    event_id: str | None,
    path: str,
    doc_id: str | None,
    op: Operation,
    version: str,
    groups: tuple[str, ...] | None,
    content_uri: str | None,
    at: datetime,
) -> NewEvent:
    fields = [doc_id or path, op.value, version, repr(groups), content_uri or "", at.isoformat()]
    key = event_id or ids.event_id(source.source_id, fields)
    return NewEvent(source.source_id, key, path, doc_id, op, version, groups, content_uri, at)
