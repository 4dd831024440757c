"""Claims: exclusive, in order, bounded, and given back by time alone."""

from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta
from itertools import pairwise
from multiprocessing import get_context

from primer_core.failures import Reason, Transient
from primer_core.index_versions import VersionState
from primer_core.lanes import Lane
from primer_core.stages import CHUNK, EMBED, PARSE, WRITE, Operation, State
from primer_resources.catalog.schema import jobs
from tests.primer_resources.catalog.claimers import BATCH, Held, claim_all
from tests.primer_resources.catalog.world import BUCKETS, LEASE, REMODELLED, TENANT, VERSION, World

MARGIN = timedelta(seconds=20)
"""Around a lease: on Postgres the real clock runs on, and a busy machine may take seconds between two statements."""
PROCESSES = 3
DOCUMENTS = 24


def test_no_job_is_claimed_twice_and_a_documents_jobs_go_one_after_the_other_among_processes(world: World) -> None:
    expected = set()
    for number in range(DOCUMENTS):
        document = world.document(f"{number}.md", bucket=BUCKETS[number % len(BUCKETS)])
        bucket = BUCKETS[number % len(BUCKETS)]
        expected.add(world.job(document, operation=Operation.DELETE, content=None, bucket=bucket))
        expected.add(world.job(document, operation=Operation.ACL, bucket=bucket))
    context = get_context("spawn")
    with context.Manager() as manager, ProcessPoolExecutor(PROCESSES, mp_context=context) as pool:
        together = manager.Barrier(PROCESSES)
        owners = [f"run-{n}" for n in range(PROCESSES)]
        held = [each for part in pool.map(claim_all, [world.url] * PROCESSES, owners, [together] * PROCESSES) for each in part]
    assert Counter(each.job_id for each in held) == Counter(expected)
    assert {each.epoch for each in held} == {1}
    by_document: dict[str, list[Held]] = defaultdict(list)
    for each in sorted(held, key=lambda each: each.job_id):
        by_document[each.doc_id].append(each)
    for first, second in (pair for owned in by_document.values() for pair in pairwise(owned)):
        assert first.ended_ns < second.claimed_ns
    assert len({each.owner for each in held}) > 1, "one process did everything: nothing was tried"


def test_a_claim_takes_no_more_than_its_limit_oldest_first(world: World) -> None:
    made = [world.job(world.document(f"{n}.md")) for n in range(5)]
    assert [job.job_id for job in world.claim(PARSE, limit=BATCH)] == made[:BATCH]
    assert [job.job_id for job in world.claim(PARSE, "run-b", limit=BATCH)] == made[BATCH:]
    assert world.claim(PARSE, "run-b") == []


def test_a_claim_stays_within_its_stage_its_buckets_and_its_version(world: World) -> None:
    world.catalog.deployments.add_version("v2", REMODELLED, VersionState.BUILDING, len(BUCKETS))
    document = world.document("a.md")
    world.job(document, versions=[VERSION, "v2"])
    assert world.claim(CHUNK) == []
    assert world.claim(PARSE, buckets=["01"]) == []
    assert [job.index_version for job in world.claim(PARSE)] == [VERSION]


def test_the_work_of_an_inactive_tenant_waits_and_spends_no_attempt(world: World) -> None:
    world.job(world.document("a.md"))
    world.catalog.tenants.set_active(TENANT, active=False)
    assert world.catalog.queue.waiting(timedelta(0)) == []
    assert world.claim(PARSE) == []
    world.catalog.tenants.set_active(TENANT, active=True)
    assert [row.jobs for row in world.catalog.queue.waiting(timedelta(0))] == [1]
    assert [job.attempts for job in world.claim(PARSE)] == [0]


def test_deletes_and_permission_changes_go_before_the_queue_of_new_documents(world: World) -> None:
    for n in range(3):
        world.job(world.document(f"{n}.md"))
    world.bring_to_write()
    urgent = world.job(world.document("urgent.md"), operation=Operation.DELETE, content=None)
    assert [job.job_id for job in world.claim(WRITE, limit=1)] == [urgent]


def test_a_living_holder_keeps_its_jobs_and_a_dead_ones_come_back_with_an_attempt_spent(world: World) -> None:
    job_id = world.job(world.document("a.md"))
    (mine,) = world.claim(PARSE, "run-a")
    world.pass_time(LEASE - MARGIN)
    assert world.catalog.jobs.renew("run-a", LEASE) == 1
    world.pass_time(LEASE - MARGIN)
    assert world.claim(PARSE, "run-b") == []
    world.pass_time(2 * MARGIN)
    (theirs,) = world.claim(PARSE, "run-b")
    assert theirs.job_id == mine.job_id == job_id
    assert (mine.attempts, theirs.attempts) == (0, 1)
    assert theirs.lease_epoch > mine.lease_epoch
    assert world.catalog.jobs.renew("run-a", LEASE) == 0


