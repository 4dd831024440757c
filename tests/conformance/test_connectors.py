"""Every connector against the suite that every connector passes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from primer_resources.connectors.registry import KINDS
from tests.conformance.connector_suite import ConnectorSuite
from tests.conformance.sources import BucketSource, DriveSource, TicketSource, WikiSource
from tests.ticket_server import ticket_server


class TestDrive(ConnectorSuite):
    @pytest.fixture
    def source(self, tmp_path: Path) -> DriveSource:
        return DriveSource(tmp_path)


class TestWiki(ConnectorSuite):
    @pytest.fixture
    def source(self, tmp_path: Path) -> WikiSource:
        return WikiSource(tmp_path)


class TestObjectStore(ConnectorSuite):
    @pytest.fixture
    def source(self, tmp_path: Path) -> BucketSource:
        return BucketSource(tmp_path)


class TestTickets(ConnectorSuite):
    @pytest.fixture
    def source(self, tmp_path: Path) -> Iterator[TicketSource]:
        with ticket_server() as tracker:
            yield TicketSource(tracker, tmp_path)


def test_every_kind_of_source_passes_the_suite() -> None:
    assert set(KINDS) == {"drive", "wiki", "object_store", "tickets"}
