"""Every connector against the suite that every connector passes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from primer_resources.connectors.registry import KINDS
from tests.conformance.connector_bench import ConnectorBench, Trait
from tests.conformance.connector_feeds import FeedSuite, ServiceSuite, WebhookSuite
from tests.conformance.connector_suite import ListingSuite
from tests.conformance.connector_syncs import SyncSuite
from tests.conformance.sources import BucketBench, DavBench, DriveBench, MediaWikiBench, TicketBench, WikiBench
from tests.dav_server import dav_server
from tests.git_history import HistoryRepo
from tests.git_server import git_server
from tests.mediawiki_server import mediawiki_server
from tests.s3_server import s3_server
from tests.ticket_server import ticket_server


class ConnectorSuite(ListingSuite, FeedSuite, WebhookSuite, ServiceSuite, SyncSuite):
    """All of it."""


class TestDrive(ConnectorSuite):
    @pytest.fixture
    def source(self, tmp_path: Path) -> DriveBench:
        return DriveBench(tmp_path)


class TestDriveOverWebDav(ConnectorSuite):
    @pytest.fixture
    def source(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DavBench]:
        monkeypatch.setattr("primer_resources.connectors.dav_walk.DEEPEST", 8)
        (tmp_path / "the drive").mkdir()
        with dav_server(tmp_path / "the drive") as server:
            yield DavBench(server, tmp_path)


class TestWiki(ConnectorSuite):
    @pytest.fixture
    def source(self, tmp_path: Path) -> Iterator[WikiBench]:
        repo = HistoryRepo(tmp_path / "the wiki.git")
        with git_server(repo) as host:
            yield WikiBench(repo, host, tmp_path)


class TestMediaWiki(ConnectorSuite):
    @pytest.fixture
    def source(self, tmp_path: Path) -> Iterator[MediaWikiBench]:
        with mediawiki_server() as wiki:
            yield MediaWikiBench(wiki, tmp_path)


class TestObjectStore(ConnectorSuite):
    @pytest.fixture
    def source(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BucketBench]:
        monkeypatch.setattr("primer_resources.connectors.object_store.LIST_PAGE", 2)
        monkeypatch.setattr("primer_resources.s3.RETRIES", 0)
        with s3_server() as bucket:
            yield BucketBench(bucket, tmp_path)


class TestTickets(ConnectorSuite):
    @pytest.fixture
    def source(self, tmp_path: Path) -> Iterator[TicketBench]:
        with ticket_server() as tracker:
            yield TicketBench(tracker, tmp_path)


BENCHES: dict[str, tuple[type[ConnectorBench], ...]] = {
    "drive": (DriveBench, DavBench),
    "wiki": (WikiBench, MediaWikiBench),
    "object_store": (BucketBench,),
    "tickets": (TicketBench,),
}


def test_every_kind_of_source_passes_the_suite() -> None:
    assert set(BENCHES) == set(KINDS)


@pytest.mark.parametrize("trait", Trait)
def test_every_trait_is_tested_with_some_source(trait: Trait) -> None:
    assert any(trait not in bench.lacks for benches in BENCHES.values() for bench in benches)
