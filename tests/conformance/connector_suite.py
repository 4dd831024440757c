"""What every connector must do, whatever its source. A connector's tests subclass ConnectorSuite and give it a `source` fixture.

The class is not collected by itself; the subclass is, under its own name.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import pytest

from primer_core.failures import DocumentFault, Reason, Transient
from primer_resources.connectors.base import Connector, ListedItem

DOCUMENTS: Mapping[str, bytes] = {
    "plan.txt": b"The plan is short.\n",
    "reports/2024 überblick & ausblick #1.md": "# Überblick\n\nAlles läuft.\n".encode(),
    "reports/deep/er/numbers.csv": b"a,b\n1,2\n",
    "reports.txt": b"A file beside a folder of nearly the same name.\n",
    "empty.txt": b"",
    "large.bin": bytes(range(256)) * 9000,
}
"""Path → bytes: names that need encoding, a folder and a file that sort close to each other, an empty file, one of several reads."""


class Source(Protocol):
    """A source that a test can change from the outside, and a connector to it."""

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


def listed(source: Source) -> dict[str, ListedItem]:
    """A complete listing by path."""
    listing = source.connector.list()
    items = list(listing)
    assert listing.problems == ()
    assert len({item.path for item in items}) == len(items)
    return {item.path: item for item in items}


class ConnectorSuite:
    """The tests. Each begins with an empty source."""

    @pytest.fixture
    def filled(self, source: Source) -> Source:
        for path, data in DOCUMENTS.items():
            source.put(path, data)
        return source

    def test_an_empty_source_is_a_complete_listing_of_nothing(self, source: Source) -> None:
        assert listed(source) == {}

    def test_every_document_is_listed_once_and_without_fault(self, filled: Source) -> None:
        items = listed(filled)
        assert set(items) == set(DOCUMENTS)
        assert {item.fault for item in items.values()} == {None}
        assert {path: item.size for path, item in items.items()} == {path: len(data) for path, data in DOCUMENTS.items()}

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

    def test_a_title_is_the_last_part_of_the_path_and_a_uri_is_plain_ascii(self, filled: Source) -> None:
        items = listed(filled)
        assert all(item.title == path.rpartition("/")[2] for path, item in items.items())
        assert all(item.uri.isascii() and " " not in item.uri and "#" not in item.uri and "://" in item.uri for item in items.values())
        assert len({item.uri for item in items.values()}) == len(items)

    def test_every_document_says_who_may_read_it_or_that_it_is_not_known(self, filled: Source) -> None:
        for item in listed(filled).values():
            assert item.access.readable is (item.access.error == "")

    def test_a_fetch_copies_the_bytes_and_tells_their_hash(self, filled: Source, tmp_path: Path) -> None:
        for number, (path, item) in enumerate(listed(filled).items()):
            target = tmp_path / str(number)
            fetched = filled.connector.fetch(item, target)
            assert target.read_bytes() == DOCUMENTS[path]
            assert fetched.content_hash == hashlib.sha256(DOCUMENTS[path]).hexdigest()
            assert fetched.size == len(DOCUMENTS[path])
            assert fetched.fingerprint == item.fingerprint
            assert fetched.modified_ns == item.modified_ns

    def test_a_fetch_replaces_what_an_earlier_attempt_left(self, filled: Source, tmp_path: Path) -> None:
        target = tmp_path / "copy"
        target.write_bytes(b"x" * 100_000)
        filled.connector.fetch(listed(filled)["plan.txt"], target)
        assert target.read_bytes() == DOCUMENTS["plan.txt"]

    def test_a_new_content_has_a_new_fingerprint_and_touches_no_other_document(self, filled: Source) -> None:
        before = listed(filled)
        filled.put("plan.txt", b"The plan has grown by a few words.\n")
        after = listed(filled)
        assert {path for path in before if before[path].fingerprint != after[path].fingerprint} == {"plan.txt"}

    def test_a_removed_document_is_gone_from_a_listing_that_is_still_complete(self, filled: Source) -> None:
        filled.remove("reports/deep/er/numbers.csv")
        assert set(listed(filled)) == set(DOCUMENTS) - {"reports/deep/er/numbers.csv"}

    def test_a_document_that_vanishes_before_it_is_fetched_is_tried_again_and_leaves_no_copy(self, filled: Source, tmp_path: Path) -> None:
        item = listed(filled)["plan.txt"]
        filled.remove("plan.txt")
        with pytest.raises(Transient, match=r"plan\.txt"):
            filled.connector.fetch(item, tmp_path / "copy")
        assert not (tmp_path / "copy").exists()

    def test_a_document_over_the_limit_is_refused_before_it_is_copied(self, source: Source, tmp_path: Path) -> None:
        source.put("huge.bin", b"\0" * 5_000_000)
        with pytest.raises(DocumentFault, match=r"huge\.bin.*5000000") as caught:
            source.connector.fetch(listed(source)["huge.bin"], tmp_path / "copy")
        assert caught.value.reason is Reason.TOO_LARGE
        assert not (tmp_path / "copy").exists()
