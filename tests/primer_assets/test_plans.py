"""A plan says what a sync will do and changes nothing; applied, it does exactly that or refuses."""

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from primer_assets.plan_applying import PlannedSync, PlanRefused, check_fits
from primer_assets.plan_file import read_plan, write_plan
from primer_assets.plan_making import Planner
from primer_core.failures import PrimerError
from primer_core.sync_plan import PlanOperation, SyncPlan
from tests.primer_assets.test_feed_sync import ACTS, act
from tests.primer_resources.catalog.world import BUCKETS, LEASE, SOURCE, TENANT, VERSION, World
from tests.scripted_source import ScriptedSource
from tests.source_bench import FAST, Bench, LineExpander
from tests.stores import folder_store


@pytest.fixture
def bench(world: World, tmp_path: Path) -> Bench:
    return Bench(world, tmp_path)


@pytest.fixture
def source(bench: Bench) -> ScriptedSource:
    """A source of some documents that was synced, by its feed from now on."""
    made = ScriptedSource(page_size=1)
    for path in ("a.txt", "b.txt", "f/c.txt", "f/d.txt", *(f"many/{number:02}.txt" for number in range(20))):
        made.put(path, f"Text of {path}.".encode())
    bench.sync(made)
    made.fetched.clear()
    return made


def planner(bench: Bench) -> Planner:
    from datetime import timedelta

    (bench.folder / "members").mkdir(parents=True, exist_ok=True)
    expander: Any = LineExpander(bench.folder / "members", bench.mime)
    shaped: Any = SimpleNamespace(full_listing_interval=timedelta(days=1), buckets=len(BUCKETS), fast_lane=FAST)
    return Planner(bench.world.catalog, folder_store(bench.world.catalog, bench.folder / "store"), expander, shaped)


def make(bench: Bench, source: ScriptedSource) -> SyncPlan:
    return planner(bench).plan(bench.world.catalog.sources.get(SOURCE), source, lambda _path, _name: 0)


def apply(bench: Bench, source: ScriptedSource, plan: SyncPlan) -> PlannedSync:
    """Apply a plan as the asset does."""
    catalog, tools = bench.world.catalog, planner(bench)
    present = check_fits(catalog, plan)
    taken = catalog.sources.acquire(SOURCE, "bench", LEASE)
    assert taken is not None
    sync = PlannedSync(
        catalog, tools.store.of(TENANT), source, tools.expander, present, *taken, len(BUCKETS), True, FAST, plan=plan
    )  # fmt: skip
    began_at = catalog.now()
    try:
        with closing(source):
            turn = sync.apply(tools, source)
    except PlanRefused:
        catalog.sources.release("bench")
        raise
    catalog.sources.finish(SOURCE, taken[1], began_at, None, turn.listed)
    if sync.not_applied:
        catalog.sources.list_next([SOURCE])
    return sync


def list_anew(bench: Bench) -> None:
    bench.world.catalog.sources.list_next([SOURCE])


def change_much(source: ScriptedSource) -> None:
    source.put("a.txt", b"Edited.")
    source.put("new.txt", b"New.")
    source.rename("b.txt", "g/b.txt")
    source.share("f", "board")
    source.remove("many/03.txt")
    source.unreadable = {"secret.txt"}
    source.put("secret.txt", b"Forbidden.")


@pytest.mark.parametrize("by_listing", [False, True], ids=["feed", "listing"])
def test_a_plan_changes_nothing_and_a_sync_after_it_does_what_it_said(bench: Bench, source: ScriptedSource, by_listing: bool) -> None:
    change_much(source)
    if by_listing:
        list_anew(bench)
    before, stored = bench.world.snapshot(), sorted(path for path in (bench.folder / "store").rglob("*"))
    plan = make(bench, source)
    assert bench.world.snapshot() == before
    assert sorted(path for path in (bench.folder / "store").rglob("*")) == stored
    assert (plan.why_listed is not None) is by_listing
    assert [(step.operation, step.path) for step in plan.steps if step.operation is not PlanOperation.TOUCH] == [
        (PlanOperation.UPDATE, "a.txt"),
        (PlanOperation.RENAME, "g/b.txt"),
        (PlanOperation.DELETE, "many/03.txt"),
        (PlanOperation.ADD, "new.txt"),
        (PlanOperation.ADD, "secret.txt"),
    ]
    assert [(acl.scope, acl.groups) for acl in plan.acls if acl.scope == "f"] == [("f", ("board",))]
    bench.sync(source)
    assert bench.sync_report.to_json() == dict(plan.figures)


@pytest.mark.parametrize("by_listing", [False, True], ids=["feed", "listing"])
def test_a_plan_that_still_fits_is_applied_whole_and_comes_through_its_file(
    bench: Bench, source: ScriptedSource, by_listing: bool, tmp_path: Path
) -> None:
    change_much(source)
    if by_listing:
        list_anew(bench)
    plan = make(bench, source)
    write_plan(tmp_path / "plan.json", plan)
    read = read_plan(tmp_path / "plan.json")
    assert read == plan
    sync = apply(bench, source, read)
    assert sync.report.to_json() == dict(plan.figures)
    assert sync.not_applied == []
    assert set(bench.living()) == set(source.items)
    assert make(bench, source).steps == ()


