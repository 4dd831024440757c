from datetime import timedelta

import pytest

from primer_core.failures import LeaseLost, PrimerError
from primer_resources.catalog.sources import Listed, is_due
from tests.primer_resources.catalog.world import LEASE, SOURCE, World, source

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def acquired(world: World, owner: str) -> tuple[int, int]:
    taken = world.catalog.sources.acquire(SOURCE, owner, LEASE)
    assert taken is not None
    return taken


def test_a_name_that_stands_for_another_source_is_refused(world: World) -> None:
    with pytest.raises(PrimerError, match="source 'handbook' exists already"):
        world.catalog.sources.add(source(settings={"root": "/elsewhere"}))
    assert dict(world.catalog.sources.get(SOURCE).settings) == {"root": f"/{SOURCE}"}


def test_a_removed_source_is_gone_until_it_is_added_again_with_new_settings(world: World) -> None:
    acquired(world, "run-a")
    world.catalog.sources.remove(SOURCE)
    assert world.catalog.sources.all() == []
    with pytest.raises(PrimerError, match="source 'handbook' is unknown"):
        world.catalog.sources.get(SOURCE)
    world.catalog.sources.add(source(settings={"root": "/new"}))
    back = world.catalog.sources.get(SOURCE)
    assert dict(back.settings) == {"root": "/new"}
    assert back.scan == 1, "scans go on counting, so what was seen before the removal is not taken for seen now"


def test_an_unknown_source_is_named_with_those_that_are_there(world: World) -> None:
    with pytest.raises(PrimerError, match="source 'wiki' is unknown; known sources: handbook"):
        world.catalog.sources.get("wiki")


def due(world: World) -> list[str]:
    now = world.catalog.now()
    return [each.source_id for each in world.catalog.sources.all() if is_due(each, now, DAY, HOUR)]


def test_a_source_is_due_at_once_and_then_when_its_interval_has_passed(world: World) -> None:
    assert due(world) == [SOURCE]
    _, epoch = acquired(world, "run-a")
    world.catalog.sources.finish(SOURCE, epoch, None, None)
    assert due(world) == []
    world.pass_time(timedelta(seconds=31))
    assert due(world) == [SOURCE]


def test_a_source_that_tells_of_changes_itself_is_due_once_a_day_and_while_its_listing_fails(world: World) -> None:
    sources = world.catalog.sources
    sources.change(source(sync="webhook"))
    _, epoch = acquired(world, "run-a")
    sources.finish(SOURCE, epoch, world.catalog.now(), "page 3 answered 503", Listed(None, 0, False, None))
    assert due(world) == []
    world.pass_time(MINUTE)
    assert due(world) == [SOURCE]
    _, epoch = acquired(world, "run-b")
    sources.finish(SOURCE, epoch, world.catalog.now(), None, Listed("held", 12, True, None))
    world.pass_time(MINUTE)
    assert due(world) == []
    world.pass_time(HOUR)
    assert due(world) == [SOURCE], "a second listing is to confirm the held deletes"
    _, epoch = acquired(world, "run-c")
    sources.finish(SOURCE, epoch, world.catalog.now(), None, Listed(None, 0, True, None))
    world.pass_time(timedelta(hours=23))
    assert due(world) == []
    world.pass_time(HOUR)
    assert due(world) == [SOURCE]


def test_a_sync_that_was_asked_for_while_another_ran_is_not_lost(world: World) -> None:
    sources = world.catalog.sources
    began_at, (_, epoch) = world.catalog.now(), acquired(world, "run-a")
    world.pass_time(timedelta(seconds=1))
    with world.catalog.database.begin() as connection:
        sources.make_due(connection, SOURCE, in_full=True)
    sources.finish(SOURCE, epoch, began_at, None, Listed(None, 0, True, None))
    world.pass_time(MINUTE)
    found = sources.get(SOURCE)
    assert (found.asked_at is not None, found.last_reconciled_at) == (True, None)
    _, epoch = acquired(world, "run-b")
    sources.finish(SOURCE, epoch, world.catalog.now(), None, Listed(None, 0, True, None))
    assert sources.get(SOURCE).asked_at is None


def test_a_look_at_events_alone_leaves_the_next_sync_due_when_it_was(world: World) -> None:
    _, epoch = acquired(world, "run-a")
    world.catalog.sources.finish(SOURCE, epoch, world.catalog.now(), None, is_whole=False)
    assert due(world) == [SOURCE]
    acquired(world, "run-b")


def test_a_source_has_one_sync_at_a_time_until_its_lease_runs_out(world: World) -> None:
    scan, epoch = acquired(world, "run-a")
    assert world.catalog.sources.acquire(SOURCE, "run-b", LEASE) is None
    world.pass_time(LEASE - MINUTE)
    assert world.catalog.sources.renew("run-a", LEASE) == 1
    world.pass_time(MINUTE)
    assert world.catalog.sources.acquire(SOURCE, "run-b", LEASE) is None
    world.pass_time(LEASE)
    assert acquired(world, "run-b") == (scan + 1, epoch + 1)
    assert world.catalog.sources.renew("run-a", LEASE) == 0


def test_a_sync_that_lost_its_source_writes_nothing_more(world: World) -> None:
    _, old = acquired(world, "run-a")
    world.pass_time(2 * LEASE)
    _, new = acquired(world, "run-b")
    before = world.snapshot()
    with world.catalog.database.begin() as connection, pytest.raises(LeaseLost, match="source handbook"):
        world.catalog.sources.check(connection, SOURCE, old)
    world.catalog.sources.finish(SOURCE, old, None, "an error of the run that lost it", Listed("digest", 3, True, None))
    assert world.snapshot() == before
    with world.catalog.database.begin() as connection:
        world.catalog.sources.check(connection, SOURCE, new)


def test_the_end_of_a_sync_gives_the_source_back_and_says_how_it_went(world: World) -> None:
    _, epoch = acquired(world, "run-a")
    world.catalog.sources.finish(SOURCE, epoch, None, "page 3 answered 503")
    assert world.catalog.sources.get(SOURCE).last_error == "page 3 answered 503"
    acquired(world, "run-b")


def test_held_deletes_keep_the_time_when_they_were_first_held(world: World) -> None:
    def sync(held: tuple[str | None, int] | None) -> None:
        _, epoch = acquired(world, "run-a")
        listed = None if held is None else Listed(*held, is_complete=True, cursor=None)
        world.catalog.sources.finish(SOURCE, epoch, None if held is None else world.catalog.now(), None, listed)

    sync(("digest-1", 40))
    first = world.catalog.sources.get(SOURCE)
    assert (first.held_digest, first.held_count) == ("digest-1", 40)
    world.pass_time(MINUTE)
    sync(("digest-1", 40))
    assert first.held_at is not None
    again = world.catalog.sources.get(SOURCE).held_at
    assert again is not None
    assert world.catalog.now() - again >= MINUTE
    sync(("digest-2", 41))
    other = world.catalog.sources.get(SOURCE).held_at
    assert other is not None
    assert other > again
    sync(None)
    assert world.catalog.sources.get(SOURCE).held_digest == "digest-2", "a sync that failed says nothing of what was held"
    sync((None, 0))
    assert world.catalog.sources.get(SOURCE).held_at is None
