"""What every connector must do, part three: whole syncs of its source into a real catalog, whatever the source does meanwhile."""

import shutil
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from primer_core.failures import PrimerError, Reason
from tests.conformance.connector_bench import ConnectorBench, Trait
from tests.conformance.connector_feeds import NEW, OLD
from tests.conformance.connector_suite import Filled, needs
from tests.primer_resources.catalog.world import SOURCE, World
from tests.source_bench import Bench

DAY = timedelta(days=1)


class SyncSuite(Filled):
    """The source, its connector and a catalog."""

    @pytest.fixture
    def syncs(self, sqlite_template: Path, tmp_path: Path) -> Bench:
        """A catalog whose clock is later than what the sources write."""
        shutil.copy(sqlite_template, tmp_path / "catalog.sqlite")
        world = World(f"sqlite:///{tmp_path / 'catalog.sqlite'}")
        world.clock.moment = world.clock.moment.replace(year=2027)
        return Bench(world, tmp_path)

    def test_five_documents_of_a_second_and_one_that_came_later_in_it_are_each_new_once(self, source: ConnectorBench, syncs: Bench) -> None:
        names = [f"same{number}.txt" if source.has(Trait.FOLDERS) else str(200 + number) for number in range(6)]
        source.pass_time(timedelta(minutes=1))
        syncs.sync(source.open())
        source.pass_time(timedelta(minutes=1))
        new = 0
        for arrived in (names[:5], names[5:], []):
            for name in arrived:
                source.put(name, name.encode())
            syncs.sync(source.open())
            new += syncs.sync_report.new
        assert new == len(syncs.living()) == 6
        before = syncs.living()
        source.put(names[2], b"Edited in that very second.")
        syncs.sync(source.open())
        assert {name for name, content in syncs.living().items() if content != before[name]} == {names[2]}

    @needs(Trait.PAGES)
    def test_what_changes_between_two_pages_is_there_after_the_next_sync(self, filled: ConnectorBench, syncs: Bench, one: str) -> None:
        filled.pass_time(timedelta(minutes=1))
        filled.between_pages(lambda: filled.put(one, b"Edited while the pages are read."))
        syncs.sync(filled.open())
        before = syncs.living()
        filled.pass_time(timedelta(minutes=1))
        filled.put(one, b"Edited once more.")
        syncs.world.pass_time(DAY)
        syncs.sync(filled.open())
        assert set(syncs.living()) == set(before)
        assert {path for path, content in syncs.living().items() if content != before[path]} == {one}

    def test_a_listing_that_shows_nothing_is_held_and_forgotten_when_all_is_there_again(self, source: ConnectorBench, syncs: Bench) -> None:
        for number in range(15):
            source.put(f"page-{number}.txt" if source.has(Trait.FOLDERS) else str(300 + number), b"Text %d." % number)
        syncs.sync(source.open())
        before = syncs.living()
        source.blank()
        syncs.confirms_held = False
        syncs.world.pass_time(DAY)
        syncs.sync(source.open())
        assert syncs.living() == before
        assert syncs.world.catalog.sources.get(SOURCE).held_count == 15
        source.unblank()
        syncs.confirms_held = True
        syncs.sync(source.open())
        assert (syncs.living(), syncs.world.catalog.sources.get(SOURCE).held_count) == (before, 0)

    @needs(Trait.PAGES)
    def test_a_listing_that_fails_at_its_third_page_deletes_nothing_and_keeps_the_cursor(
        self, filled: ConnectorBench, syncs: Bench, one: str
    ) -> None:
        syncs.sync(filled.open())
        before, cursor = syncs.living(), syncs.world.catalog.sources.get(SOURCE).cursor
        filled.remove(one)
        filled.break_listing(2)
        syncs.world.pass_time(DAY)
        turn = syncs.sync(filled.open())
        assert turn.listed is not None
        assert not turn.listed.is_complete
        found = syncs.world.catalog.sources.get(SOURCE)
        assert (syncs.living(), found.cursor) == (before, cursor)
        assert "broke off" in (found.last_error or "")

    def test_a_source_that_is_gone_deletes_nothing(self, filled: ConnectorBench, syncs: Bench) -> None:
        syncs.sync(filled.open())
        before = syncs.living()
        filled.vanish()
        syncs.world.pass_time(DAY)
        with pytest.raises(PrimerError):
            syncs.sync(filled.open())
        assert syncs.living() == before
        assert syncs.world.catalog.sources.get(SOURCE).last_error

    @needs(Trait.FEED)
    def test_an_expired_cursor_is_a_full_listing_whose_deletes_are_guarded(self, filled: ConnectorBench, syncs: Bench, one: str) -> None:
        for number in range(15):
            filled.put(f"page-{number}.txt" if filled.has(Trait.FOLDERS) else str(300 + number), b"Text %d." % number)
        syncs.sync(filled.open())
        before, old = syncs.living(), syncs.world.catalog.sources.get(SOURCE).cursor
        filled.remove(one)
        filled.expire()
        turn = syncs.sync(filled.open())
        assert turn.why_listed is not None
        assert turn.decision is not None
        assert set(syncs.living()) == set(before) - {one}
        assert syncs.world.catalog.sources.get(SOURCE).cursor not in (None, old)
        assert syncs.sync(filled.open()).why_listed is None
        syncs.confirms_held = False
        filled.expire()
        filled.blank()
        assert syncs.sync(filled.open()).why_listed is not None
        assert set(syncs.living()) == set(before) - {one}

    @needs(Trait.FEED, Trait.PAGES)
    def test_an_expired_cursor_stays_until_a_listing_is_complete(self, filled: ConnectorBench, syncs: Bench) -> None:
        syncs.sync(filled.open())
        old = syncs.world.catalog.sources.get(SOURCE).cursor
        filled.expire()
        filled.break_listing(2)
        syncs.sync(filled.open())
        assert syncs.world.catalog.sources.get(SOURCE).cursor == old
        filled.trouble(500, {}, times=0)
        assert syncs.sync(filled.open()).why_listed is not None
        assert syncs.world.catalog.sources.get(SOURCE).cursor != old
        assert syncs.sync(filled.open()).why_listed is None

    @needs(Trait.SERVICE)
    def test_a_service_that_throttles_blames_no_document_and_the_next_sync_goes_on(
        self, filled: ConnectorBench, syncs: Bench, one: str
    ) -> None:
        syncs.sync(filled.open())
        before = syncs.living()
        filled.pass_time(timedelta(minutes=1))
        filled.put(one, b"Edited before the service asked to wait.")
        filled.trouble(429, {"Retry-After": "4000"}, times=10_000)
        with pytest.raises(PrimerError):
            syncs.sync(filled.open())
        assert syncs.living() == before
        filled.trouble(429, {}, times=0)
        syncs.sync(filled.open())
        assert syncs.living()[one] not in (None, before[one])

    @needs(Trait.FORBIDDEN)
    def test_one_forbidden_document_among_many_is_a_dead_letter_and_the_others_are_there(
        self, filled: ConnectorBench, syncs: Bench, one: str, documents: Mapping[str, bytes]
    ) -> None:
        filled.forbid(one)
        syncs.sync(filled.open())
        assert syncs.row(one).reason == Reason.UNREADABLE
        assert {path for path, content in syncs.living().items() if content is not None} == set(documents) - {one}
        assert syncs.world.catalog.sources.get(SOURCE).last_error is None

    @pytest.mark.parametrize("is_seen", [True, False])
    def test_deleted_and_made_again_it_is_the_same_document(self, filled: ConnectorBench, syncs: Bench, one: str, is_seen: bool) -> None:
        syncs.sync(filled.open())
        doc_id, before = syncs.row(one).doc_id, syncs.living()
        filled.pass_time(timedelta(minutes=1))
        filled.remove(one)
        if is_seen:
            syncs.world.pass_time(DAY)
            syncs.sync(filled.open())
            assert set(syncs.living()) == set(before) - {one}
        filled.pass_time(timedelta(minutes=1))
        filled.put(one, b"Made again.")
        syncs.sync(filled.open())
        assert syncs.row(one).doc_id == doc_id
        assert set(syncs.living()) == set(before)
        assert syncs.living()[one] != before[one]

    @needs(Trait.FOLDERS)
    def test_a_renamed_document_stays_itself_and_goes_through_no_stage_again(self, filled: ConnectorBench, syncs: Bench) -> None:
        syncs.sync(filled.open())
        doc_id, before, jobs = syncs.row(OLD).doc_id, syncs.living(), syncs.job_count("upsert")
        filled.rename(OLD, NEW)
        syncs.sync(filled.open())
        assert syncs.row(NEW).doc_id == doc_id
        assert syncs.living() == {NEW if path == OLD else path: content for path, content in before.items()}
        assert (syncs.job_count("upsert"), syncs.job_count("delete"), syncs.sync_report.renamed) == (jobs, 0, 1)

    def test_a_source_that_is_shared_anew_changes_one_row_and_reads_nothing(
        self, filled: ConnectorBench, syncs: Bench, documents: Mapping[str, bytes]
    ) -> None:
        filled.share(["everyone"])
        syncs.sync(filled.open())
        filled.share(["board", "staff"])
        syncs.sync(filled.open())
        assert syncs.groups() == {"": ("board", "staff")}
        report = syncs.sync_report
        assert (report.acl_only, report.bytes_read, syncs.job_count("acl")) == (len(documents), 0, 0)

    @needs(Trait.FOLDER_PERMISSIONS)
    def test_a_folder_that_is_shared_anew_changes_one_row_and_reads_nothing(self, filled: ConnectorBench, syncs: Bench) -> None:
        filled.share_folder("reports", ["staff"])
        syncs.sync(filled.open())
        filled.share_folder("reports", ["board"])
        syncs.sync(filled.open())
        assert syncs.groups() == {"": ("everyone",), "reports": ("board",)}
        assert (syncs.sync_report.acl_only, syncs.sync_report.bytes_read, syncs.job_count("acl")) == (2, 0, 0)

    def test_permissions_that_cannot_be_read_hide_everything_and_change_no_row(
        self, filled: ConnectorBench, syncs: Bench, one: str
    ) -> None:
        filled.share(["staff"])
        syncs.sync(filled.open())
        filled.share(None)
        syncs.sync(filled.open())
        assert syncs.row(one).acl_error
        assert syncs.groups() == {"": ("staff",)}
        assert syncs.world.catalog.sources.get(SOURCE).last_error
        filled.share(["staff"])
        syncs.sync(filled.open())
        assert syncs.row(one).acl_error is None
