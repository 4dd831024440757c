"""What every connector must do, whatever its source. A connector's tests subclass ConnectorSuite and give it a `source` fixture.

The class is not collected by itself; the subclass is, under its own name. What a kind of source does not have is declared in its `Kind`,
and then the suite asserts that the connector says so.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Protocol

import pytest

from primer_core.failures import Deferred, DocumentFault, PrimerError, Reason, SystemFault, Transient
from primer_core.stages import Operation
from primer_resources.connectors.base import ORDER_STEP, Change, Connector, Cursor, CursorExpired, ListedItem

DOCUMENTS: Mapping[str, bytes] = {
    "plan.txt": b"The plan is short.\n",
    "reports/2024 überblick & ausblick #1.md": "# Überblick\n\nAlles läuft.\n".encode(),
    "reports/deep/er/numbers.csv": b"a,b\n1,2\n",
    "reports.txt": b"A file beside a folder of nearly the same name.\n",
    "empty.txt": b"",
    "large.bin": bytes(range(256)) * 9000,
}
"""Path → bytes: names that need encoding, a folder and a file that sort close to each other, an empty file, one of several reads."""

TICKETS: Mapping[str, bytes] = {str(number): b"What happened in case %d." % number for number in (1, 2, 3, 10, 11, 12)}
"""The same for sources whose documents have numbers and are texts."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What a kind of source has. A row that is False is asserted, not skipped."""

    is_files: bool
    """Documents are files in folders: the bytes put are the bytes fetched, the size is known, a title is a file's name."""
    has_sizes: bool
    """A listing tells sizes."""
    keeps_states: bool
    """What was listed can be fetched as it was, whatever became of it since (git)."""
    has_feed: bool
    feed_tells_deletes: bool
    feed_tells_renames: bool
    has_webhooks: bool
    has_pages: bool
    """A listing is more than one request, so that it can break off and things can move between two of them."""
    is_remote: bool
    """There is a service that throttles, refuses tokens and tells times."""
    has_folder_permissions: bool


class Source(Protocol):
    """A source that a test can change from the outside, and a connector to it."""

    kind: Kind

    @property
    def connector(self) -> Connector:
        """The connector under test. It may fetch documents of up to 3 MB and refuses those of more than 4 MB."""
        ...

    def put(self, path: str, data: bytes) -> None:
        """Create a document or replace its content."""
        ...

    def remove(self, path: str) -> None:
        """Delete a document."""
        ...

    def rename(self, old: str, new: str) -> None:
        """Move a document; called where `is_files`."""
        ...

    def share(self, groups: Sequence[str] | None) -> None:
        """Open everything to these groups; None makes the permissions unreadable."""
        ...

    def share_folder(self, folder: str, groups: Sequence[str]) -> None:
        """Open what lies below a folder to these groups; called where `has_folder_permissions`."""
        ...

    def vanish(self) -> None:
        """Take the whole source away: the folder, the bucket, the repository, the right to see the tracker."""
        ...

    def pass_time(self, span: timedelta) -> None:
        """Let the source's clock go on; nothing where it has none of its own."""
        ...

    def expire(self) -> None:
        """Make the source forget every cursor given so far; called where `has_feed`."""
        ...

    def trouble(self, status: int, headers: Mapping[str, str], times: int, after: int = 0) -> None:
        """Answer so many requests like this, after some that are answered well; called where `is_remote` or `has_pages`."""
        ...

    def between_pages(self, act: Callable[[], None]) -> None:
        """Do something once, after the first page of the next listing; called where `has_pages`."""
        ...

    def change_token(self, known: bool) -> None:
        """Take a new token from now on, which the connector's reference gives as well or (not `known`) does not; where `is_remote`."""
        ...

    def tell_no_zone(self) -> None:
        """Write times without a zone from now on; called where `is_remote`."""
        ...


def listed(source: Source) -> dict[str, ListedItem]:
    """A complete listing by path."""
    listing = source.connector.list()
    items = list(listing)
    assert listing.problems == ()
    assert len({item.path for item in items}) == len(items)
    return {item.path: item for item in items}


