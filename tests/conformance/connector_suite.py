"""What every connector must do, whatever its source. test_connectors.py puts each kind's bench (see connector_bench) through it.

The classes are not collected by themselves; subclasses with a `source` fixture are. A test that needs a trait which a bench lacks asserts
what the connector must say instead (PROBES), and passes. What the tests of a whole sync need is in connector_syncs.
"""

import functools
import hashlib
import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from primer_core.failures import DocumentFault, Reason, SystemFault, Transient
from primer_resources.connectors.base import Change, Cursor, ListedItem
from tests.conformance.connector_bench import ACTS, ConnectorBench, Trait

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


def listed(source: ConnectorBench) -> dict[str, ListedItem]:
    """A complete listing by path."""
    listing = source.connector.list()
    items = list(listing)
    assert listing.problems == ()
    assert len({item.path for item in items}) == len(items)
    return {item.path: item for item in items}


def begin(source: ConnectorBench) -> Cursor:
    """List the source, let its clock go on, and give the cursor that a feed goes on from, as the catalog keeps it."""
    source.pass_time(timedelta(minutes=1))
    listing = source.connector.list()
    list(listing)
    assert listing.cursor is not None
    source.pass_time(timedelta(minutes=1))
    cursor: Cursor = json.loads(json.dumps(listing.cursor))
    return cursor


def follow(source: ConnectorBench, cursor: Cursor) -> tuple[list[Change], Cursor]:
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


def _says_no_feed(source: ConnectorBench) -> None:
    listing = source.connector.list()
    list(listing)
    assert listing.cursor is None
    assert source.connector.changes({}) is None


def _says_no_webhooks(source: ConnectorBench) -> None:
    assert source.connector.decode({}, b"{}") is None


def _says_one_scope(source: ConnectorBench) -> None:
    assert {item.access.scope for item in listed(source).values()} <= {""}


def _tells_no_delete(source: ConnectorBench) -> None:
    if source.has(Trait.FEED):
        cursor = begin(source)
        source.remove(min(listed(source)))
        source.pass_time(timedelta(minutes=1))
        assert follow(source, cursor)[0] == []


PROBES: Mapping[Trait, Callable[[ConnectorBench], None]] = {
    Trait.FEED: _says_no_feed,
    Trait.WEBHOOKS: _says_no_webhooks,
    Trait.FOLDER_PERMISSIONS: _says_one_scope,
    Trait.DELETES_TOLD: _tells_no_delete,
}
"""What a connector says itself of a trait that its source lacks. Of the others only the bench can tell."""


