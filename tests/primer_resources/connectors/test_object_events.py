"""What S3 sends of changed objects: every form and envelope of it, each key's events in the order in which the store made them."""

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primer_core.failures import PrimerError
from primer_core.source_time import to_ns
from primer_core.stages import Operation
from primer_resources.connectors.base import ORDER_STEP
from primer_resources.connectors.object_events import ObjectEvent, read_events

AT = datetime(2026, 6, 1, 12, 0, 0, 123_000, UTC)
WHERE = "s3://bucket/docs"


def record(name: str, key: str = "a.txt", sequencer: str = "", at: datetime = AT, **thing: str) -> dict[str, Any]:
    """A record of an event notification, with what Amazon writes around it."""
    return {
        "eventVersion": "2.1", "eventSource": "aws:s3", "awsRegion": "eu-west-1", "eventName": name,
        "eventTime": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"), "userIdentity": {"principalId": "AWS:X"},
        "s3": {"s3SchemaVersion": "1.0", "configurationId": "c", "bucket": {"name": "bucket", "arn": "arn:aws:s3:::bucket"},
               "object": {"key": key, "size": 4, "sequencer": sequencer, **thing}},
    }  # fmt: skip


def bridged(kind: str, key: str, **detail: Any) -> dict[str, Any]:
    """The same from EventBridge."""
    return {
        "version": "0", "id": "1", "detail-type": kind, "source": "aws.s3", "account": "1", "time": "2026-06-01T12:00:00Z",
        "resources": ["arn:aws:s3:::bucket"],
        "detail": {"version": "0", "bucket": {"name": "bucket"}, "object": {"key": key, "etag": "abc", "sequencer": "00A"}, **detail},
    }  # fmt: skip


def read(message: Any) -> list[ObjectEvent]:
    return read_events(json.dumps(message).encode(), WHERE)


def told(message: Any) -> list[tuple[Operation | None, str]]:
    return [(event.operation, event.key) for event in read(message)]


def test_several_records_are_several_events_and_keys_are_decoded() -> None:
    message = {"Records": [record("ObjectCreated:Put", "a+b%2Bc%C3%BC%25.txt"), record("s3:ObjectCreated:CompleteMultipartUpload", "m.txt"),
                           record("ObjectRemoved:Delete", "x.txt"), record("ObjectTagging:Put", "t.txt")]}  # fmt: skip
    assert told(message) == [
        (Operation.UPSERT, "a b+c\u00fc%.txt"), (Operation.UPSERT, "m.txt"), (Operation.DELETE, "x.txt"), (None, "t.txt"),
    ]  # fmt: skip


def test_an_event_carries_the_objects_version_and_the_stores_time() -> None:
    (event,) = read({"Records": [record("ObjectCreated:Copy", eTag='"abc"', sequencer="00A")]})
    assert (event.version, event.at, event.order, event.bucket) == ("abc", AT, to_ns(AT), "bucket")
    (event,) = read({"Records": [record("ObjectRemoved:Delete", sequencer="00B")]})
    assert event.version == "00B"
    (event,) = read({"Records": [record("ObjectRemoved:Delete")]})
    assert event.version == AT.isoformat()


@pytest.mark.parametrize(
    ("name", "thing", "operation"),
    [
        ("ObjectRemoved:Delete", {}, Operation.DELETE),
        ("ObjectRemoved:DeleteMarkerCreated", {"versionId": "v2"}, Operation.DELETE),
        ("ObjectRemoved:Delete", {"versionId": "v1"}, Operation.UPSERT),
        ("LifecycleExpiration:Delete", {}, Operation.DELETE),
        ("LifecycleExpiration:Delete", {"versionId": "v1"}, Operation.UPSERT),
        ("s3:LifecycleExpiration:DeleteMarkerCreated", {"versionId": "v1"}, Operation.DELETE),
        ("ObjectRestore:Completed", {}, None),
        ("ObjectAcl:Put", {}, None),
    ],
)
def test_only_a_delete_that_leaves_nothing_standing_is_a_delete(name: str, thing: dict[str, str], operation: Operation | None) -> None:
    assert [event.operation for event in read({"Records": [record(name, **thing)]})] == [operation]


def test_eventbridge_writes_keys_as_they_are() -> None:
    assert told(bridged("Object Created", "a+b%2B.txt")) == [(Operation.UPSERT, "a+b%2B.txt")]
    assert told(bridged("Object Deleted", "x.txt", **{"deletion-type": "Permanently Deleted"})) == [(Operation.DELETE, "x.txt")]
    versioned = {"object": {"key": "x.txt", "version-id": "v1"}}
    assert told(bridged("Object Deleted", "", **versioned, **{"deletion-type": "Delete Marker Created"})) == [(Operation.DELETE, "x.txt")]
    assert told(bridged("Object Deleted", "", **versioned, **{"deletion-type": "Permanently Deleted"})) == [(Operation.UPSERT, "x.txt")]
    assert told(bridged("Object Tags Added", "x.txt")) == [(None, "x.txt")]


