"""What every connector must do, part two: what its change feed tells, its webhooks, and its manners with a service."""

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primer_core.failures import Deferred, PrimerError, Transient
from primer_core.stages import Operation
from primer_resources.connectors.base import ORDER_STEP, CursorExpired
from tests.conformance.connector_bench import ConnectorBench, Trait
from tests.conformance.connector_suite import Filled, begin, follow, listed, needs

OLD, NEW = "reports/deep/er/numbers.csv", "reports/moved/numbers.csv"
WORDS = ("Records", "s3", "issue", "commits", "ref", "Type", "Message", "detail-type", "detail", "action", "number", "body")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
    max_leaves=8,
)
"""JSON that spells some of the words that webhooks use."""


class FeedSuite(Filled):
    """The change feed."""

    @needs(Trait.FEED)
    def test_a_feed_tells_that_a_source_was_shared_anew(self, filled: ConnectorBench) -> None:
        filled.share(["everyone"])
        cursor = begin(filled)
        filled.share(["board"])
        try:
            changes, _ = follow(filled, cursor)
        except CursorExpired:
            return  # a listing follows, and it shows the new groups
        assert {change.path for change in changes} == set(listed(filled))

    @needs(Trait.FEED)
    def test_a_listing_gives_a_cursor_that_the_catalog_can_keep(self, filled: ConnectorBench) -> None:
        cursor = begin(filled)
        assert follow(filled, cursor)[0] == []

    @needs(Trait.FEED)
    def test_a_feed_shows_what_a_listing_shows(self, filled: ConnectorBench, one: str, documents: Mapping[str, bytes]) -> None:
        cursor = begin(filled)
        second, third, new = list(documents)[1], list(documents)[2], "new.txt" if filled.has(Trait.FOLDERS) else "77"
        filled.put(one, b"Edited once.")
        filled.put(new, b"New.")
        filled.put(second, b"Edited as well.")
        filled.remove(third)
        filled.put(one, b"Edited twice.")
        filled.pass_time(timedelta(minutes=1))
        changes, end = follow(filled, cursor)
        now = listed(filled)
        told = {change.path: change.item for change in changes}
        assert {path for path, item in told.items() if item is not None} == {one, new, second}
        assert {path: told[path] for path in (one, new, second)} == {path: now[path] for path in (one, new, second)}
        assert (told.get(third, now) is None) is filled.has(Trait.DELETES_TOLD)
        assert follow(filled, end) == ([], end)

    @needs(Trait.FEED)
    def test_every_change_has_an_order_and_an_aware_utc_time(self, filled: ConnectorBench, one: str) -> None:
        cursor = begin(filled)
        for number in range(3):
            filled.put(one, b"Edit %d." % number)
            filled.pass_time(timedelta(minutes=1))
        changes, _ = follow(filled, cursor)
        assert changes
        for change in changes:
            assert change.event_time.utcoffset() == timedelta(0)
            assert change.source_version
            assert change.order > 0
            assert change.order % ORDER_STEP == 0
            assert change.item is None or (change.item.order, change.item.version) == (change.order, change.source_version)
        orders = [change.order for change in changes if change.path == one]
        assert orders == sorted(orders)

    @needs(Trait.DELETES_TOLD)
    def test_a_document_deleted_and_made_again_comes_after_its_delete(self, filled: ConnectorBench, one: str) -> None:
        cursor = begin(filled)
        filled.remove(one)
        filled.put(one, b"Back again.")
        changes, _ = follow(filled, cursor)
        told = [change for change in changes if change.path == one]
        assert [change.operation for change in told] == [Operation.DELETE, Operation.UPSERT]
        assert told[0].order < told[1].order

    @needs(Trait.FOLDERS)
    def test_a_renamed_document_is_listed_under_its_new_name_alone(self, filled: ConnectorBench, documents: Mapping[str, bytes]) -> None:
        before = listed(filled)[OLD]
        filled.rename(OLD, NEW)
        after = listed(filled)
        assert set(after) == set(documents) - {OLD} | {NEW}
        assert after[NEW].size == before.size

    @needs(Trait.RENAMES_TOLD)
    def test_a_renamed_document_is_told_with_the_path_that_it_had(self, filled: ConnectorBench) -> None:
        cursor = begin(filled)
        filled.rename(OLD, NEW)
        changes, _ = follow(filled, cursor)
        assert [(change.operation, change.old_path, change.path) for change in changes] == [(Operation.UPSERT, OLD, NEW)]

    @needs(Trait.FEED)
    def test_many_documents_of_one_moment_are_each_told_once(self, filled: ConnectorBench) -> None:
        cursor = begin(filled)
        names = [f"same{number}.txt" if filled.has(Trait.FOLDERS) else str(200 + number) for number in range(7)]
        for name in names[:5]:
            filled.put(name, name.encode())
        first, cursor = follow(filled, cursor)
        for name in names[5:]:
            filled.put(name, name.encode())
        filled.pass_time(timedelta(minutes=1))
        second, cursor = follow(filled, cursor)
        assert {change.path for change in first} == set(names[:5])
        assert set(names[5:]) <= {change.path for change in second} <= set(names)
        assert follow(filled, cursor)[0] == []

    @needs(Trait.FEED)
    def test_a_feed_read_again_from_a_cursor_tells_the_same(self, filled: ConnectorBench, one: str) -> None:
        cursor = begin(filled)
        filled.put(one, b"Edited.")
        filled.pass_time(timedelta(minutes=1))
        assert follow(filled, cursor) == follow(filled, cursor)

    @needs(Trait.FEED)
    def test_a_cursor_that_the_source_forgot_is_an_expired_one(self, filled: ConnectorBench) -> None:
        cursor = begin(filled)
        filled.expire()
        with pytest.raises(CursorExpired):
            follow(filled, cursor)
        again = filled.connector.list(cursor)
        list(again)
        assert again.cursor is not None
        assert follow(filled, again.cursor)[0] == []


