"""The pulse: what freshness counts from, what it leaves out, and what the queue and the sources show."""

from datetime import timedelta

import pytest
from sqlalchemy import update

from primer_core import ids
from primer_core.failures import DocumentFault, Reason
from primer_core.freshness import Severity
from primer_core.lanes import Lane
from primer_core.source_health import Health, PulseLimits, StallLimits
from primer_core.stages import PARSE, WRITE, Operation, State
from primer_resources.catalog.jobs import NewJob
from primer_resources.catalog.pulse import Pulse
from primer_resources.catalog.schema import sources
from tests.primer_resources.catalog.world import HASHES, LEASE, SOURCE, VERSION, World

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
LIMITS = PulseLimits({Lane.FAST: 5 * MINUTE, Lane.SLOW: 30 * MINUTE, Lane.ACCESS: MINUTE}, StallLimits(HOUR, 6 * HOUR))


def pulse(world: World, window: timedelta = HOUR) -> Pulse:
    return world.catalog.pulses.take(VERSION, window, LIMITS)


def sync(world: World, error: str | None = None) -> None:
    """One turn of the source, that ends at once."""
    taken = world.catalog.sources.acquire(SOURCE, "a sync", LEASE)
    assert taken is not None
    world.catalog.sources.finish(SOURCE, taken[1], world.catalog.now() if error is None else None, error)


def learn(
    world: World, path: str, event_ago: timedelta, operation: Operation = Operation.UPSERT, order: int = 1, lane: str = "fast"
) -> str:
    """A change that the source told of, with its own time for it."""
    doc_id = world.document(path) if order == 1 else ids.doc_id(SOURCE, path)
    new = NewJob(doc_id, SOURCE, f"v{order}", HASHES["one"], "00", lane, operation, world.catalog.now() - event_ago)
    with world.catalog.database.begin() as connection:
        world.catalog.jobs.add(connection, [new], [VERSION])
    return doc_id


def index_all(world: World) -> None:
    """Take all that waits into the indexes."""
    world.bring_to_write()
    for job in world.claim(WRITE):
        assert len(world.flip(world.flip_of(job, [f"c-{job.doc_id}"]))) == 1
    world.catalog.lanes.release("run-a")


def test_what_the_first_sync_finds_is_no_change(world: World) -> None:
    learn(world, "old.md", timedelta(days=900))
    world.pass_time(HOUR / 2)
    index_all(world)
    assert pulse(world).freshness == ()
    assert pulse(world).lateness is Severity.OK


def test_a_change_counts_from_its_event_and_no_earlier_than_the_sync_before_could_have_seen_it(world: World) -> None:
    sync(world)
    world.pass_time(MINUTE)
    learn(world, "edited.md", MINUTE / 2)
    learn(world, "moved-in.md", timedelta(days=900))
    learn(world, "clock-ahead.md", -timedelta(days=1))
    world.pass_time(MINUTE)
    index_all(world)
    (row,) = pulse(world).freshness
    assert (row.source_id, row.lane, row.to_rows.changes) == (SOURCE, Lane.FAST, 3)
    assert row.to_rows.p50 == pytest.approx(90, abs=20)
    assert row.to_rows.longest == pytest.approx(120, abs=20), "the moved file was in sight only after the sync before"
    assert row.by_source_clock.longest == pytest.approx(900 * 86400, rel=0.01)


def test_lanes_are_told_apart_and_only_the_window_counts(world: World) -> None:
    sync(world)
    learn(world, "a.md", timedelta(0))
    learn(world, "scan.pdf", timedelta(0), lane="slow")
    world.pass_time(10 * MINUTE)
    index_all(world)
    learn(world, "a.md", timedelta(0), Operation.ACL, order=2)
    index_all(world)
    found = pulse(world)
    assert [(row.lane, row.to_rows.changes) for row in found.freshness] == [(Lane.ACCESS, 1), (Lane.FAST, 1), (Lane.SLOW, 1)]
    assert {lane.lane: lane.severity for lane in found.lanes} == {
        Lane.FAST: Severity.ERROR,
        Lane.SLOW: Severity.OK,
        Lane.ACCESS: Severity.OK,
    }
    world.pass_time(2 * HOUR)
    assert pulse(world).freshness == ()


def test_what_a_person_put_back_is_no_late_change(world: World) -> None:
    sync(world)
    learn(world, "a.md", timedelta(0))
    (job,) = world.claim(PARSE)
    world.catalog.jobs.fail(PARSE, job, "run-a", DocumentFault(Reason.CORRUPT, "broken"))
    world.pass_time(HOUR)
    assert world.catalog.dead_letters.retry([job.job_id]) == 1
    index_all(world)
    assert pulse(world).freshness == ()


def test_a_queue_that_stands_still_is_late_though_nothing_finishes_late(world: World) -> None:
    sync(world)
    learn(world, "a.md", timedelta(0))
    learn(world, "b.md", timedelta(0))
    learn(world, "b.md", timedelta(0), Operation.DELETE, order=2)
    world.claim(PARSE, limit=1)
    found = pulse(world)
    assert [(row.lane, row.state, row.jobs) for row in found.queue] == [
        (Lane.ACCESS, State.PENDING_WRITE, 1),
        (Lane.FAST, State.PARSING, 1),
    ]
    assert found.lateness is Severity.OK
    world.pass_time(6 * MINUTE)
    later = pulse(world)
    assert {lane.lane: lane.severity for lane in later.lanes} == {
        Lane.FAST: Severity.WARN,
        Lane.SLOW: Severity.OK,
        Lane.ACCESS: Severity.ERROR,
    }
    assert later.queue[0].oldest == pytest.approx(later.at - 6 * MINUTE, abs=MINUTE / 2)


def test_a_failed_listing_is_no_good_sync(world: World) -> None:
    def stands() -> tuple[Health, Severity]:
        (source,) = world.catalog.pulses.sources(LIMITS.stalled)
        return source.health, source.severity

    assert stands() == (Health.NEVER, Severity.OK)
    sync(world)
    assert stands() == (Health.GOOD, Severity.OK)
    world.pass_time(2 * HOUR)
    assert stands() == (Health.WAITING, Severity.WARN)
    sync(world, error="the listing came back empty")
    assert stands() == (Health.STALLED, Severity.WARN)
    (source,) = world.catalog.pulses.sources(LIMITS.stalled)
    assert "the listing came back empty" in source.reason
    taken = world.catalog.sources.acquire(SOURCE, "another", LEASE)
    assert stands() == (Health.SYNCING, Severity.OK)
    assert taken is not None
    # The listing came to its end, and some of it could not be read: it counts, and it is not good.
    world.catalog.sources.finish(SOURCE, taken[1], world.catalog.now(), "folder HR cannot be read")
    assert stands() == (Health.STALLED, Severity.WARN)


def test_a_sync_that_commits_nothing_any_more_is_stalled_and_one_that_gets_on_is_not(world: World) -> None:
    sync(world)
    taken = world.catalog.sources.acquire(SOURCE, "a long one", LEASE)
    assert taken is not None
    world.pass_time(2 * HOUR)
    alive = update(sources).values(lease_until=world.catalog.now() + LEASE)  # as its heartbeat does, in a thread of its own
    with world.catalog.database.begin() as connection:
        connection.execute(alive)
    (source,) = world.catalog.pulses.sources(LIMITS.stalled)
    assert source.health is Health.STALLED
    with world.catalog.database.begin() as connection:
        world.catalog.sources.check(connection, SOURCE, taken[1])
    (source,) = world.catalog.pulses.sources(LIMITS.stalled)
    assert source.health is Health.SYNCING