def test_the_fifth_death_of_a_holder_is_a_dead_letter_and_the_others_go_on(world: World) -> None:
    document, other = world.document("poison.md"), world.document("other.md")
    job_id = world.job(document)
    for n in range(5):
        assert [job.job_id for job in world.claim(PARSE, f"run-{n}", limit=1)] == [job_id]
        world.pass_time(LEASE + MARGIN)
    world.job(other)
    assert [job.doc_id for job in world.claim(PARSE, "run-6")] == [other]
    row = world.job_row(job_id)
    assert (row.state, row.reason) == (State.DEAD, Reason.ATTEMPTS_EXHAUSTED)
    assert "died 5 times in stage parse" in row.error
    assert (world.row_of(document).status, world.row_of(document).reason) == ("dead_letter", Reason.ATTEMPTS_EXHAUSTED)


def test_a_documents_newer_job_waits_for_the_one_that_is_held(world: World) -> None:
    document = world.document("a.md")
    first = world.job(document, 1)
    (held,) = world.claim(PARSE)
    second = world.job(document, 2, content="two")
    assert world.claim(PARSE, "run-b") == []
    assert world.job_row(first).state == State.PARSING, "one that is held is never superseded under its holder"
    world.catalog.jobs.complete(PARSE, [held], "run-a", {})
    assert world.job_row(first).state == State.SUPERSEDED, "there is no use in going on with it"
    assert [job.job_id for job in world.claim(PARSE, "run-b")] == [second]


def test_documents_do_not_wait_for_each_other(world: World) -> None:
    one, two = world.document("1.md"), world.document("2.md")
    world.job(one)
    world.claim(PARSE, "run-a")
    second = world.job(two)
    assert [job.job_id for job in world.claim(PARSE, "run-b")] == [second]


def test_a_permission_change_waits_for_the_content_before_it(world: World) -> None:
    document = world.document("a.md")
    content = world.job(document)
    acl = world.job(document, operation=Operation.ACL)
    assert world.claim(WRITE) == []
    world.bring_to_write()
    assert [job.job_id for job in world.claim(WRITE, "run-a")] == [content]
    assert world.claim(WRITE, "run-b") == []
    world.flip(world.flip_of(world.catalog.jobs.held(WRITE, VERSION, BUCKETS, "run-a")[0], ["c1"]))
    assert [job.job_id for job in world.claim(WRITE, "run-b")] == [acl]


def test_a_dead_letter_that_is_retried_waits_for_the_newer_job_that_is_held(world: World) -> None:
    document = world.document("a.md")
    old = world.job(document)
    world.bring_to_write()
    job = world.claim_write()
    for _ in range(5):
        world.catalog.jobs.fail(WRITE, job, "run-a", Transient("busy"))
        world.pass_time(timedelta(hours=1))
        job = next(iter(world.claim(WRITE)), job)
    assert world.job_row(old).state == State.DEAD
    acl = world.job(document, operation=Operation.ACL)
    assert [each.job_id for each in world.claim(WRITE, "run-a")] == [acl]
    assert world.catalog.dead_letters.retry([old]) == 1
    assert world.claim(WRITE, "run-a") == [], "both at once would bury each other's rows"
    assert world.catalog.queue.waiting(LEASE) == []
    world.pass_time(LEASE + MARGIN)
    assert [each.job_id for each in world.claim(WRITE, "run-b")] == [old], "once the holder is dead they go in order"


def test_what_waits_is_what_can_be_claimed(world: World) -> None:
    document = world.document("a.md")
    world.job(document)
    world.job(document, operation=Operation.ACL)
    (waiting,) = world.catalog.queue.waiting(LEASE)
    assert (waiting.bucket, waiting.jobs, waiting.purges) == ("00", 1, 0)
    (job,) = world.claim(PARSE)
    assert world.catalog.queue.waiting(LEASE) == [], "the one that waits for the held one would make empty runs"
    world.catalog.jobs.fail(PARSE, job, "run-a", Transient("busy"))
    assert world.catalog.queue.waiting(LEASE) == []
    world.pass_time(timedelta(seconds=6))
    assert [each.jobs for each in world.catalog.queue.waiting(LEASE)] == [1]
    world.claim(PARSE)
    world.pass_time(LEASE + MARGIN)
    assert [each.jobs for each in world.catalog.queue.waiting(LEASE)] == [1], "a dead holder's job waits again"


