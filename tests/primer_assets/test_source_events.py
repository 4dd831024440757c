"""Events are hints: whatever is told, late, twice and in any order, the catalog ends up with what the source shows."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from primer_core import ids
from primer_core.failures import Deferred, Transient
from primer_core.ids import content_hash
from primer_core.source_time import to_ns
from primer_core.stages import Operation
from primer_resources.catalog.events import NewEvent
from primer_resources.catalog.schema import acls, documents, events, jobs
from primer_resources.connectors.base import Change
from tests.primer_resources.catalog.world import SOURCE, World
from tests.scripted_source import ScriptedSource
from tests.source_bench import Bench

LATER = timedelta(hours=2)


@pytest.fixture
def bench(sqlite_template: Path, tmp_path: Path) -> Bench:
    (tmp_path / "catalog.sqlite").write_bytes(sqlite_template.read_bytes())
    return Bench(World(f"sqlite:///{tmp_path / 'catalog.sqlite'}"), tmp_path)


@pytest.fixture
def source(bench: Bench) -> ScriptedSource:
    """A source without a feed, of three documents, listed once."""
    made = ScriptedSource(has_feed=False)
    for path in ("a.txt", "b.txt", "f/c.txt"):
        made.put(path, f"Text of {path}.".encode())
    bench.sync(made)
    made.fetched.clear()
    return made


def told(change: Change, groups: Sequence[str] | None = None, path: str | None = None) -> NewEvent:
    """The event that tells of a change."""
    key = ids.event_id(SOURCE, [change.path, change.operation, change.source_version, repr(groups), change.event_time.isoformat()])
    allowed = None if groups is None else tuple(groups)
    return NewEvent(SOURCE, key, path or change.path, None, change.operation, change.source_version, allowed, None, change.event_time)


def tell(bench: Bench, *changes: Change | NewEvent) -> set[str]:
    """Take events in as the API does. Returns the ids of those that were new."""
    catalog = bench.world.catalog
    new = [change if isinstance(change, NewEvent) else told(change) for change in changes]
    return catalog.inbox.receive(catalog.sources.get(SOURCE), new)


def settle(bench: Bench, source: ScriptedSource) -> None:
    """A turn for the events alone."""
    before = source.listings
    turn = bench.sync(source, is_due=False)
    assert (turn.is_whole, source.listings) == (False, before)


def contents(source: ScriptedSource) -> dict[str, str | None]:
    return {path: content_hash(data) for path, data in source.items.items()}


def states(bench: Bench) -> list[tuple[str, int]]:
    """(state, attempts) of all events, in the order they came."""
    with bench.world.catalog.database.read() as connection:
        return [tuple(row) for row in connection.execute(select(events.c.state, events.c.attempts).order_by(events.c.seq))]


def error(bench: Bench) -> str:
    """The error of the newest event."""
    with bench.world.catalog.database.read() as connection:
        return connection.execute(select(events.c.error).order_by(events.c.seq.desc()).limit(1)).scalar_one() or ""


def run_out(bench: Bench, source: ScriptedSource, turns: int = 5) -> None:
    for _ in range(turns):
        settle(bench, source)
        bench.world.pass_time(LATER)


def test_events_settle_their_documents_and_nothing_is_listed(bench: Bench, source: ScriptedSource) -> None:
    tell(bench, source.put("b.txt", b"Another text."), source.put("new.txt", b"New."), source.remove("a.txt"))
    settle(bench, source)
    assert bench.living() == contents(source)
    assert sorted(source.fetched) == ["b.txt", "new.txt"]
    assert states(bench) == [("done", 0)] * 3
    assert (bench.job_count("upsert"), bench.job_count("delete")) == (5, 1)


def test_a_version_that_comes_after_a_newer_one_changes_nothing(bench: Bench, source: ScriptedSource) -> None:
    v6 = source.put("a.txt", b"Version 6.")
    v7 = source.put("a.txt", b"Version 7.")
    tell(bench, v7)
    settle(bench, source)
    before = bench.row("a.txt")
    tell(bench, v6)
    settle(bench, source)
    after = bench.row("a.txt")
    assert (after.version_order, after.content_hash) == (before.version_order, before.content_hash)
    assert bench.living() == contents(source)
    assert states(bench) == [("done", 0)] * 2


def test_an_upsert_that_comes_after_the_delete_revives_nothing(bench: Bench, source: ScriptedSource) -> None:
    v7 = source.put("a.txt", b"Version 7.")
    v8 = source.remove("a.txt")
    tell(bench, v8)
    settle(bench, source)
    tell(bench, v7)
    settle(bench, source)
    assert bench.living() == contents(source)
    assert states(bench) == [("done", 0)] * 2
    # Not even where a part of the source still shows the old version.
    item = ScriptedSource(items={"a.txt": b"Version 7."}, orders={"a.txt": v7.order}).item("a.txt")
    source.stale["a.txt"] = item
    source.items["a.txt"] = b"Version 7."
    source.orders["a.txt"] = v7.order
    tell(bench, told(v7, groups=["another id"]))
    settle(bench, source)
    assert "a.txt" not in bench.living()


def test_the_same_event_twice_is_one_event(bench: Bench, source: ScriptedSource) -> None:
    change = source.put("a.txt", b"Other.")
    assert len(tell(bench, change, change)) == 1
    assert tell(bench, change) == set()
    settle(bench, source)
    assert tell(bench, change) == set()
    settle(bench, source)
    assert source.looked == ["a.txt"]


def test_a_document_that_is_made_again_under_its_path_lives_again_whatever_its_time(bench: Bench, source: ScriptedSource) -> None:
    tell(bench, source.remove("a.txt"))
    settle(bench, source)
    tell(bench, source.put("a.txt", b"Back."))
    settle(bench, source)
    assert bench.living() == contents(source)


def test_a_state_older_than_the_event_is_waited_for_and_then_reported(bench: Bench, source: ScriptedSource) -> None:
    source.stale["a.txt"] = source.item("a.txt")
    tell(bench, source.put("a.txt", b"Not there yet."))
    settle(bench, source)
    assert states(bench) == [("waiting", 1)]
    settle(bench, source)
    assert states(bench) == [("waiting", 1)], "it waits for its backoff"
    bench.world.pass_time(LATER)
    del source.stale["a.txt"]
    settle(bench, source)
    assert states(bench) == [("done", 1)]
    assert bench.living() == contents(source)
    source.stale["b.txt"] = source.item("b.txt")
    tell(bench, source.put("b.txt", b"Never."))
    run_out(bench, source)
    assert states(bench)[1] == ("dead", 5)
    assert "shows version r2 of handbook/b.txt, older than version r5" in error(bench)


def test_a_state_that_is_older_by_its_time_alone_ends_as_what_the_source_shows(bench: Bench, source: ScriptedSource) -> None:
    change = source.put("a.txt", b"Other.")
    now = bench.world.catalog.now()
    event = NewEvent(SOURCE, "e", "a.txt", None, Operation.UPSERT, "no-label-of-the-source", None, None, now)
    assert to_ns(change.event_time) < to_ns(now)
    tell(bench, event)
    settle(bench, source)
    assert (states(bench), bench.living()) == ([("waiting", 1)], contents(source))
    run_out(bench, source)
    assert states(bench) == [("done", 5)]


def test_a_source_that_does_not_answer_costs_no_event_an_attempt(bench: Bench, source: ScriptedSource) -> None:
    tell(bench, source.put("a.txt", b"One."), source.put("b.txt", b"Two."))
    source.mute = {"a.txt": Transient("503"), "b.txt": Transient("503")}
    for _ in range(7):
        settle(bench, source)
        bench.world.pass_time(LATER)
    assert states(bench) == [("waiting", 0)] * 2
    source.mute = {"a.txt": Transient("500 for this one"), "b.txt": Deferred("later")}
    tell(bench, source.put("f/c.txt", b"Three."))
    settle(bench, source)
    assert sorted(states(bench)) == [("done", 0), ("waiting", 0), ("waiting", 1)]
    source.mute = {}
    bench.world.pass_time(LATER)
    settle(bench, source)
    assert bench.living() == contents(source)


def test_a_document_that_changes_while_it_is_read_is_read_again(bench: Bench, source: ScriptedSource) -> None:
    change = source.put("a.txt", b"Other.")
    tell(bench, change)
    fetch, source.fetch = source.fetch, lambda item, target: (_ for _ in ()).throw(Transient("it changed"))  # type: ignore[method-assign]
    settle(bench, source)
    assert states(bench) == [("waiting", 1)]
    source.fetch = fetch  # type: ignore[method-assign]
    bench.world.pass_time(LATER)
    settle(bench, source)
    assert (states(bench), bench.living()) == ([("done", 1)], contents(source))


def test_a_source_with_a_feed_follows_it_and_looks_only_for_what_the_feed_does_not_tell(bench: Bench) -> None:
    source = ScriptedSource()
    source.put("a.txt", b"One.")
    source.put("b.txt", b"Two.")
    bench.sync(source)
    changed = source.put("a.txt", b"Other.")
    gone = source.remove("b.txt")
    source.log.remove(gone)
    tell(bench, changed, gone)
    turn = bench.sync(source, is_due=False)
    assert (turn.why_listed, turn.is_whole) == (None, True)
    assert source.looked == ["b.txt"]
    assert bench.living() == contents(source)
    assert states(bench) == [("done", 0)] * 2


def test_a_rename_told_as_two_events_keeps_the_document(bench: Bench, source: ScriptedSource) -> None:
    doc_id = bench.row("a.txt").doc_id
    gone, made = source.remove("a.txt"), source.put("z.txt", b"Text of a.txt.")
    tell(bench, made, gone)
    settle(bench, source)
    assert bench.row("z.txt").doc_id == doc_id
    assert bench.living() == contents(source)


def test_on_postgres_events_settle_wait_and_tell_permissions_as_well(postgres_url: str, tmp_path: Path) -> None:
    world = World(postgres_url)
    world.make()
    bench, source = Bench(world, tmp_path), ScriptedSource(has_feed=False)
    for path in ("a.txt", "b.txt"):
        source.put(path, f"Text of {path}.".encode())
    bench.sync(source)
    source.stale["b.txt"] = source.item("b.txt")
    tell(
        bench, acl_event(bench, "n.txt", ["hr"], 0), source.put("n.txt", b"New."), source.remove("a.txt"), source.put("b.txt", b"Not yet.")
    )
    settle(bench, source)
    assert sorted(states(bench)) == [("done", 0)] * 3 + [("waiting", 1)]
    assert (set(bench.living()), acl_of(bench, "n.txt")) == ({"b.txt", "n.txt"}, ("hr",))
    tell(bench, acl_event(bench, "n.txt", [], 1))
    assert acl_of(bench, "n.txt") == ()
    world.catalog.close()


OPERATIONS = st.lists(st.tuples(st.sampled_from(["a.txt", "b.txt", "n.txt"]), st.sampled_from(["put", "remove"])), min_size=1, max_size=6)


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(OPERATIONS, st.integers(0, 2**32), st.integers(1, 3))
def test_events_in_any_order_each_twice_end_as_the_source_stands(
    sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str]], seed: int, turns: int
) -> None:
    folder = tmp_path_factory.mktemp("any")
    (folder / "catalog.sqlite").write_bytes(sqlite_template.read_bytes())
    bench = Bench(World(f"sqlite:///{folder / 'catalog.sqlite'}"), folder)
    source = ScriptedSource(has_feed=False)
    for path in ("a.txt", "b.txt"):
        source.put(path, path.encode())
    bench.sync(source)
    changes = []
    for number, (path, step) in enumerate(steps):
        if step == "put":
            changes.append(source.put(path, f"{path} {number}".encode()))
        elif path in source.items:
            changes.append(source.remove(path))
    shuffled = changes * 2
    Random(seed).shuffle(shuffled)
    for part in range(turns):
        tell(bench, *shuffled[part::turns])
        settle(bench, source)
    run_out(bench, source, 1)
    assert bench.living() == contents(source)
    assert not [state for state, _ in states(bench) if state == "dead"]
    bench.world.catalog.close()


def acl_of(bench: Bench, path: str) -> tuple[str, ...]:
    """The groups that the reader's gate lets see the document."""
    statement = select(acls.c.allow_groups).join(documents, documents.c.acl_id == acls.c.acl_id)
    with bench.world.catalog.database.read() as connection:
        return tuple(connection.execute(statement.where(documents.c.path == path, documents.c.deleted_at.is_(None))).scalar_one())


