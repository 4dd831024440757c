"""Backfills: a version filled from what is stored beside live changes, which it never undoes and never holds up."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread

import pytest

from primer_core.backfills import BackfillReason, BackfillState
from primer_core.failures import PrimerError
from primer_core.stages import EMBED, PARSE
from primer_resources.catalog.schema import documents, jobs
from primer_resources.catalog.schema_bodies import parsed
from tests.backfill_bench import BackfillBench
from tests.copies_bench import SPOILT
from tests.primer_resources.catalog.world import BUCKETS, LEASE, RECHUNKED, RECIPE, REPARSED


@pytest.fixture
def bench(database_url: str, tmp_path: Path) -> Iterator[BackfillBench]:
    made = BackfillBench(database_url, tmp_path / "home")
    made.make()
    yield made
    made.catalog.close()


def begin_with(bench: BackfillBench, count: int = 6) -> None:
    for number in range(count):
        bench.put("north", f"{number}.md", f"alpha {number}|beta {number}")
    bench.put("south", "copy.md", "alpha 0|beta 0")
    bench.put("south", "broken.md", f"{SPOILT} bytes")
    bench.index()


def test_a_new_model_reads_what_is_stored_and_parses_and_cuts_nothing(bench: BackfillBench) -> None:
    begin_with(bench)
    parses, chunked, fetched = bench.parses, bench.chunked, len(bench.all(parsed))
    bench.open()
    backfill = bench.begin_backfill()
    bench.fill(backfill)
    assert (bench.parses, bench.chunked, len(bench.all(parsed))) == (parses, chunked, fetched)
    assert bench.row_sets("v2") == bench.row_sets("v1")
    assert bench.second.asked == 12
    assert bench.found("everyone", version="v2") == bench.found("everyone")
    assert bench.reconcile("v2").agrees
    assert bench.broken_links() == []


def test_a_new_chunker_reads_stored_elements_and_parses_nothing(bench: BackfillBench) -> None:
    begin_with(bench)
    parses, chunked = bench.parses, bench.chunked
    bench.open(recipe=RECHUNKED)
    bench.fill(bench.begin_backfill(reason=BackfillReason.CHUNKER))
    assert bench.parses == parses
    assert bench.chunked == chunked + 6, "every content once, the copy not again"
    assert bench.found("everyone", version="v2") == bench.found("everyone")


def test_a_new_parser_reads_stored_bytes_and_tries_what_failed_once_more(bench: BackfillBench) -> None:
    begin_with(bench)
    bench.open(recipe=REPARSED)
    parses = bench.parses
    bench.is_mended = True
    bench.fill(bench.begin_backfill(reason=BackfillReason.PARSER))
    assert bench.parses == parses + 7
    assert ("south/broken.md", f"{SPOILT} bytes") in bench.found("everyone", version="v2")
    assert bench.row("south", "broken.md").status == "dead_letter", "the row shows how the live version stands"


def test_what_died_before_the_part_that_is_new_keeps_its_letter_and_is_not_tried_again(bench: BackfillBench) -> None:
    begin_with(bench)
    bench.open()
    bench.is_mended = True
    bench.fill(bench.begin_backfill())
    broken = bench.row("south", "broken.md").doc_id
    letters = {row.index_version: (row.state, row.stage, row.reason) for row in bench.all(jobs, doc_id=broken)}
    assert letters["v2"] == letters["v1"] == ("dead", PARSE.name, "corrupt")
    bench.catalog.dead_letters.retry([row.job_id for row in bench.all(jobs, doc_id=broken)])
    bench.drain()
    assert bench.found("everyone", version="v2") == bench.found("everyone")


def test_changes_made_meanwhile_are_in_both_versions_and_are_not_undone(bench: BackfillBench) -> None:
    begin_with(bench)
    bench.open()
    backfill = bench.begin_backfill()
    assert bench.feed(backfill, most_waiting=1) > 0, "some of it waits, some is not looked at yet"
    bench.put("north", "0.md", "gamma 0")
    bench.put("north", "5.md", "gamma 5")
    bench.put("north", "new.md", "delta")
    bench.sources["north"].remove("1.md")
    bench.sync("north")
    bench.feed(backfill)
    bench.sweep("v2")
    bench.put("north", "2.md", "epsilon")
    bench.sync("north")
    bench.fill(backfill)
    assert bench.row_sets("v2") == bench.row_sets("v1") == bench.fresh_row_sets()
    assert bench.found("everyone", version="v2") == bench.found("everyone")
    assert {text for _, text in bench.found("everyone")} >= {"gamma 0", "gamma 5", "delta", "epsilon", "alpha 0"}
    assert bench.reconcile("v2").agrees
    assert bench.broken_links() == []


def test_what_stands_in_the_version_as_it_is_now_gets_no_job(bench: BackfillBench) -> None:
    begin_with(bench)
    bench.open()
    bench.put("north", "0.md", "gamma 0")
    bench.index()
    edited = bench.row("north", "0.md").doc_id
    bench.fill(bench.begin_backfill())
    assert {row.backfill_id for row in bench.all(jobs, doc_id=edited)} == {None}
    again = bench.begin_backfill()
    bench.feed(again)
    looked = bench.catalog.backfills.find(again.backfill_id)
    assert looked.standing == looked.taken_up == 8
    assert bench.all(jobs, backfill_id=again.backfill_id) == []


def test_a_page_that_a_crash_undid_is_taken_again_and_nothing_twice(bench: BackfillBench) -> None:
    begin_with(bench)
    bench.open()
    backfill = bench.begin_backfill()

    def crash(*_: object) -> None:
        raise RuntimeError("killed")

    bench.catalog.backfills.take_page(backfill.backfill_id, "00", 1)
    ask, bench.catalog.backfills._ask = bench.catalog.backfills._ask, crash  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="killed"):
        bench.feed(backfill)
    bench.catalog.backfills._ask = ask  # type: ignore[method-assign]
    bench.fill(backfill)
    made = [row.doc_id for row in bench.all(jobs, index_version="v2") if row.backfill_id is not None]
    assert len(made) == len(set(made)) == 7
    found = bench.catalog.backfills.find(backfill.backfill_id)
    assert (found.state, found.taken_up, found.total) == (BackfillState.FINISHED, 8, 8)
    assert bench.row_sets("v2") == bench.row_sets("v1")


def test_live_jobs_of_a_version_go_before_those_of_its_backfill(bench: BackfillBench) -> None:
    begin_with(bench)
    bench.open()
    bench.feed(bench.begin_backfill())
    bench.put("north", "live.md", "zeta")
    bench.sync("north")
    held = bench.catalog.jobs.claim(PARSE, "v2", BUCKETS, "run", LEASE, 100, with_backfill=False)
    assert [job.doc_id for job in held] == [bench.row("north", "live.md").doc_id]
    launched = [row for row in bench.catalog.queue.waiting(timedelta(0)) if row.index_version == "v2"]
    assert not launched, "no sweep is launched for a backfill"
    assert sum(row.jobs for row in bench.catalog.queue.waiting_backfill("v2")) == 6, "the copy waits for its content's rows"


def test_a_live_copy_takes_the_rows_along_that_it_waits_for(bench: BackfillBench) -> None:
    begin_with(bench)
    bench.open()
    bench.feed(bench.begin_backfill())
    bench.put("south", "late.md", "alpha 3|beta 3")
    bench.sync("south")
    leading = bench.row("north", "3.md").doc_id
    assert [row.gives_way for row in bench.all(jobs, doc_id=leading, index_version="v2")] == [False]
    assert bench.catalog.queue.unfinished(["north", "south"]) > 0
    for version in ("v1", "v2") * 2:
        bench.sweep(version)
    assert bench.catalog.queue.unfinished(["south"]) == 0


def test_a_permission_that_changes_before_the_rows_are_made_needs_no_job_of_its_own(bench: BackfillBench) -> None:
    bench.put("north", "hr/pay.md", "alpha")
    bench.share("north", "hr", "everyone")
    bench.index("north")
    bench.open()
    backfill = bench.begin_backfill()
    bench.feed(backfill)
    bench.share("north", "hr", "hr")
    bench.sync("north")
    assert bench.texts("everyone") == set()
    bench.fill(backfill)
    assert (bench.texts("everyone", version="v2"), bench.texts("hr", version="v2")) == (set(), {"alpha"})
    assert bench.row_sets("v2") == bench.row_sets("v1")


def test_what_is_kept_no_more_is_asked_of_its_source_and_of_nobody_twice(bench: BackfillBench) -> None:
    begin_with(bench, 2)
    assert bench.settle() > 0
    bench.open(recipe=REPARSED)
    backfill = bench.begin_backfill(reason=BackfillReason.PARSER)
    bench.feed(backfill)
    asked = [row.path for row in bench.all(documents) if row.fetch_again]
    assert {"0.md", "1.md"} <= set(asked)
    assert bench.catalog.backfills.find(backfill.backfill_id).asked == len(asked)
    for name in bench.names:
        bench.sync(name)
    bench.fill(backfill)
    assert not [row.path for row in bench.all(documents) if row.fetch_again]
    assert bench.row_sets("v2") == bench.row_sets("v1")


def test_documents_that_were_never_read_keep_their_letter(bench: BackfillBench) -> None:
    begin_with(bench, 1)
    bench.put("north", "lost.md", "never read")
    bench.sources["north"].unreadable.add("lost.md")
    bench.sync("north")
    bench.open()
    bench.fill(bench.begin_backfill())
    lost = bench.row("north", "lost.md").doc_id
    assert {row.index_version: row.state for row in bench.all(jobs, doc_id=lost)} == {"v1": "dead", "v2": "dead"}


def test_a_cancelled_backfill_leaves_no_job_and_another_goes_on_where_it_stands(bench: BackfillBench) -> None:
    begin_with(bench)
    bench.open()
    first = bench.begin_backfill()
    bench.feed(first, most_waiting=2)
    with pytest.raises(PrimerError, match="is running already"):
        bench.begin_backfill()
    bench.catalog.backfills.steer(first.backfill_id, BackfillState.PAUSED)
    assert bench.feed(first) == 0
    bench.catalog.backfills.steer(first.backfill_id, BackfillState.CANCELLED)
    assert bench.catalog.queue.unfinished(with_backfill=True) == 0
    with pytest.raises(PrimerError, match="is cancelled; it is at its end"):
        bench.catalog.backfills.steer(first.backfill_id, BackfillState.RUNNING)
    bench.fill(bench.begin_backfill())
    assert bench.row_sets("v2") == bench.row_sets("v1")


def test_no_more_is_taken_up_than_the_rate_earns(bench: BackfillBench) -> None:
    begin_with(bench)
    bench.open()
    backfill = bench.begin_backfill(rate=1.0)
    assert bench.feed(backfill) == 0
    bench.world.pass_time(timedelta(seconds=3))
    assert 3 <= bench.feed(backfill) <= 4
    bench.world.pass_time(timedelta(hours=1))
    assert bench.feed(backfill) <= 10, "an hour of silence is not made good at once"


def test_a_version_that_has_nothing_new_and_one_that_is_live_are_not_filled(bench: BackfillBench) -> None:
    with pytest.raises(PrimerError, match="v1 is live; only one that is being built"):
        bench.begin_backfill("v1")
    with pytest.raises(PrimerError, match="v1 has this very recipe"):
        bench.open("v2", RECIPE)
    assert [version.name for version in bench.catalog.deployments.versions()] == ["v1"]


def test_nothing_of_a_backfill_is_claimed_while_live_work_is_late(bench: BackfillBench) -> None:
    begin_with(bench)
    bench.open()
    bench.feed(bench.begin_backfill())
    bench.put("north", "late.md", "zeta")
    bench.sync("north")
    bench.world.pass_time(bench.settings.backfill_yields_after + timedelta(seconds=1))
    bench.sweep("v2")
    assert bench.found("everyone", version="v2") == {("north/late.md", "zeta")}, "what is live goes on"
    bench.sweep("v1")
    bench.sweep("v2")
    assert bench.found("everyone", version="v2") == bench.found("everyone")


def test_a_change_does_not_wait_for_a_backfill_whose_run_has_died(bench: BackfillBench) -> None:
    begin_with(bench)
    bench.open()
    backfill = bench.begin_backfill()
    bench.feed(backfill)
    assert bench.catalog.jobs.claim(EMBED, "v2", BUCKETS, "dead-run", LEASE, 100)
    bench.catalog.backfills.steer(backfill.backfill_id, BackfillState.PAUSED)
    bench.put("north", "3.md", "gamma")
    bench.sync("north")
    bench.world.pass_time(LEASE + timedelta(seconds=1))
    for _ in range(2):
        bench.sweep("v2")
    assert bench.found("everyone", version="v2") == {("north/3.md", "gamma")}
    assert bench.catalog.queue.unfinished(["north"]) == 1, "the live version's own job"
    bench.catalog.backfills.steer(backfill.backfill_id, BackfillState.CANCELLED)
    for _ in range(2):
        bench.sweep("v1")
        bench.sweep("v2")
    assert bench.catalog.queue.unfinished(with_backfill=True) == 0


def test_a_version_is_opened_between_two_changes_and_never_in_the_middle_of_one(bench: BackfillBench) -> None:
    """Of a change that was written to the old versions only, the snapshot knows; whoever comes later writes to the new one, too."""
    catalog, opened = bench.catalog, Event()

    def open_version() -> None:
        bench.open()
        opened.set()

    with catalog.database.begin() as connection:
        assert catalog.deployments.written_to(connection) == ["v1"]
        opening = Thread(target=open_version)
        opening.start()
        assert not opened.wait(0.3)
    opening.join()
    with catalog.database.begin() as connection:
        assert catalog.deployments.written_to(connection) == ["v1", "v2"]
