"""Deletes that a broken source cannot cause: what a listing no longer shows is held, and goes by a second listing or a person's word."""

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from primer_assets import held_decisions
from primer_core.delete_guard import Verdict
from primer_core.failures import PrimerError, SystemFault
from primer_core.source_health import Health
from primer_resources.catalog.held_deletes import HeldState
from primer_resources.catalog.schema import held_deletes
from primer_resources.connectors.drive import DriveConnector, DriveSettings
from primer_resources.settings import load_settings
from tests.primer_resources.catalog.world import LEASE, SOURCE, World
from tests.scripted_source import ScriptedSource
from tests.source_bench import Bench

MANY = 100


@pytest.fixture
def bench(world: World, tmp_path: Path) -> Bench:
    return Bench(world, tmp_path, interval=timedelta(0))


@pytest.fixture
def source(bench: Bench) -> ScriptedSource:
    """A source of a hundred documents that was listed once; it is listed in full at every turn."""
    made = ScriptedSource()
    for number in range(MANY):
        made.put(f"p{number:03}.txt", b"%d" % number)
    bench.sync(made)
    return made


def approve(bench: Bench) -> int:
    return held_decisions.approve(bench.world.catalog, SOURCE, "ana", "decider", LEASE)


def reject(bench: Bench) -> None:
    held_decisions.reject(bench.world.catalog, SOURCE, "ben", "decider", LEASE)


def report(bench: Bench) -> held_decisions.HeldReport:
    (found,) = held_decisions.held_reports(bench.world.catalog, 3)
    return found


def test_a_listing_that_fails_at_its_third_page_deletes_nothing_and_says_so(bench: Bench, source: ScriptedSource) -> None:
    source.breaks_after = 30
    turn = bench.sync(source)
    assert turn.decision is not None
    assert (turn.decision.verdict, len(bench.living()), bench.sync_report.held) == (Verdict.REFUSE, MANY, 0)
    assert "none of 70 documents" in turn.decision.reasons[0]
    assert report(bench).held is None
    assert "page 3 answered 503" in (report(bench).said or "")


@pytest.mark.parametrize("shown", [(), ("p000.txt", "p001.txt")], ids=["an empty listing", "two percent"])
def test_a_complete_listing_of_little_deletes_nothing_and_is_held(bench: Bench, source: ScriptedSource, shown: tuple[str, ...]) -> None:
    source.shows, bench.confirms_held = shown, False
    for _ in range(3):  # as sensors do within the hour: that the same listing comes again proves nothing yet
        turn = bench.sync(source)
        assert turn.decision is not None
        assert turn.decision.verdict is Verdict.HOLD
    assert (len(bench.living()), bench.job_count("delete")) == (MANY, 0)
    found = report(bench)
    assert found.held is not None
    assert (found.held.state, found.held.documents, found.still_missing) == (HeldState.HELD, MANY - len(shown), MANY - len(shown))
    assert "98 of 100" in found.held.reasons[0] or "100 of 100" in found.held.reasons[0]
    assert len(found.sample) == 3
    bench.confirms_held = True
    bench.sync(source)
    assert set(bench.living()) == set(shown), "a second complete listing agrees"
    assert bench.world.rows(held_deletes)[0].state == HeldState.DELETED


def test_a_connector_that_gives_no_listing_fails_the_sync_and_deletes_nothing(bench: Bench, source: ScriptedSource) -> None:
    source.list = lambda cursor=None: None  # type: ignore[method-assign, assignment, misc]
    with pytest.raises(SystemFault, match="no listing at all"):
        bench.sync(source)
    assert len(bench.living()) == MANY
    assert "no listing at all" in (bench.world.catalog.sources.get(SOURCE).last_error or "")


def test_an_incomplete_listing_between_two_that_agree_forgets_nothing(bench: Bench, source: ScriptedSource) -> None:
    source.shows, bench.confirms_held = (), False
    bench.sync(source)
    source.shows, source.breaks_after = None, 10
    bench.sync(source)
    assert bench.world.catalog.sources.get(SOURCE).held_count == MANY
    source.shows, source.breaks_after, bench.confirms_held = (), None, True
    bench.sync(source)
    assert bench.living() == {}