def acl_event(bench: Bench, path: str, groups: Sequence[str] | None, minutes: int) -> NewEvent:
    at = bench.world.catalog.now() + timedelta(minutes=minutes)
    allowed = None if groups is None else tuple(groups)
    return NewEvent(SOURCE, f"{path} {groups} {minutes}", path, None, Operation.ACL, "acl", allowed, None, at)


def test_told_permissions_hold_at_once_and_the_sources_own_rules_do_not_override_them(bench: Bench, source: ScriptedSource) -> None:
    tell(bench, acl_event(bench, "a.txt", ["hr"], 1))
    assert (acl_of(bench, "a.txt"), acl_of(bench, "b.txt")) == (("hr",), ("everyone",))
    assert (states(bench), bench.job_count("acl")) == ([("done", 0)], 1)
    source.share("", "everyone", "guests")
    tell(bench, source.put("a.txt", b"Other."))
    settle(bench, source)
    bench.sync(source)
    assert (acl_of(bench, "a.txt"), acl_of(bench, "b.txt")) == (("hr",), ("everyone", "guests"))
    tell(bench, acl_event(bench, "a.txt", [], 2))
    assert acl_of(bench, "a.txt") == ()
    assert bench.job_count("acl") == 1, "other groups under the same id are one row"


def test_an_older_permission_changes_nothing_and_a_handed_back_document_follows_its_source(bench: Bench, source: ScriptedSource) -> None:
    tell(bench, acl_event(bench, "a.txt", ["hr"], 5))
    tell(bench, acl_event(bench, "a.txt", ["everyone"], 4))
    assert acl_of(bench, "a.txt") == ("hr",)
    tell(bench, acl_event(bench, "a.txt", None, 6))
    assert acl_of(bench, "a.txt") == ("hr",), "until the source's own rules were read"
    assert bench.world.catalog.sources.get(SOURCE).asked_at is not None
    tell(bench, acl_event(bench, "a.txt", ["board"], 3))
    bench.sync(source)
    assert acl_of(bench, "a.txt") == ("everyone",)
    with bench.world.catalog.database.read() as connection:
        assert connection.execute(select(jobs.c.job_id).where(jobs.c.operation == "acl", jobs.c.state == "pending_write")).all()