def test_a_worker_that_stops_in_good_order_gives_all_back_and_spends_nothing(world: World) -> None:
    parsing, embedding = world.job(world.document("1.md")), world.job(world.document("2.md"))
    world.claim(PARSE, "early")
    world.catalog.jobs.complete(PARSE, world.catalog.jobs.held(PARSE, VERSION, BUCKETS, "early"), "early", {})
    world.catalog.jobs.complete(CHUNK, world.claim(CHUNK, "early"), "early", {})
    assert {job.job_id for job in world.claim(EMBED)} == {parsing, embedding}
    third = world.job(world.document("3.md"))
    world.claim(PARSE)
    world.claim(WRITE, "run-b")
    assert world.catalog.jobs.release("run-a") == 3
    assert [world.job_row(each).state for each in (parsing, third)] == [State.PENDING_EMBED, State.PENDING_PARSE]
    assert {row.attempts for row in world.rows(jobs)} == {0}
    assert len(world.claim(EMBED, "run-b")) == 2


def test_a_holder_sees_what_it_holds_and_no_more(world: World) -> None:
    world.job(world.document("1.md"))
    world.claim(PARSE, "run-a")
    assert len(world.catalog.jobs.held(PARSE, VERSION, BUCKETS, "run-a")) == 1
    assert world.catalog.jobs.held(PARSE, VERSION, BUCKETS, "run-b") == []
    assert world.catalog.jobs.held(PARSE, VERSION, ["01"], "run-a") == []
    world.pass_time(LEASE + MARGIN)
    assert world.catalog.jobs.held(PARSE, VERSION, BUCKETS, "run-a") == []


def test_the_access_lane_waits_for_no_parse_of_a_document_that_has_rows_and_for_every_write(world: World) -> None:
    document = world.document("a.md")
    world.index(document, 1, ["c1"])
    world.advance(document, 2)
    edit = world.job(document, 2, content="two")
    (parsing,) = world.claim(PARSE, "parser")
    acl = world.job(document, operation=Operation.ACL)
    assert [row.jobs for row in world.catalog.queue.waiting_access()] == [1]
    (job,) = world.claim(WRITE, "access")
    assert job.job_id == acl
    assert world.flip(world.flip_of(job, ["c1"], rewrite=True), "access") != []
    world.catalog.lanes.release("access")
    world.catalog.jobs.complete(PARSE, [parsing], "parser", {})
    world.bring_to_write()
    assert [each.job_id for each in world.claim(WRITE, "sweep")] == [edit]
    behind = world.job(document, operation=Operation.ACL)
    assert world.catalog.queue.waiting_access() == []
    assert world.claim(WRITE, "access") == [], "writes of a document go one after the other"
    world.flip(world.flip_of(world.catalog.jobs.held(WRITE, VERSION, BUCKETS, "sweep")[0], ["c1", "c2"]), "sweep")
    assert [each.job_id for each in world.claim(WRITE, "access")] == [behind]


def test_a_delete_that_overtakes_an_edit_leaves_nothing_of_it(world: World) -> None:
    document = world.document("a.md")
    world.index(document, 1, ["c1"])
    world.advance(document, 2)
    edit = world.job(document, 2, content="two")
    (parsing,) = world.claim(PARSE, "parser")
    delete = world.job(document, 3, operation=Operation.DELETE, content=None)
    (job,) = world.claim(WRITE, "access")
    assert job.job_id == delete
    assert world.flip(world.flip_of(job, []), "access") != []
    world.catalog.jobs.complete(PARSE, [parsing], "parser", {})
    assert world.job_row(edit).state == State.SUPERSEDED


def test_a_sweep_is_not_launched_for_the_access_lane_and_still_does_what_it_finds(world: World) -> None:
    gone = world.job(world.document("gone.md"), operation=Operation.DELETE, content=None)
    assert world.catalog.queue.waiting(LEASE) == []
    assert [(row.bucket, row.jobs) for row in world.catalog.queue.waiting_access()] == [("00", 1)]
    assert world.catalog.queue.waiting_access(VERSION, ["01"]) == []
    content = world.job(world.document("new.md"))
    world.bring_to_write()
    assert [job.job_id for job in world.claim(WRITE, "sweep")] == [gone, content]
    world.pass_time(LEASE + MARGIN)
    assert [row.jobs for row in world.catalog.queue.waiting_access()] == [1], "a dead holder's job waits again"
    assert [job.job_id for job in world.catalog.jobs.claim(WRITE, VERSION, BUCKETS, "access", LEASE, 9, Lane.ACCESS)] == [gone]