def test_envelopes_of_queues_are_taken_off() -> None:
    message = {"Records": [record("ObjectCreated:Put")]}
    sns = {"Type": "Notification", "MessageId": "1", "TopicArn": "arn", "Message": json.dumps(message)}
    in_function = {"Records": [{"EventSource": "aws:sns", "Sns": sns}, {"EventSource": "aws:sns", "Sns": sns}]}
    received = {"Messages": [{"MessageId": "1", "Body": json.dumps(sns)}]}
    to_function = {"Records": [{"messageId": "1", "eventSource": "aws:sqs", "body": json.dumps(bridged("Object Created", "a.txt"))}]}
    wanted = [(Operation.UPSERT, "a.txt")]
    assert told(sns) == told(received) == told(to_function) == wanted
    assert told(in_function) == wanted * 2, "without a sequencer nobody can tell a repeat from a second event"


def test_the_test_event_and_an_empty_body_of_records_are_nothing() -> None:
    test_event = {"Service": "Amazon S3", "Event": "s3:TestEvent", "Time": "2026-06-01T12:00:00.000Z", "Bucket": "bucket"}
    assert told(test_event) == told({"Type": "Notification", "Message": json.dumps(test_event)}) == told({"Records": []}) == []


def test_a_stores_own_fields_beside_the_records_do_not_matter() -> None:
    message = {"EventName": "s3:ObjectCreated:Put", "Key": "bucket/a.txt", "Records": [record("s3:ObjectCreated:Put")]}
    assert told(message) == [(Operation.UPSERT, "a.txt")]


def test_events_of_a_key_follow_its_sequencers_whatever_order_and_clocks_say() -> None:
    late, early = AT + timedelta(seconds=5), AT
    records = [
        record("ObjectRemoved:Delete", sequencer="0055B", at=early),
        record("ObjectCreated:Put", sequencer="0055AED6", at=late),
        record("ObjectCreated:Put", "other.txt", sequencer="0001"),
        record("ObjectCreated:Put", sequencer="0055AE", at=late),
    ]
    events = [event for event in read({"Records": records}) if event.key == "a.txt"]
    assert [event.sequencer for event in events] == ["0055AE", "0055AED6", "0055B"]
    assert events[-1].operation is Operation.DELETE
    assert [event.order for event in events] == [to_ns(late), to_ns(late) + ORDER_STEP, to_ns(late) + 2 * ORDER_STEP]


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.integers(1, 6), st.integers(-3, 3)), max_size=12))
def test_orders_of_a_key_grow_with_its_sequencers_and_a_repeat_is_told_once(rows: list[tuple[str, int, int]]) -> None:
    records = [record("ObjectCreated:Put", key, f"{number:04X}", AT + timedelta(seconds=shift)) for key, number, shift in rows]
    events = read({"Records": records})
    for key in ("a", "b"):
        mine = [event for event in events if event.key == key]
        assert [int(event.sequencer, 16) for event in mine] == sorted({number for name, number, _ in rows if name == key})
        assert all(one.order + ORDER_STEP <= other.order for one, other in pairwise(mine))
        assert all(event.order >= to_ns(event.at) for event in mine)


def deep(message: Any, levels: int) -> Any:
    for _ in range(levels):
        message = {"Type": "Notification", "Message": json.dumps(message)}
    return message


@pytest.mark.parametrize(
    "message",
    [
        [], "text", None, 7, {}, {"Records": {}}, {"Records": [7]}, {"Records": [{}]}, {"Type": "Notification"},
        {"Type": "Notification", "Message": "no json"}, {"Messages": [{"Body": 7}]}, {"Records": [{"Sns": 7}]},
        {"detail-type": "Object Created"}, {"detail-type": "Object Created", "time": "2026-06-01T12:00:00Z", "detail": 7},
        {"Records": [record("ObjectCreated:Put") | {"eventTime": "2026-06-01T12:00:00"}]}, deep({"Records": []}, 5),
    ],
)  # fmt: skip
def test_what_s3_does_not_send_is_refused_and_names_the_source(message: Any) -> None:
    with pytest.raises(PrimerError, match=rf"webhook of {WHERE}: .*is not that of S3"):
        read(message)


@pytest.mark.parametrize("body", [b"", b"\xff", b"[" * 100_000, b'{"Records": [NaN]}'])
def test_bytes_that_are_no_message_are_refused(body: bytes) -> None:
    with pytest.raises(PrimerError, match="is not that of S3"):
        read_events(body, WHERE)


def test_a_subscription_that_waits_to_be_confirmed_says_what_to_do() -> None:
    with pytest.raises(PrimerError, match="open its SubscribeURL"):
        read({"Type": "SubscriptionConfirmation", "SubscribeURL": "https://sns.example/confirm"})