ELSEWHERE: Mapping[str, Callable[[ScriptedSource], Any]] = {
    "another edit": lambda source: source.put("a.txt", b"Edited twice."),
    "another document": lambda source: source.put("late.txt", b"Late."),
    "another delete": lambda source: source.remove("many/04.txt"),
    "another share": lambda source: source.share("f", "everyone", "guests"),
    "nothing left of it": lambda source: source.put("a.txt", b"Text of a.txt."),
}


@pytest.mark.parametrize("by_listing", [False, True], ids=["feed", "listing"])
@pytest.mark.parametrize("moved", ELSEWHERE)
def test_a_source_that_moved_on_is_refused_and_nothing_is_changed(
    bench: Bench, source: ScriptedSource, moved: str, by_listing: bool
) -> None:
    source.put("a.txt", b"Edited.")
    if by_listing:
        list_anew(bench)
    plan = make(bench, source)
    ELSEWHERE[moved](source)
    before = bench.living()
    with pytest.raises(PlanRefused, match="has moved on since"):
        apply(bench, source, plan)
    assert bench.living() == before
    bench.sync(source)
    assert set(bench.living()) == set(source.items)


def test_a_sync_in_between_makes_the_plan_void(bench: Bench, source: ScriptedSource) -> None:
    source.put("a.txt", b"Edited.")
    plan = make(bench, source)
    bench.sync(source)
    with pytest.raises(PlanRefused, match=r"moved the source's cursor on; a\.txt: planned update"):
        apply(bench, source, plan)


@pytest.mark.parametrize("by_listing", [False, True], ids=["feed", "listing"])
def test_an_item_whose_bytes_changed_unseen_is_left_and_told_and_the_rest_is_applied(
    bench: Bench, source: ScriptedSource, by_listing: bool
) -> None:
    source.put("a.txt", b"Edited.")
    source.rename("b.txt", "g/b.txt")
    source.put("new.txt", b"New.")
    if by_listing:
        list_anew(bench)
    plan = make(bench, source)
    whole = source.fetch

    def altered(item: Any, target: Path) -> Any:
        fetched = whole(item, target)
        if item.path in ("a.txt", "g/b.txt"):
            return replace(fetched, content_hash="0" * 64)
        return fetched

    source.fetch = altered  # type: ignore[method-assign]
    before = bench.living()
    sync = apply(bench, source, plan)
    assert "a.txt" in sync.not_applied
    assert any("a.txt" in notice for notice in sync.notices)
    assert bench.living()["a.txt"] == before["a.txt"]
    assert "new.txt" in bench.living()
    assert (sync.report.deleted, sync.report.held) == (0, 0), "a rename that could not be applied deletes nothing"
    source.fetch = whole  # type: ignore[method-assign]
    assert bench.sync(source).why_listed is not None
    assert set(bench.living()) == set(source.items)


def test_the_guard_has_its_say_in_a_plan(bench: Bench, source: ScriptedSource) -> None:
    source.shows = ["a.txt"]
    list_anew(bench)
    plan = make(bench, source)
    assert (plan.verdict, plan.counts()["hold"], plan.counts()["delete"]) == ("hold", 23, 0)
    apply(bench, source, plan)
    assert len(bench.living()) == 24
    agreed = make(bench, source)
    assert (agreed.verdict, agreed.counts()["delete"]) == ("apply", 23)
    source.breaks_after = 0
    refused = make(bench, source)
    assert (refused.verdict, refused.problems, refused.steps) == ("refuse", ("page 3 answered 503",), ())


def test_a_plan_of_elsewhere_or_of_another_recipe_or_format_is_refused(bench: Bench, source: ScriptedSource, tmp_path: Path) -> None:
    plan = make(bench, source)
    for other in (replace(plan, deployment="elsewhere"), replace(plan, recipes={VERSION: "another"}), replace(plan, format=99)):
        with pytest.raises(PlanRefused, match="make it anew"):
            check_fits(bench.world.catalog, other)
    with pytest.raises(PrimerError, match="unknown"):
        check_fits(bench.world.catalog, replace(plan, source="other"))
    (tmp_path / "none.json").write_text('{"format": 1}')
    with pytest.raises(PrimerError, match="is no plan of this Primer"):
        read_plan(tmp_path / "none.json")


@example(first=[("put", "a.txt", b"one")], then=[("put", "a.txt", b"member-x.txt:1\nmember-y.txt:2\n")], by_listing=True)
@given(st.lists(ACTS, max_size=8), st.lists(ACTS, max_size=8), st.booleans())
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_happened_the_plan_says_what_the_sync_does(
    sqlite_template: Path, tmp_path: Path, first: list[Any], then: list[Any], by_listing: bool
) -> None:
    database = tmp_path / "catalog.sqlite"
    for file in tmp_path.glob("catalog.sqlite*"):
        file.unlink()
    database.write_bytes(sqlite_template.read_bytes())
    bench = Bench(World(f"sqlite:///{database}"), tmp_path, mime="text/plain")
    source = ScriptedSource(page_size=50)
    for acts in (first, then):
        for kind, path, value in acts:
            if kind != "sync":
                act(source, kind, path, value)
        if acts is first:
            bench.sync(source)
    if by_listing:
        list_anew(bench)
    plan = make(bench, source)
    sync = apply(bench, source, plan)
    assert sync.report.to_json() == dict(plan.figures)
    assert sync.not_applied == []
    assert make(bench, source).steps == ()
    bench.world.catalog.close()