def begin(source: Source) -> Cursor:
    """List the source, let its clock go on, and give the cursor that a feed goes on from, as the catalog keeps it."""
    source.pass_time(timedelta(minutes=1))
    listing = source.connector.list()
    list(listing)
    assert listing.cursor is not None
    source.pass_time(timedelta(minutes=1))
    cursor: Cursor = json.loads(json.dumps(listing.cursor))
    return cursor


def follow(source: Source, cursor: Cursor) -> tuple[list[Change], Cursor]:
    """The whole feed from a cursor, and the cursor at its end. No cursor may come twice while more follows."""
    changes: list[Change] = []
    seen = [json.dumps(cursor, sort_keys=True)]
    while True:
        page = source.connector.changes(cursor)
        assert page is not None
        changes.extend(page.changes)
        cursor = json.loads(json.dumps(page.cursor))
        if not page.more:
            return changes, cursor
        assert json.dumps(cursor, sort_keys=True) not in seen
        seen.append(json.dumps(cursor, sort_keys=True))


class ConnectorSuite:
    """The tests. Each begins with an empty source."""

    @pytest.fixture
    def documents(self, source: Source) -> Mapping[str, bytes]:
        return DOCUMENTS if source.kind.is_files else TICKETS

    @pytest.fixture
    def filled(self, source: Source, documents: Mapping[str, bytes]) -> Source:
        for path, data in documents.items():
            source.put(path, data)
        return source

    @pytest.fixture
    def one(self, documents: Mapping[str, bytes]) -> str:
        """The path of a document."""
        return next(iter(documents))

    def test_an_empty_source_is_a_complete_listing_of_nothing(self, source: Source) -> None:
        assert listed(source) == {}

    def test_every_document_is_listed_once_and_without_fault(self, filled: Source, documents: Mapping[str, bytes]) -> None:
        items = listed(filled)
        assert set(items) == set(documents)
        assert {item.fault for item in items.values()} == {None}
        sizes = {path: len(data) if filled.kind.has_sizes else 0 for path, data in documents.items()}
        assert {path: item.size for path, item in items.items()} == sizes

    def test_two_listings_of_an_unchanged_source_are_equal_in_order_too(self, filled: Source) -> None:
        assert list(filled.connector.list()) == list(filled.connector.list())

    def test_a_listing_can_be_read_again(self, filled: Source) -> None:
        listing = filled.connector.list()
        assert list(listing) == list(listing)
        assert listing.problems == ()

    def test_a_listing_that_was_not_read_to_its_end_is_no_evidence(self, filled: Source) -> None:
        listing = filled.connector.list()
        assert listing.problems != ()
        next(iter(listing))
        assert listing.problems != ()

    def test_a_listing_that_breaks_off_half_way_is_no_evidence(self, filled: Source) -> None:
        if not filled.kind.has_pages:
            assert listed(filled), "one look shows all of it"
            return
        filled.trouble(502, {}, times=100, after=2)
        listing = filled.connector.list()
        shown = list(listing)
        assert shown
        assert listing.problems != ()
        assert listing.cursor is None

    def test_a_look_shows_what_a_listing_shows(self, filled: Source, one: str) -> None:
        listing = filled.connector.list()
        items = {item.path: item for item in listing}
        assert {path: filled.connector.look(path, listing.cursor) for path in items} == items
        filled.put(one, b"Edited.")
        assert filled.connector.look(one, listing.cursor) == {item.path: item for item in filled.connector.list(listing.cursor)}[one]

    def test_a_look_at_what_no_listing_shows_finds_nothing(self, filled: Source, one: str) -> None:
        filled.remove(one)
        ways_out = ("../plan.txt", "..", ".", "reports/../reports.txt", "./reports.txt", "/reports.txt", "reports//reports.txt", "/etc")
        no_names = ("", "/", "a\0b", "a\nb", "\ud800", "\\x2e\\x2e/plan.txt", "x" * 5000, "-1", "0", "2/comments", "2?x=1")
        folders = ("reports", "reports/", "reports/deep", "reports.txt/", "reports.txt/x")
        for path in (one, *ways_out, *no_names, *folders):
            assert filled.connector.look(path) is None, path

    def test_a_look_says_who_may_read_or_that_it_is_not_known(self, filled: Source, one: str) -> None:
        filled.share(None)
        item = filled.connector.look(one)
        assert item is not None
        assert not item.access.readable
        filled.share(["staff"])
        item = filled.connector.look(one)
        assert item is not None
        assert item.access.groups == ("staff",)

    def test_a_look_that_is_not_answered_is_no_answer(self, filled: Source, one: str) -> None:
        if filled.kind.is_remote:
            filled.trouble(502, {}, times=100)
            with pytest.raises(Transient):
                filled.connector.look(one)
            filled.trouble(403, {}, times=1)
            with pytest.raises(Transient):
                filled.connector.look(one)
            filled.trouble(429, {"Retry-After": "4000"}, times=1)
            with pytest.raises(Deferred):
                filled.connector.look(one)
        filled.vanish()
        with pytest.raises((Transient, SystemFault)):
            filled.connector.look(one)

    def test_a_title_is_the_last_part_of_the_path_and_a_uri_is_plain_ascii(self, filled: Source) -> None:
        items = listed(filled)
        if filled.kind.is_files:
            assert all(item.title == path.rpartition("/")[2] for path, item in items.items())
        assert all(item.title for item in items.values())
        assert all(item.uri.isascii() and " " not in item.uri and "#" not in item.uri and "://" in item.uri for item in items.values())
        assert len({item.uri for item in items.values()}) == len(items)

    def test_every_document_says_who_may_read_it_or_that_it_is_not_known(self, filled: Source) -> None:
        for item in listed(filled).values():
            assert item.access.readable is (item.access.error == "")

    def test_permissions_that_cannot_be_read_are_not_those_of_nobody(self, filled: Source) -> None:
        filled.share(None)
        assert {(item.access.readable, item.access.groups, item.access.error != "") for item in listed(filled).values()} == {
            (False, (), True)
        }
        filled.share([])
        assert {(item.access.readable, item.access.groups) for item in listed(filled).values()} == {(True, ())}

    def test_a_source_that_is_shared_anew_has_other_groups_and_the_same_contents(self, filled: Source) -> None:
        filled.share(["everyone"])
        before = listed(filled)
        filled.share(["board", "staff"])
        after = listed(filled)
        assert {item.access.groups for item in after.values()} == {("board", "staff")}
        assert {path: item.fingerprint for path, item in before.items()} == {path: item.fingerprint for path, item in after.items()}
        assert {path: item.access.scope for path, item in before.items()} == {path: item.access.scope for path, item in after.items()}

    def test_a_folder_that_is_shared_anew_is_one_scope_whose_groups_change(self, filled: Source) -> None:
        if not filled.kind.has_folder_permissions:
            assert {item.access.scope for item in listed(filled).values()} == {""}
            return
        filled.share_folder("reports", ["staff"])
        before = {path: item.access for path, item in listed(filled).items()}
        filled.share_folder("reports", ["board"])
        after = {path: item.access for path, item in listed(filled).items()}
        inside = {path for path in after if path.startswith("reports/")}
        assert inside
        assert {(after[path].scope, after[path].groups) for path in inside} == {("reports", ("board",))}
        assert {path: access for path, access in before.items() if path not in inside} == {
            path: access for path, access in after.items() if path not in inside
        }

    def test_a_feed_tells_that_a_source_was_shared_anew(self, filled: Source) -> None:
        if not filled.kind.has_feed:
            assert filled.connector.list().cursor is None
            return
        filled.share(["everyone"])
        cursor = begin(filled)
        filled.share(["board"])
        try:
            changes, _ = follow(filled, cursor)
        except CursorExpired:
            return  # a listing follows, and it shows the new groups
        assert {change.path for change in changes} == set(listed(filled))

    def test_a_fetch_copies_the_bytes_and_tells_their_hash(self, filled: Source, documents: Mapping[str, bytes], tmp_path: Path) -> None:
        for number, (path, item) in enumerate(listed(filled).items()):
            target = tmp_path / str(number)
            fetched = filled.connector.fetch(item, target)
            data = target.read_bytes()
            assert data == documents[path] if filled.kind.is_files else documents[path] in data
            assert fetched.content_hash == hashlib.sha256(data).hexdigest()
            assert fetched.size == len(data)
            assert fetched.fingerprint == item.fingerprint
            assert fetched.modified_ns == item.modified_ns

    def test_a_fetch_replaces_what_an_earlier_attempt_left(self, filled: Source, one: str, tmp_path: Path) -> None:
        target, again = tmp_path / "copy", tmp_path / "again"
        target.write_bytes(b"x" * 100_000)
        item = listed(filled)[one]
        filled.connector.fetch(item, target)
        filled.connector.fetch(item, again)
        assert target.read_bytes() == again.read_bytes()

    def test_a_new_content_has_a_new_fingerprint_and_touches_no_other_document(self, filled: Source, one: str) -> None:
        before = listed(filled)
        filled.put(one, b"The plan has grown by a few words.\n")
        after = listed(filled)
        assert {path for path in before if before[path].fingerprint != after[path].fingerprint} == {one}

    def test_a_removed_document_is_gone_from_a_listing_that_is_still_complete(self, filled: Source, documents: Mapping[str, bytes]) -> None:
        third = list(documents)[2]
        filled.remove(third)
        assert set(listed(filled)) == set(documents) - {third}

    def test_a_document_that_vanishes_before_it_is_fetched_is_tried_again_and_leaves_no_copy(
        self, filled: Source, one: str, documents: Mapping[str, bytes], tmp_path: Path
    ) -> None:
        item = listed(filled)[one]
        filled.remove(one)
        if filled.kind.keeps_states:
            filled.connector.fetch(item, tmp_path / "copy")
            assert (tmp_path / "copy").read_bytes() == documents[one]
            return
        with pytest.raises(Transient, match=one.replace(".", r"\.")):
            filled.connector.fetch(item, tmp_path / "copy")
        assert not (tmp_path / "copy").exists()

    def test_a_document_over_the_limit_is_refused_before_it_is_copied(self, source: Source, tmp_path: Path) -> None:
        name = "huge.bin" if source.kind.is_files else "99"
        source.put(name, b"x" * 5_000_000)
        with pytest.raises(DocumentFault, match=rf"{name}.*500\d\d\d\d") as caught:
            source.connector.fetch(listed(source)[name], tmp_path / "copy")
        assert caught.value.reason is Reason.TOO_LARGE
        assert not (tmp_path / "copy").exists()

    def test_a_kind_without_a_feed_says_so(self, filled: Source) -> None:
        listing = filled.connector.list()
        list(listing)
        if filled.kind.has_feed:
            assert listing.cursor is not None
            json.dumps(listing.cursor)
        else:
            assert listing.cursor is None
            assert filled.connector.changes({}) is None

    def test_a_feed_shows_what_a_listing_shows(self, filled: Source, one: str, documents: Mapping[str, bytes]) -> None:
        if not filled.kind.has_feed:
            assert filled.connector.changes({}) is None
            return
        cursor = begin(filled)
        second, third, new = list(documents)[1], list(documents)[2], "new.txt" if filled.kind.is_files else "77"
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
        assert (told.get(third, now) is None) is filled.kind.feed_tells_deletes
        assert follow(filled, end) == ([], end)

    def test_every_change_has_an_order_and_an_aware_utc_time(self, filled: Source, one: str) -> None:
        if not filled.kind.has_feed:
            assert filled.connector.changes({}) is None
            return
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

    def test_a_document_deleted_and_made_again_comes_after_its_delete(self, filled: Source, one: str) -> None:
        if not filled.kind.feed_tells_deletes:
            before = listed(filled)
            filled.remove(one)
            filled.pass_time(timedelta(minutes=1))
            filled.put(one, b"Back again.")
            assert set(listed(filled)) == set(before)
            return
        cursor = begin(filled)
        filled.remove(one)
        filled.put(one, b"Back again.")
        changes, _ = follow(filled, cursor)
        told = [change for change in changes if change.path == one]
        assert [change.operation for change in told] == [Operation.DELETE, Operation.UPSERT]
        assert told[0].order < told[1].order

    def test_a_renamed_document_is_told_with_the_path_that_it_had(self, filled: Source, documents: Mapping[str, bytes]) -> None:
        if not filled.kind.is_files:
            assert not filled.kind.feed_tells_renames, "numbers do not change"
            return
        old, new = "reports/deep/er/numbers.csv", "reports/moved/numbers.csv"
        before = listed(filled)[old]
        cursor = begin(filled) if filled.kind.has_feed else None
        filled.rename(old, new)
        after = listed(filled)
        assert set(after) == set(documents) - {old} | {new}
        assert after[new].size == before.size
        if cursor is not None and filled.kind.feed_tells_renames:
            changes, _ = follow(filled, cursor)
            assert [(change.operation, change.old_path, change.path) for change in changes] == [(Operation.UPSERT, old, new)]

    def test_many_documents_of_one_moment_are_each_told_once(self, filled: Source) -> None:
        if not filled.kind.has_feed:
            assert filled.connector.changes({}) is None
            return
        cursor = begin(filled)
        names = [f"same{number}.txt" if filled.kind.is_files else str(200 + number) for number in range(7)]
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

    def test_a_feed_read_again_from_a_cursor_tells_the_same(self, filled: Source, one: str) -> None:
        if not filled.kind.has_feed:
            assert filled.connector.changes({}) is None
            return
        cursor = begin(filled)
        filled.put(one, b"Edited.")
        filled.pass_time(timedelta(minutes=1))
        assert follow(filled, cursor) == follow(filled, cursor)

    def test_a_cursor_that_the_source_forgot_is_an_expired_one(self, filled: Source) -> None:
        if not filled.kind.has_feed:
            assert filled.connector.changes({}) is None
            return
        cursor = begin(filled)
        filled.expire()
        with pytest.raises(CursorExpired):
            follow(filled, cursor)
        again = filled.connector.list(cursor)
        list(again)
        assert again.cursor is not None
        assert follow(filled, again.cursor)[0] == []

    def test_a_document_changed_between_two_pages_hides_no_other(self, filled: Source, one: str, documents: Mapping[str, bytes]) -> None:
        if not filled.kind.has_pages:
            assert set(listed(filled)) == set(documents), "a listing is one look"
            return
        filled.pass_time(timedelta(minutes=1))
        filled.between_pages(lambda: filled.put(one, b"Edited while the pages are read."))
        assert set(listed(filled)) == set(documents)

    def test_a_time_to_wait_is_honoured_within_the_quota_and_defers_beyond_it(self, filled: Source) -> None:
        if not filled.kind.is_remote:
            assert listed(filled), "there is no service that could ask to wait"
            return
        filled.trouble(429, {"Retry-After": "2"}, times=2)
        assert listed(filled)
        filled.trouble(429, {"Retry-After": "4000"}, times=1)
        with pytest.raises(Deferred, match="4000 s"):
            listed(filled)

    def test_a_token_that_was_renewed_is_taken_once_and_one_that_was_not_is_an_error(self, filled: Source) -> None:
        if not filled.kind.is_remote:
            assert listed(filled), "there is no token"
            return
        assert listed(filled)
        filled.change_token(known=True)
        assert listed(filled)
        filled.change_token(known=False)
        with pytest.raises(PrimerError, match="refused the credentials file:") as caught:
            listed(filled)
        assert "token-" not in str(caught.value)

    def test_a_time_without_a_zone_is_refused(self, filled: Source) -> None:
        if not filled.kind.is_remote:
            assert all(item.modified_ns > 0 for item in listed(filled).values()), "times are counted from the epoch"
            return
        filled.tell_no_zone()
        with pytest.raises(PrimerError, match="time"):
            listed(filled)

    def test_a_kind_without_webhooks_says_so_and_one_with_refuses_a_body_that_is_not_its_own(self, source: Source) -> None:
        if not source.kind.has_webhooks:
            assert source.connector.decode({}, b"{}") is None
            return
        with pytest.raises(PrimerError, match="webhook of "):
            source.connector.decode({}, b"no json")
