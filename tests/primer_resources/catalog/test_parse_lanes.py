"""The fast and the slow lane in the catalog: each claims its own, and work that turns out slow changes lanes without an attempt."""

from primer_core.lanes import Lane, SlowWork
from primer_core.stages import CHUNK, PARSE, Operation, State
from primer_resources.catalog.jobs import Job, NewJob
from primer_resources.catalog.schema_bodies import contents
from tests.primer_resources.catalog.world import BUCKETS, HASHES, LEASE, SOURCE, START, TENANT, VERSION, World


def waiting_document(world: World, path: str, lane: Lane, content: str = "one") -> int:
    """A document with a job in a lane. Returns the job's id."""
    doc = world.document(path, content=content)
    job = world.job(doc)
    if lane is Lane.SLOW:
        new = NewJob(doc, SOURCE, "v1", HASHES[content], "00", lane, Operation.UPSERT, START)
        with world.catalog.database.begin() as connection:
            world.catalog.jobs.add(connection, [new], [VERSION])
        job += 1
    return job


def claim(world: World, lane: Lane, owner: str = "run-a") -> list[Job]:
    return world.catalog.jobs.claim(PARSE, VERSION, BUCKETS, owner, LEASE, 100, lane)


def test_each_lane_claims_its_own_documents(world: World) -> None:
    quick = waiting_document(world, "wiki.md", Lane.FAST)
    scan = waiting_document(world, "scan.pdf", Lane.SLOW)
    assert [job.job_id for job in claim(world, Lane.FAST)] == [quick]
    assert [job.job_id for job in claim(world, Lane.SLOW)] == [scan]


def test_a_sweep_is_not_launched_for_what_waits_in_the_slow_lane_but_for_what_it_has_parsed(world: World) -> None:
    waiting_document(world, "scan.pdf", Lane.SLOW)
    assert world.catalog.queue.waiting(LEASE) == []
    assert [(row.bucket, row.jobs) for row in world.catalog.queue.waiting_slow()] == [("00", 1)]
    assert world.catalog.queue.waiting_slow(["another source"]) == []
    held = claim(world, Lane.SLOW)
    assert world.catalog.queue.waiting_slow() == []
    world.catalog.jobs.complete(PARSE, held, "run-a", {})
    assert [(row.bucket, row.jobs) for row in world.catalog.queue.waiting(LEASE)] == [("00", 1)]
    assert len(world.claim(CHUNK, "run-b")) == 1


def test_a_slow_run_that_died_leaves_its_document_to_the_next_slow_run(world: World) -> None:
    waiting_document(world, "scan.pdf", Lane.SLOW)
    claim(world, Lane.SLOW)
    world.pass_time(LEASE * 2)
    assert world.catalog.queue.waiting(LEASE) == []
    assert [row.jobs for row in world.catalog.queue.waiting_slow()] == [1]
    assert claim(world, Lane.FAST, "run-b") == []
    assert [job.attempts for job in claim(world, Lane.SLOW, "run-b")] == [1]


def test_work_that_turns_out_slow_changes_lanes_and_spends_no_attempt(world: World) -> None:
    world.content(mime="application/pdf")
    job_id = waiting_document(world, "scan.pdf", Lane.FAST)
    held = claim(world, Lane.FAST)
    with world.catalog.database.begin() as connection:
        world.catalog.contents.leave_to_slow_lane(connection, TENANT, HASHES["one"], SlowWork("page 1 needs OCR", 12))
        world.catalog.jobs.put_back(connection, PARSE, held, "run-a", Lane.SLOW)
    row = world.job_row(job_id)
    assert (row.lane, row.state, row.attempts, row.lease_owner) == ("slow", State.PENDING_PARSE, 0, None)
    assert claim(world, Lane.FAST, "run-b") == []
    assert len(claim(world, Lane.SLOW, "run-b")) == 1
    assert world.catalog.contents.lanes(TENANT, [HASHES["one"]]) == {HASHES["one"]: Lane.SLOW}
    assert world.catalog.contents.pages(TENANT, HASHES["one"]) == 12
    world.content(mime="application/pdf")
    assert [content.lane for content in world.rows(contents)] == ["slow"], "seen again at the next fetch, it stays in its lane"


def test_a_job_that_was_taken_over_is_not_put_back(world: World) -> None:
    job_id = waiting_document(world, "scan.pdf", Lane.FAST)
    held = claim(world, Lane.FAST)
    world.pass_time(LEASE * 2)
    claim(world, Lane.FAST, "run-b")
    with world.catalog.database.begin() as connection:
        world.catalog.jobs.put_back(connection, PARSE, held, "run-a", Lane.SLOW)
    assert (world.job_row(job_id).lane, world.job_row(job_id).lease_owner) == ("fast", "run-b")