class WebhookSuite(Filled):
    """Webhooks: decoded without asking the source, whatever is sent."""

    @needs(Trait.WEBHOOKS)
    @pytest.mark.parametrize("operation", [Operation.UPSERT, Operation.DELETE])
    def test_a_webhook_tells_of_a_document_under_the_path_that_a_listing_shows(
        self, filled: ConnectorBench, documents: Mapping[str, bytes], operation: Operation
    ) -> None:
        for path in documents:
            told = filled.connector.decode(*filled.webhook(operation, path, "Z"))
            assert told is not None
            assert [(change.operation, change.path, change.item) for change in told] == [(operation, path, None)]
            assert told[0].source_version
            assert told[0].event_time.utcoffset() == timedelta(0)
            item = filled.connector.look(told[0].path)
            assert item is not None
            assert item.path == path

    @needs(Trait.WEBHOOKS)
    def test_a_webhook_that_comes_twice_tells_the_same(self, filled: ConnectorBench, one: str) -> None:
        request = filled.webhook(Operation.UPSERT, one, "Z")
        assert filled.connector.decode(*request) == filled.connector.decode(*request)

    @needs(Trait.WEBHOOKS)
    def test_what_is_not_this_sources_is_left_out_with_a_reason(self, filled: ConnectorBench) -> None:
        told = filled.connector.decode(*filled.foreign_webhook())
        assert told is not None
        assert list(told) == []
        assert told.ignored
        assert all(told.ignored)

    @needs(Trait.WEBHOOKS)
    def test_a_webhooks_time_is_taken_with_its_zone_and_refused_without(self, filled: ConnectorBench, one: str) -> None:
        utc = filled.connector.decode(*filled.webhook(Operation.UPSERT, one, "Z"))
        pune = filled.connector.decode(*filled.webhook(Operation.UPSERT, one, "+05:30"))
        assert utc is not None
        assert pune is not None
        assert utc[0].event_time - pune[0].event_time == timedelta(hours=5, minutes=30)
        with pytest.raises(PrimerError, match="webhook of "):
            filled.connector.decode(*filled.webhook(Operation.UPSERT, one, ""))

    @needs(Trait.WEBHOOKS)
    @pytest.mark.parametrize("body", [b"", b"no json", b"\xff\xfe", b"[]", b"7", b"null", b'"text"', b"[" * 50_000])
    def test_a_body_that_is_not_the_sources_own_is_the_senders_fault(self, source: ConnectorBench, body: bytes) -> None:
        with pytest.raises(PrimerError, match="webhook of ") as caught:
            source.connector.decode({}, body)
        assert type(caught.value) is PrimerError, "neither the system nor the source is to blame, and trying again does not help"

    def test_whatever_is_sent_is_decoded_or_refused(self, source: ConnectorBench) -> None:
        @given(JSON, st.sampled_from(["issues", "ping", ""]))
        def send(content: Any, kind: str) -> None:
            body = json.dumps(content).encode()
            refused = None
            try:
                source.connector.decode({"X-GitHub-Event": kind}, body)
            except PrimerError as error:
                refused = error
            assert refused is None or (type(refused) is PrimerError and "webhook of " in str(refused))

        send()


class ServiceSuite(Filled):
    """Manners with a service that throttles, fails for a moment, and changes its tokens."""

    @needs(Trait.WAITS)
    def test_a_time_to_wait_is_honoured_within_the_quota_and_defers_beyond_it(self, filled: ConnectorBench, one: str) -> None:
        filled.trouble(429, {"Retry-After": "2"}, times=2)
        assert listed(filled)
        filled.trouble(429, {"Retry-After": "4000"}, times=1)
        with pytest.raises(Deferred, match="4000 s"):
            listed(filled)
        filled.trouble(429, {"Retry-After": "4000"}, times=1)
        with pytest.raises(Deferred):
            filled.connector.look(one)

    @needs(Trait.SERVICE)
    @pytest.mark.parametrize("status", [429, 500, 503])
    def test_a_service_that_goes_on_failing_is_to_be_tried_again_and_nothing_is_gone(
        self, filled: ConnectorBench, one: str, status: int
    ) -> None:
        before = listed(filled)
        for ask in (lambda: listed(filled), lambda: filled.connector.look(one)):
            filled.trouble(status, {}, times=10_000)
            with pytest.raises((Transient, Deferred)):
                ask()
        filled.trouble(status, {}, times=0)
        assert listed(filled) == before

    @needs(Trait.TOKENS)
    def test_a_token_that_was_renewed_is_taken_once_and_one_that_was_not_is_an_error(self, filled: ConnectorBench, one: str) -> None:
        assert listed(filled)
        filled.change_token(known=True)
        assert listed(filled)
        filled.change_token(known=True)
        assert filled.connector.look(one) is not None
        filled.change_token(known=False)
        for ask in (lambda: listed(filled), lambda: filled.connector.look(one)):
            with pytest.raises(PrimerError, match=r"refused the credentials \(?file:") as caught:
                ask()
            assert "token-" not in str(caught.value)

    @needs(Trait.ZONES)
    def test_a_time_without_a_zone_is_refused(self, filled: ConnectorBench) -> None:
        filled.tell_no_zone()
        with pytest.raises(PrimerError):
            listed(filled)