def test_permissions_told_before_the_document_hold_from_its_first_moment(bench: Bench, source: ScriptedSource) -> None:
    tell(bench, acl_event(bench, "n.txt", ["hr"], 1))
    settle(bench, source)
    assert states(bench) == [("waiting", 0)]
    source.put("n.txt", b"New.")
    bench.sync(source)
    assert (acl_of(bench, "n.txt"), states(bench)) == (("hr",), [("done", 0)])
    tell(bench, acl_event(bench, "m.txt", [], 1))
    source.put("m.txt", b"New as well.")
    settle(bench, source)
    assert (acl_of(bench, "m.txt"), states(bench)[1]) == ((), ("done", 0)), "an event of permissions tells of a new document, too"


def test_a_permission_told_while_a_sync_had_looked_already_is_not_undone(bench: Bench, source: ScriptedSource) -> None:
    source.put("a.txt", b"Other.")
    fetch = source.fetch

    def tells_meanwhile(item: Any, target: Path) -> Any:
        tell(bench, acl_event(bench, "a.txt", ["hr"], 1))
        return fetch(item, target)

    source.fetch = tells_meanwhile  # type: ignore[method-assign]
    bench.sync(source)
    assert acl_of(bench, "a.txt") == ("hr",)


def test_members_have_the_permissions_that_were_told_of_what_holds_them(bench: Bench, source: ScriptedSource) -> None:
    bench.mime = "text/plain"
    tell(bench, source.put("box.txt", b"member1:One.\nmember2:Two."))
    settle(bench, source)
    tell(bench, acl_event(bench, "box.txt", ["hr"], 1))
    assert {acl_of(bench, path) for path in ("box.txt", "box.txt/member1", "box.txt/member2")} == {("hr",)}
    tell(bench, source.put("box.txt", b"member1:One.\nmember3:Three."))
    settle(bench, source)
    bench.sync(source)
    assert acl_of(bench, "box.txt/member3") == ("hr",)
    member = bench.row("box.txt/member1")
    refused = acl_event(bench, "box.txt/member1", ["everyone"], 2)
    tell(bench, NewEvent(**{name: getattr(refused, name) for name in NewEvent.__slots__} | {"doc_id": member.doc_id}))
    settle(bench, source)
    assert (acl_of(bench, "box.txt/member1"), states(bench)[-1][0]) == (("hr",), "dead")
    assert "is a member of box.txt" in error(bench)
    bench.world.pass_time(LATER)
    upsert = NewEvent(SOURCE, "m", "box.txt/member1", None, Operation.UPSERT, "x", None, None, bench.world.catalog.now())
    tell(bench, upsert)
    settle(bench, source)
    assert "box.txt/member1" in bench.living(), "a member is asked for by what holds it"
