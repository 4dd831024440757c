"""The swap of the live version: refused with every reason, one transaction, one command back, and nothing left of what is dropped."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import select

from primer_assets.retired_versions import drop_retired
from primer_core.backfills import BackfillReason
from primer_core.failures import PrimerError
from primer_core.index_versions import CheckResult, VersionState
from primer_resources.catalog.promotions import PromotionRefused
from primer_resources.catalog.schema import documents, jobs
from primer_resources.catalog.schema_versions import metadata
from primer_resources.version_checks import Compared, measure
from tests.backfill_bench import BackfillBench
from tests.copies_bench import SPOILT
from tests.primer_resources.catalog.world import LEASE, RECHUNKED

LAG, KEPT = timedelta(minutes=5), timedelta(days=7)


@pytest.fixture
def bench(database_url: str, tmp_path: Path) -> Iterator[BackfillBench]:
    made = BackfillBench(database_url, tmp_path / "home")
    made.make()
    for number in range(3):
        made.put("north", f"{number}.md", f"alpha {number}|beta {number}")
    made.put("south", "copy.md", "alpha 0|beta 0")
    made.put("south", "broken.md", f"{SPOILT} bytes")
    made.index()
    yield made
    made.catalog.close()


def check(bench: BackfillBench, name: str = "v2") -> dict[str, bool]:
    catalog = bench.catalog
    version, live = catalog.deployments.version(name), catalog.deployments.live()
    golden: Any = SimpleNamespace(golden=SimpleNamespace(questions=(), canaries=()))
    results = measure(Compared(catalog, version, bench.tools[name], live, bench.tools[live.name]), golden)
    return {result.name: result.passed for result in results}


def build(bench: BackfillBench) -> None:
    bench.open()
    bench.fill(bench.begin_backfill())


def promote(bench: BackfillBench, name: str = "v2", **more: Any) -> None:
    bench.catalog.promotions.promote(name, LAG, KEPT, **more)


def live(bench: BackfillBench) -> str:
    return bench.catalog.deployments.live().name


def drop(bench: BackfillBench, checkpoint: Any = lambda _name: None) -> list[str]:
    """One run of what drops retired versions. Returns the partition keys that went."""
    gone: list[str] = []

    def drop_files(version: Any, _in_use: object) -> None:
        bench.tools[version.name].vectors.drop()
        bench.tools[version.name].keywords.drop()

    toolkit: Any = SimpleNamespace(drop=drop_files)
    bench.runs += 1
    drop_retired(bench.catalog, bench.settings, toolkit, f"retire-{bench.runs}", gone.append, checkpoint)
    return gone


def rows_of(bench: BackfillBench, version: str) -> dict[str, int]:
    """table → rows that name the version."""
    found = {}
    with bench.catalog.database.read() as connection:
        for table in metadata.tables.values():
            if "index_version" in table.c and table.name != "aliases":
                found[table.name] = len(connection.execute(select(table).where(table.c.index_version == version)).all())
    return {name: count for name, count in found.items() if count}


def test_a_version_becomes_live_when_all_its_checks_passed_since_it_was_filled(bench: BackfillBench) -> None:
    build(bench)
    with pytest.raises(PromotionRefused, match="check indexes_agree was not made since the backfill was finished"):
        promote(bench)
    assert set(check(bench).values()) == {True}
    promote(bench)
    assert live(bench) == "v2"
    before = bench.catalog.deployments.version("v1")
    assert before.state is VersionState.RETIRING
    assert before.retire_at is not None
    bench.put("north", "0.md", "gamma")
    bench.sync("north")
    bench.drain()
    assert bench.found("everyone", version="v1") == bench.found("everyone", version="v2") != set()


def test_one_command_goes_back_and_nothing_is_missing_there(bench: BackfillBench) -> None:
    build(bench)
    check(bench)
    with pytest.raises(PrimerError, match="no version to go back to: v1 is live"):
        bench.catalog.promotions.rollback()
    promote(bench)
    bench.put("north", "late.md", "delta")
    bench.sync("north")
    bench.drain()
    bench.catalog.promotions.rollback()
    assert live(bench) == "v1"
    assert ("north/late.md", "delta") in bench.found("everyone", version="v1")
    assert bench.catalog.deployments.version("v2").state is VersionState.BUILDING
    check(bench)
    promote(bench)
    assert live(bench) == "v2"


def test_a_half_filled_version_is_refused_whatever_its_checks_say(bench: BackfillBench) -> None:
    bench.open()
    backfill = bench.begin_backfill()
    assert check(bench)["documents_agree"] is False
    bench.feed(backfill)
    with pytest.raises(PromotionRefused, match="the backfill of v2 is not finished"):
        promote(bench)
    bench.fill(backfill)
    with pytest.raises(PromotionRefused, match="check documents_agree was not made since"):
        promote(bench)
    assert live(bench) == "v1"


def test_rows_that_are_missing_in_an_index_and_documents_that_died_refuse_it(bench: BackfillBench) -> None:
    build(bench)
    index: Any = bench.tools["v2"].keywords
    index.delete("00", [next(iter(index.rows))])
    assert check(bench)["indexes_agree"] is False
    with pytest.raises(PromotionRefused, match="check indexes_agree failed: 1 missing in keyword"):
        promote(bench)


def test_a_check_of_another_kind_that_fails_refuses_it_too_and_a_required_one_must_be_made(bench: BackfillBench) -> None:
    build(bench)
    check(bench)
    with pytest.raises(PromotionRefused, match="check recall was not made"):
        promote(bench, required=("recall",))
    failed = CheckResult("recall", False, "pdf found 3 of 9", {}, bench.catalog.now())
    bench.catalog.promotions.keep("v2", [failed])
    with pytest.raises(PromotionRefused, match="check recall failed: pdf found 3 of 9"):
        promote(bench)


def test_a_change_that_has_waited_too_long_for_the_version_refuses_it(bench: BackfillBench) -> None:
    build(bench)
    check(bench)
    bench.put("north", "0.md", "gamma")
    bench.sync("north")
    bench.sweep("v1")
    bench.world.pass_time(LAG + timedelta(seconds=5))
    with pytest.raises(PromotionRefused, match=r"a change has waited 3\d\d s for v2"):
        promote(bench)
    bench.drain()
    promote(bench)


def test_documents_show_how_they_stand_in_the_version_that_is_live(bench: BackfillBench) -> None:
    bench.open(recipe=RECHUNKED)
    bench.is_mended = True
    bench.fill(bench.begin_backfill(reason=BackfillReason.CHUNKER))
    broken = bench.row("south", "broken.md").doc_id
    (letter,) = bench.all(jobs, doc_id=broken, index_version="v2")
    bench.catalog.dead_letters.retry([letter.job_id])
    bench.drain()
    assert bench.row("south", "broken.md").status == "dead_letter"
    check(bench)
    promote(bench)
    assert bench.row("south", "broken.md").status == "indexed"
    bench.catalog.promotions.rollback()
    assert (bench.row("south", "broken.md").status, bench.row("south", "broken.md").reason) == ("dead_letter", "corrupt")


def test_what_is_retired_leaves_no_row_and_no_file_and_its_name_is_not_given_again(bench: BackfillBench) -> None:
    build(bench)
    check(bench)
    promote(bench)
    assert drop(bench) == [], "it is kept for a while"
    bench.world.pass_time(KEPT + timedelta(hours=1))

    def stop(name: str) -> None:
        if name == "rows gone":
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        drop(bench, stop)
    bench.world.pass_time(LEASE + timedelta(seconds=1))
    assert drop(bench) == ["v1"]
    assert rows_of(bench, "v1") == {}
    assert not [*bench.tools["v1"].vectors.row_ids(), *bench.tools["v1"].keywords.row_ids()]
    assert bench.catalog.deployments.version("v1").state is VersionState.RETIRED
    with pytest.raises(PrimerError, match="no version to go back to"):
        bench.catalog.promotions.rollback()
    bench.versions = ("v2",)
    bench.put("north", "0.md", "gamma")
    bench.index()
    assert rows_of(bench, "v1") == {}, "nothing is written to it any more"
    assert ("north/0.md", "gamma") in bench.found("everyone", version="v2")
    assert {row.status for row in bench.all(documents)} == {"indexed", "dead_letter"}


def test_a_version_that_a_run_writes_to_is_dropped_the_next_time(bench: BackfillBench) -> None:
    build(bench)
    bench.catalog.promotions.retire("v2")
    lanes = bench.catalog.lanes.buckets("v2")
    bench.catalog.lanes.acquire("v2", lanes[:1], "a-run", LEASE)
    assert drop(bench) == []
    assert rows_of(bench, "v2") != {}
    bench.catalog.lanes.release("a-run")
    assert drop(bench) == ["v2"]
    with pytest.raises(PrimerError, match="v1 is the live one"):
        bench.catalog.promotions.retire("v1")