def needs(*traits: Trait) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test where the source has these traits. Where it lacks one, assert that the connector says so."""

    def wrap(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(self: Any, **fixtures: Any) -> None:
            source = fixtures["filled"] if "filled" in fixtures else fixtures["source"]
            missing = [trait for trait in traits if not source.has(trait)]
            if not missing:
                test(self, **fixtures)
            for trait in missing:
                assert source.lacks[trait]
                PROBES.get(trait, lambda _: None)(source)

        return run

    return wrap


class Filled:
    """The fixtures. Each test begins with an empty source, or with one that holds `documents`."""

    @pytest.fixture
    def documents(self, source: ConnectorBench) -> Mapping[str, bytes]:
        return DOCUMENTS if source.has(Trait.FOLDERS) else TICKETS

    @pytest.fixture
    def filled(self, source: ConnectorBench, documents: Mapping[str, bytes]) -> ConnectorBench:
        for path, data in documents.items():
            source.put(path, data)
        return source

    @pytest.fixture
    def one(self, documents: Mapping[str, bytes]) -> str:
        """The path of a document."""
        return next(iter(documents))


class ListingSuite(Filled):
    """Listings, looks, permissions and fetches."""

    def test_what_a_kind_lacks_is_said_with_a_reason_and_is_true(self, filled: ConnectorBench) -> None:
        for trait in Trait:
            given = [act for act in ACTS[trait] if getattr(type(filled), act) is not getattr(ConnectorBench, act)]
            if filled.has(trait):
                assert given == list(ACTS[trait]), f"{trait.name}: the bench gives {given} only"
            else:
                assert len(filled.lacks[trait]) > 8, f"{trait.name} lacks a reason"
                assert given == [], f"{trait.name} is said to be lacking, and the bench gives {given}"
                PROBES.get(trait, lambda _: None)(filled)

    def test_an_empty_source_is_a_complete_listing_of_nothing(self, source: ConnectorBench) -> None:
        assert listed(source) == {}

    def test_every_document_is_listed_once_and_without_fault(self, filled: ConnectorBench, documents: Mapping[str, bytes]) -> None:
        items = listed(filled)
        assert set(items) == set(documents)
        assert {item.fault for item in items.values()} == {None}
        sizes = {path: len(data) if filled.has_sizes else 0 for path, data in documents.items()}
        assert {path: item.size for path, item in items.items()} == sizes

    def test_two_listings_of_an_unchanged_source_are_equal_in_order_too(self, filled: ConnectorBench) -> None:
        assert list(filled.connector.list()) == list(filled.connector.list())

    def test_a_listing_can_be_read_again(self, filled: ConnectorBench) -> None:
        listing = filled.connector.list()
        assert list(listing) == list(listing)
        assert listing.problems == ()

    def test_a_listing_that_was_not_read_to_its_end_is_no_evidence(self, filled: ConnectorBench) -> None:
        listing = filled.connector.list()
        assert listing.problems != ()
        next(iter(listing))
        assert listing.problems != ()

    @needs(Trait.PAGES)
    @pytest.mark.parametrize("after", [1, 2])
    def test_a_listing_that_breaks_off_half_way_is_no_evidence(self, filled: ConnectorBench, after: int) -> None:
        filled.break_listing(after)
        listing = filled.connector.list()
        shown = list(listing)
        assert 0 < len(shown) < len(DOCUMENTS)
        assert listing.problems != ()
        assert listing.cursor is None

    @needs(Trait.PAGES)
    def test_pages_that_never_end_are_no_listing_and_no_loop(self, filled: ConnectorBench) -> None:
        filled.loop_pages()
        listing = filled.connector.list()
        try:
            assert len(list(listing)) <= len(DOCUMENTS)
        except (Transient, SystemFault):
            return
        assert listing.problems != ()

    @needs(Trait.PAGES)
    def test_a_document_changed_between_two_pages_hides_no_other(
        self, filled: ConnectorBench, one: str, documents: Mapping[str, bytes]
    ) -> None:
        filled.pass_time(timedelta(minutes=1))
        filled.between_pages(lambda: filled.put(one, b"Edited while the pages are read."))
        assert set(listed(filled)) == set(documents)

    def test_a_look_shows_what_a_listing_shows(self, filled: ConnectorBench, one: str) -> None:
        listing = filled.connector.list()
        items = {item.path: item for item in listing}
        assert {path: filled.connector.look(path, listing.cursor) for path in items} == items
        filled.put(one, b"Edited.")
        assert filled.connector.look(one, listing.cursor) == {item.path: item for item in filled.connector.list(listing.cursor)}[one]

    def test_a_look_at_what_no_listing_shows_finds_nothing(self, filled: ConnectorBench, one: str) -> None:
        filled.remove(one)
        ways_out = ("../plan.txt", "..", ".", "reports/../reports.txt", "./reports.txt", "/reports.txt", "reports//reports.txt", "/etc")
        no_names = ("", "/", "a\0b", "a\nb", "\ud800", "\\x2e\\x2e/plan.txt", "x" * 5000, "-1", "0", "2/comments", "2?x=1")
        folders = ("reports", "reports/", "reports/deep", "reports.txt/", "reports.txt/x")
        for path in (one, *ways_out, *no_names, *folders):
            assert filled.connector.look(path) is None, path

    def test_a_look_says_who_may_read_or_that_it_is_not_known(self, filled: ConnectorBench, one: str) -> None:
        filled.share(None)
        item = filled.connector.look(one)
        assert item is not None
        assert not item.access.readable
        filled.share(["staff"])
        item = filled.connector.look(one)
        assert item is not None
        assert item.access.groups == ("staff",)

    def test_a_look_at_a_source_that_is_gone_is_no_absence(self, filled: ConnectorBench, one: str) -> None:
        filled.vanish()
        with pytest.raises((Transient, SystemFault)):
            filled.connector.look(one)

    @needs(Trait.FORBIDDEN)
    def test_a_look_at_what_is_closed_to_us_is_no_absence(self, filled: ConnectorBench, one: str) -> None:
        filled.forbid(one)
        try:
            item = filled.connector.look(one)
        except Transient:
            return
        assert item is not None
        assert item.fault is Reason.UNREADABLE

    def test_a_title_is_the_last_part_of_the_path_and_a_uri_is_plain_ascii(self, filled: ConnectorBench) -> None:
        items = listed(filled)
        if filled.has(Trait.FOLDERS):
            assert all(item.title == path.rpartition("/")[2] for path, item in items.items())
        assert all(item.title for item in items.values())
        assert all(item.uri.isascii() and " " not in item.uri and "#" not in item.uri and "://" in item.uri for item in items.values())
        assert len({item.uri for item in items.values()}) == len(items)

    def test_every_document_says_who_may_read_it_or_that_it_is_not_known(self, filled: ConnectorBench) -> None:
        for item in listed(filled).values():
            assert item.access.readable is (item.access.error == "")

    def test_permissions_that_cannot_be_read_are_not_those_of_nobody(self, filled: ConnectorBench) -> None:
        filled.share(None)
        assert {(item.access.readable, item.access.groups, item.access.error != "") for item in listed(filled).values()} == {
            (False, (), True)
        }
        filled.share([])
        assert {(item.access.readable, item.access.groups) for item in listed(filled).values()} == {(True, ())}

    def test_a_source_that_is_shared_anew_has_other_groups_and_the_same_contents(self, filled: ConnectorBench) -> None:
        filled.share(["everyone"])
        before = listed(filled)
        filled.share(["board", "staff"])
        after = listed(filled)
        assert {item.access.groups for item in after.values()} == {("board", "staff")}
        assert {path: item.fingerprint for path, item in before.items()} == {path: item.fingerprint for path, item in after.items()}
        assert {path: item.access.scope for path, item in before.items()} == {path: item.access.scope for path, item in after.items()}

    @needs(Trait.FOLDER_PERMISSIONS)
    def test_a_folder_that_is_shared_anew_is_one_scope_whose_groups_change(self, filled: ConnectorBench) -> None:
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

    @needs(Trait.PERMISSION_PAGES)
    def test_permissions_of_several_pages_are_all_of_them_or_unreadable(self, filled: ConnectorBench) -> None:
        groups = ["board", "docs", "legal", "ops", "staff"]
        filled.share(groups)
        assert {item.access.groups for item in listed(filled).values()} == {tuple(groups)}
        for after in (1, 2):
            filled.break_permissions(after)
            assert {(item.access.readable, item.access.groups) for item in listed(filled).values()} == {(False, ())}

    def test_a_fetch_copies_the_bytes_and_tells_their_hash(
        self, filled: ConnectorBench, documents: Mapping[str, bytes], tmp_path: Path
    ) -> None:
        for number, (path, item) in enumerate(listed(filled).items()):
            target = tmp_path / str(number)
            fetched = filled.connector.fetch(item, target)
            data = target.read_bytes()
            assert data == documents[path] if filled.has(Trait.FOLDERS) else documents[path] in data
            assert fetched.content_hash == hashlib.sha256(data).hexdigest()
            assert fetched.size == len(data)
            assert fetched.fingerprint == item.fingerprint
            assert fetched.modified_ns == item.modified_ns

    def test_a_fetch_replaces_what_an_earlier_attempt_left(self, filled: ConnectorBench, one: str, tmp_path: Path) -> None:
        target, again = tmp_path / "copy", tmp_path / "again"
        target.write_bytes(b"x" * 100_000)
        item = listed(filled)[one]
        filled.connector.fetch(item, target)
        filled.connector.fetch(item, again)
        assert target.read_bytes() == again.read_bytes()

    def test_a_new_content_has_a_new_fingerprint_and_touches_no_other_document(self, filled: ConnectorBench, one: str) -> None:
        before = listed(filled)
        filled.put(one, b"The plan has grown by a few words.\n")
        after = listed(filled)
        assert {path for path in before if before[path].fingerprint != after[path].fingerprint} == {one}

    def test_a_removed_document_is_gone_from_a_listing_that_is_still_complete(
        self, filled: ConnectorBench, documents: Mapping[str, bytes]
    ) -> None:
        third = list(documents)[2]
        filled.remove(third)
        assert set(listed(filled)) == set(documents) - {third}

    def test_a_document_that_vanishes_before_it_is_fetched_is_tried_again_and_leaves_no_copy(
        self, filled: ConnectorBench, one: str, documents: Mapping[str, bytes], tmp_path: Path
    ) -> None:
        item = listed(filled)[one]
        filled.remove(one)
        if filled.keeps_states:
            filled.connector.fetch(item, tmp_path / "copy")
            assert (tmp_path / "copy").read_bytes() == documents[one]
            return
        with pytest.raises(Transient, match=one.replace(".", r"\.")):
            filled.connector.fetch(item, tmp_path / "copy")
        assert not (tmp_path / "copy").exists()

    def test_a_document_over_the_limit_is_refused_before_it_is_copied(self, source: ConnectorBench, tmp_path: Path) -> None:
        name = "huge.bin" if source.has(Trait.FOLDERS) else "99"
        source.put(name, b"x" * 5_000_000)
        with pytest.raises(DocumentFault, match=rf"{name}.*500\d\d\d\d") as caught:
            source.connector.fetch(listed(source)[name], tmp_path / "copy")
        assert caught.value.reason is Reason.TOO_LARGE
        assert not (tmp_path / "copy").exists()