def test_a_complete_listing_deletes_a_few_at_once(bench: Bench, source: ScriptedSource) -> None:
    source.shows = sorted(source.items)[10:]
    bench.sync(source)
    assert sorted(bench.living()) == list(source.shows)
    assert bench.world.rows(held_deletes) == []


def test_a_delete_in_a_folder_that_looks_unchanged_is_found(bench: Bench, tmp_path: Path) -> None:
    folder = tmp_path / "drive" / "folder"
    folder.mkdir(parents=True)
    for name in ("stays.txt", "goes.txt"):
        (folder / name).write_text(name)
    os.utime(folder, (1_000_000_000, 1_000_000_000))
    bench.sync(DriveConnector(DriveSettings(root=folder.parent, groups=("everyone",))))
    (folder / "goes.txt").unlink()
    os.utime(folder, (1_000_000_000, 1_000_000_000))
    bench.sync(DriveConnector(DriveSettings(root=folder.parent, groups=("everyone",))))
    assert set(bench.living()) == {"folder/stays.txt"}


def test_approved_deletes_go_without_another_listing_and_who_said_so_is_known(bench: Bench, source: ScriptedSource) -> None:
    source.shows, bench.confirms_held = sorted(source.items)[:2], False
    bench.sync(source)
    assert approve(bench) == MANY - 2
    assert sorted(bench.living()) == list(source.shows)
    assert bench.job_count("delete") == MANY - 2
    (row,) = bench.world.rows(held_deletes)
    assert (row.state, row.decided_by) == (HeldState.DELETED, "ana")
    assert row.decided_at is not None
    assert bench.world.catalog.sources.get(SOURCE).held_count == 0
    with pytest.raises(PrimerError, match="no held deletes"):
        approve(bench)
    bench.sync(source)
    assert sorted(bench.living()) == list(source.shows)


def test_an_approval_is_for_that_set_and_no_other(bench: Bench, source: ScriptedSource) -> None:
    bench.interval = timedelta(days=1)
    source.shows, bench.confirms_held = (), False
    bench.world.catalog.sources.list_next([SOURCE])
    bench.sync(source)
    source.shows = None
    source.put("p007.txt", b"It was edited, so it is there.")
    bench.sync(source)  # by the feed
    with pytest.raises(PrimerError, match="99 of these documents are missing now"):
        approve(bench)
    assert len(bench.living()) == MANY
    assert report(bench).still_missing == MANY - 1


