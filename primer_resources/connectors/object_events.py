"""What S3 sends when objects change: its notifications, told apart from the envelopes that queues put around them.

| body | what it is |
|---|---|
| `Records` of `s3` | an event notification, of Amazon or of another store that speaks it; keys are URL-encoded |
| `detail-type` | the same from EventBridge; keys are plain |
| `Event: s3:TestEvent` | what S3 sends when notifications are set up: nothing happened |
| `Type: Notification`, `Records` with `Sns` | SNS around any of these |
| `Messages`, `Records` with `body` | SQS around any of these, as it is received and as a function gets it |

A delete of one version (an ObjectRemoved:Delete with a versionId) may uncover the version before it, or take a delete marker away: it is
told as a change, and whoever takes it in looks what stands there now.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import unquote_plus

from pydantic import AliasChoices, AwareDatetime, BaseModel, BeforeValidator, Field, ValidationError

from primer_core.failures import PrimerError
from primer_core.source_time import to_ns
from primer_core.stages import Operation
from primer_resources.connectors.base import ORDER_STEP

MOST_ENVELOPES = 4
"""SQS around SNS around EventBridge is three."""
_NOTIFIED = {"ObjectCreated": Operation.UPSERT, "ObjectRemoved": Operation.DELETE, "LifecycleExpiration": Operation.DELETE}
_BRIDGED = {"Object Created": Operation.UPSERT, "Object Deleted": Operation.DELETE}
_MARKER = "DeleteMarkerCreated"
_TEST = "s3:TestEvent"


@dataclass(frozen=True, slots=True)
class ObjectEvent:
    """A change of one object. `operation` is None for an event that leaves the object's bytes as they are (`name` says which).
    `order` follows the store's sequencer within a key, whatever its clocks said."""

    bucket: str
    key: str
    name: str
    operation: Operation | None
    version: str
    sequencer: str
    at: datetime
    order: int


def _unquoted(etag: Any) -> Any:
    return etag.strip('"') if isinstance(etag, str) else etag


class _Object(BaseModel):
    key: str
    etag: Annotated[str, BeforeValidator(_unquoted)] = Field(default="", validation_alias=AliasChoices("eTag", "etag"))
    version_id: str = Field(default="", validation_alias=AliasChoices("versionId", "version-id"))
    sequencer: str = ""


class _Bucket(BaseModel):
    name: str


class _S3(BaseModel):
    bucket: _Bucket
    object: _Object


class _Record(BaseModel):
    name: str = Field(alias="eventName")
    time: AwareDatetime = Field(alias="eventTime")
    s3: _S3


class _Detail(_S3):
    deletion: str = Field(default="", alias="deletion-type")


class _Bridged(BaseModel):
    name: str = Field(alias="detail-type")
    time: AwareDatetime
    detail: _Detail


def read_events(body: bytes, where: str) -> list[ObjectEvent]:
    """The events of a request's body, each key's in the order of its sequencers. `where` is the source, for errors.

    Raises PrimerError for what S3 does not send, and for a subscription that waits to be confirmed.
    """
    try:
        events = [event for message in _unwrap(json.loads(body), where, MOST_ENVELOPES) for event in _events(message)]
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise PrimerError(f"webhook of {where}: {name or 'its body'} is not that of S3 ({first['msg']})") from error
    except (ValueError, RecursionError) as error:
        raise PrimerError(f"webhook of {where}: its body is not that of S3 ({error})") from error
    return list(_in_order(events))


def _unwrap(message: Any, where: str, left: int) -> Iterator[Mapping[str, Any]]:
    """The notifications inside their envelopes."""
    if not isinstance(message, Mapping):
        raise ValueError(f"a {type(message).__name__} stands where an object should")
    if left == 0:
        raise ValueError(f"more than {MOST_ENVELOPES} envelopes around each other")
    if message.get("Type") in ("SubscriptionConfirmation", "UnsubscribeConfirmation"):
        raise PrimerError(f"webhook of {where}: SNS asks to confirm a subscription; open its SubscribeURL, which Primer does not")
    inside = _inner(message)
    if inside is None:
        yield message
        return
    for text in inside:
        if not isinstance(text, str):
            raise ValueError("the message in an envelope is no text")
        yield from _unwrap(json.loads(text), where, left - 1)


def _inner(message: Mapping[str, Any]) -> list[Any] | None:
    """The texts in an envelope; None for what is none."""
    if message.get("Type") == "Notification":
        return [message.get("Message")]
    records = message.get("Records", message.get("Messages"))
    if not isinstance(records, list) or not records or not all(isinstance(each, Mapping) for each in records):
        return None
    if all("Sns" in each for each in records):
        return [each["Sns"].get("Message") if isinstance(each["Sns"], Mapping) else None for each in records]
    if all("s3" not in each and ("body" in each or "Body" in each) for each in records):
        return [each.get("body", each.get("Body")) for each in records]
    return None


def _events(message: Mapping[str, Any]) -> Iterator[ObjectEvent]:
    if message.get("Event") == _TEST:
        return
    if "detail-type" in message:
        bridged = _Bridged.model_validate(message)
        detail, operation = bridged.detail, _BRIDGED.get(bridged.name)
        yield _event(bridged.name, bridged.time, detail, detail.object.key, operation, detail.deletion == "Delete Marker Created")
        return
    if "Records" not in message:
        raise ValueError("it has neither Records nor a detail-type")
    records = message["Records"]
    if not isinstance(records, list):
        raise ValueError("its Records are no list")
    for each in records:
        record = _Record.model_validate(each)
        kind, _, how = record.name.removeprefix("s3:").partition(":")
        yield _event(record.name, record.time, record.s3, unquote_plus(record.s3.object.key), _NOTIFIED.get(kind), how == _MARKER)


def _event(name: str, at: datetime, s3: _S3, key: str, operation: Operation | None, is_marker: bool) -> ObjectEvent:
    if operation is Operation.DELETE and s3.object.version_id and not is_marker:
        operation = Operation.UPSERT
    version = s3.object.etag or s3.object.version_id or s3.object.sequencer or at.isoformat()
    return ObjectEvent(s3.bucket.name, key, name, operation, version, s3.object.sequencer, at, to_ns(at))


def _in_order(events: Iterable[ObjectEvent]) -> Iterator[ObjectEvent]:
    """The events key by key, each key's by its sequencers (hexadecimal, the shorter one padded at its end) and none of them twice."""
    by_key: dict[tuple[str, str], list[ObjectEvent]] = {}
    for event in events:
        by_key.setdefault((event.bucket, event.key), []).append(event)
    for same in by_key.values():
        if all(event.sequencer for event in same):
            width = max(len(event.sequencer) for event in same)
            same.sort(key=lambda event: event.sequencer.lower().ljust(width, "0"))
        latest: ObjectEvent | None = None
        for event in same:
            if latest is not None and event.sequencer == latest.sequencer != "":
                continue
            order = event.order if latest is None else max(event.order, latest.order + ORDER_STEP)
            latest = replace(event, order=order)
            yield latest
