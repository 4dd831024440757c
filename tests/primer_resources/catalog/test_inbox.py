"""The inbox on both databases: what is told is kept once, permissions hold at once, and what waits is found without looking at the rest."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import select

from primer_core.stages import Operation
from primer_resources.catalog.events import NewEvent
from primer_resources.catalog.schema import acls, documents, events, jobs
from tests.primer_resources.catalog.world import SOURCE, World, facts, place, source

DAY = timedelta(days=1)


def event(world: World, path: str, op: Operation = Operation.UPSERT, groups: Sequence[str] | None = None, at: int = 0) -> NewEvent:
    allowed = None if groups is None else tuple(groups)
    moment: datetime = world.catalog.now() + timedelta(seconds=at)
    return NewEvent(SOURCE, f"{path}-{op}-{groups}-{at}", path, None, op, "v1", allowed, None, moment)


def receive(world: World, *told: NewEvent) -> set[str]:
    return world.catalog.inbox.receive(world.catalog.sources.get(SOURCE), told)


def add(world: World, path: str) -> str:
    """A document of the source."""
    with world.catalog.database.begin() as connection:
        known = world.catalog.sources.get(SOURCE)
        assert world.catalog.documents.add(connection, known, f"doc-{path}", place(path), facts(1))
    return f"doc-{path}"


def groups_of(world: World, path: str) -> list[str] | None:
    statement = select(acls.c.allow_groups).join(documents, documents.c.acl_id == acls.c.acl_id).where(documents.c.path == path)
    with world.catalog.database.read() as connection:
        return connection.execute(statement).scalar_one_or_none()


def test_an_event_is_kept_once_and_a_batch_in_its_order(world: World) -> None:
    assert receive(world, event(world, "b"), event(world, "a"), event(world, "b")) == {"b-upsert-None-0", "a-upsert-None-0"}
    assert receive(world, event(world, "a")) == set()
    due = world.catalog.events.due(SOURCE, world.catalog.now(), 0, 10)
    assert sorted(found.path for found in due) == ["a", "b"]
    assert world.catalog.events.due_sources() == [SOURCE]
    assert world.catalog.events.due(SOURCE, world.catalog.now(), due[0].seq, 10) == due[1:]
    with world.catalog.database.begin() as connection:
        world.catalog.events.finish(connection, [found.seq for found in due])
    assert world.catalog.events.due_sources() == []
    assert receive(world, event(world, "a")) == set(), "what is done is still known"
    world.pass_time(DAY)
    assert world.catalog.events.prune(world.catalog.now(), 10) == 2


def test_events_of_a_removed_source_wake_nobody(world: World) -> None:
    receive(world, event(world, "a"))
    world.catalog.sources.remove(SOURCE)
    assert world.catalog.events.due_sources() == []


def test_permissions_are_moved_by_compare_and_set_on_their_time(world: World) -> None:
    doc_id = add(world, "a")
    receive(world, event(world, "a", Operation.ACL, ["hr"], 20))
    receive(world, event(world, "a", Operation.ACL, ["everyone"], 10))
    assert groups_of(world, "a") == ["hr"]
    receive(world, event(world, "a", Operation.ACL, ["x"], 30), event(world, "a", Operation.ACL, [], 30))
    assert groups_of(world, "a") == [], "of two with one time the later one in the batch"
    with world.catalog.database.read() as connection:
        rows = connection.execute(select(jobs.c.doc_id).where(jobs.c.operation == "acl")).scalars().all()
    assert rows == [doc_id]
    assert world.catalog.acls.open_to("acme", ["hr"]) == frozenset()


def test_permissions_of_one_source_do_not_reach_another_ones_document(world: World) -> None:
    other = source("other", settings={"root": "/other"})
    world.catalog.sources.add(other)
    doc_id = add(world, "a")
    foreign = NewEvent("other", "e", "a", doc_id, Operation.ACL, "v1", ("thief",), None, world.catalog.now())
    world.catalog.inbox.receive(other, [foreign])
    assert groups_of(world, "a") is None
    assert world.catalog.acls.open_to("acme", ["thief"]) == frozenset()


def test_the_sources_own_rules_do_not_move_a_document_whose_permissions_were_told(world: World) -> None:
    doc_id = add(world, "a")
    receive(world, event(world, "a", Operation.ACL, ["hr"], 1))
    with world.catalog.database.begin() as connection:
        catalog = world.catalog
        catalog.documents.grant(connection, doc_id, "acl-b", "unreadable")
        catalog.documents.move(connection, doc_id, place("a", "acl-b", "unreadable"))
        assert catalog.documents.advance(connection, doc_id, place("a", "acl-b", "unreadable"), facts(2, "two"))
    assert groups_of(world, "a") == ["hr"]
    found = world.catalog.documents.by_id([doc_id])[doc_id]
    assert found.acl_error is None
    with world.catalog.database.begin() as connection:
        assert world.catalog.documents.tombstone(connection, [found], world.catalog.now()) == [doc_id]
        known = world.catalog.sources.get(SOURCE)
        assert world.catalog.documents.add(connection, known, doc_id, place("a", "acl-b"), facts(9))
    assert groups_of(world, "a") == ["hr"], "deleted and made again, it is the same document"


def test_a_dead_event_waits_for_an_operator(world: World) -> None:
    receive(world, event(world, "a"))
    [waiting] = world.catalog.events.due(SOURCE, world.catalog.now(), 0, 1)
    with world.catalog.database.begin() as connection:
        world.catalog.events.bury(connection, waiting.seq, "no")
        world.catalog.events.finish(connection, [waiting.seq])
    [dead] = world.catalog.events.dead([SOURCE], 0, 10)
    assert (dead.error, world.catalog.events.due_sources()) == ("no", [])
    assert world.catalog.events.retry([dead.seq]) == 1
    assert world.catalog.events.retry([dead.seq]) == 0
    assert world.catalog.events.due_sources() == [SOURCE]
    with world.catalog.database.read() as connection:
        assert connection.execute(select(events.c.state, events.c.error)).one() == ("waiting", None)