def test_a_document_that_is_touched_while_an_approval_runs_stays(
    bench: Bench, source: ScriptedSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    source.shows, bench.confirms_held = (), False
    bench.sync(source)
    documents = bench.world.catalog.documents
    whole = documents.living_page

    def late(*args: Any, **kwargs: Any) -> Any:
        page = whole(*args, **kwargs)
        if page:
            with bench.world.catalog.database.begin() as connection:
                documents.mark_present(connection, [page[0].doc_id])
        return page

    monkeypatch.setattr(documents, "living_page", late)
    assert approve(bench) == MANY - 1
    assert len(bench.living()) == 1


def test_an_approval_that_was_killed_half_way_goes_on(bench: Bench, source: ScriptedSource, monkeypatch: pytest.MonkeyPatch) -> None:
    source.shows, bench.confirms_held = (), False
    bench.sync(source)
    monkeypatch.setattr(held_decisions, "LISTED_A_BATCH", 30)
    catalog = bench.world.catalog
    whole, calls = catalog.jobs.add, 0

    def dies(*args: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 31:
            raise SystemFault("the disk is full")
        whole(*args)

    monkeypatch.setattr(catalog.jobs, "add", dies)
    with pytest.raises(SystemFault):
        approve(bench)
    assert len(bench.living()) == MANY - 30
    assert report(bench).held is not None
    assert approve(bench) == MANY - 30
    assert bench.living() == {}


def test_rejected_deletes_are_not_let_through_by_any_listing_until_approved(bench: Bench, source: ScriptedSource) -> None:
    source.shows = ()
    bench.confirms_held = False
    bench.sync(source)
    reject(bench)
    bench.confirms_held = True
    for _ in range(3):
        turn = bench.sync(source)
        assert turn.decision is not None
        assert "an operator rejected the deletes of some of them" in turn.decision.reasons[0]
    assert len(bench.living()) == MANY
    found = report(bench)
    assert found.held is not None
    assert (found.held.state, found.held.decided_by) == (HeldState.REJECTED, "ben")
    assert bench.world.catalog.sources.get(SOURCE).held_count == MANY
    assert approve(bench) == MANY


def test_a_decision_on_deletes_is_no_sync_that_broke_off(bench: Bench, source: ScriptedSource) -> None:
    source.shows, bench.confirms_held = (), False
    bench.sync(source)
    for decide in (reject, approve):
        bench.world.pass_time(timedelta(seconds=1))
        decide(bench)
        (health,) = bench.world.catalog.pulses.sources(load_settings().pulse_limits.stalled)
        assert health.health is Health.GOOD, health.reason


@pytest.mark.parametrize("less", [1, 7])
def test_rejected_deletes_wait_though_others_vanish_with_them_or_some_come_back(bench: Bench, source: ScriptedSource, less: int) -> None:
    paths = sorted(source.items)
    source.shows, bench.confirms_held = paths[12:], False
    bench.sync(source)
    reject(bench)
    bench.confirms_held = True
    for shows in (paths[13:], paths[13:], paths[12 - less :], paths[12 - less :]):
        source.shows = shows
        bench.sync(source)
        assert len(bench.living()) == MANY
    assert approve(bench) == 12 - less
    assert len(bench.living()) == MANY - 12 + less


def test_a_rejected_set_that_came_back_is_no_longer_reported_and_is_remembered(bench: Bench, source: ScriptedSource) -> None:
    source.shows, bench.confirms_held = (), False
    bench.sync(source)
    reject(bench)
    source.shows, bench.confirms_held = None, True
    bench.sync(source)
    assert held_decisions.held_reports(bench.world.catalog, 3) == []
    assert bench.world.catalog.sources.get(SOURCE).held_count == 0
    source.shows = ()
    bench.sync(source)
    bench.sync(source)
    assert len(bench.living()) == MANY
    source.shows = sorted(source.items)[:1]
    bench.sync(source)
    bench.sync(source)
    assert len(bench.living()) == MANY, "those that are missing still are those that were rejected"
    assert approve(bench) == MANY - 1


def test_an_approval_does_not_open_the_door_for_a_later_set(bench: Bench, source: ScriptedSource) -> None:
    source.shows, bench.confirms_held = (), False
    bench.sync(source)
    approve(bench)
    source.shows = None
    bench.sync(source)
    assert len(bench.living()) == MANY
    source.shows = ()
    turn = bench.sync(source)
    assert turn.decision is not None
    assert (turn.decision.verdict, len(bench.living())) == (Verdict.HOLD, MANY)
    assert report(bench).held is not None


def test_nobody_decides_while_a_sync_is_under_way(bench: Bench, source: ScriptedSource) -> None:
    source.shows, bench.confirms_held = (), False
    bench.sync(source)
    bench.world.catalog.sources.acquire(SOURCE, "a run", LEASE)
    with pytest.raises(PrimerError, match="is being synced now"):
        approve(bench)
    with pytest.raises(PrimerError, match="is being synced now"):
        reject(bench)


def test_a_listing_where_nothing_changed_writes_nothing(bench: Bench, source: ScriptedSource) -> None:
    before = bench.world.snapshot()
    bench.sync(source)
    after = bench.world.snapshot()
    assert {name for name in before if before[name] != after[name]} <= {"sources"}
