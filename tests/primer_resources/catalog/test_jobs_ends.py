"""What becomes of a job: completed, superseded, failed in each of the ways, retried, pruned. Every transition by its holder only."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from primer_core.failures import Deferred, DocumentFault, PrimerError, Reason, Transient
from primer_core.index_versions import VersionState
from primer_core.stages import FETCH, PARSE, WRITE, Operation
from primer_resources.catalog.jobs import DEFER, Job, NewJob
from primer_resources.catalog.schema import intents, jobs, purges_due
from tests.primer_resources.catalog.world import BUCKETS, LEASE, REMODELLED, SOURCE, START, VERSION, World

SECOND = timedelta(seconds=1)
FAULT = DocumentFault(Reason.ENCRYPTED, "a.pdf needs a password")


def states(world: World, *job_ids: int) -> list[str]:
    return [world.job_row(job_id).state for job_id in job_ids]


def claimed(world: World, path: str = "a.md") -> Job:
    world.job(world.document(path))
    (job,) = world.claim(PARSE)
    return job


@pytest.mark.parametrize("end", ["complete", "transient", "deferred", "fault"])
def test_a_zombie_ends_nothing(world: World, end: str) -> None:
    job = claimed(world)
    world.pass_time(LEASE + SECOND)
    (theirs,) = world.claim(PARSE, "run-b")
    before = world.snapshot()
    errors: dict[str, PrimerError] = {"transient": Transient("late"), "deferred": Deferred("late"), "fault": FAULT}
    zombies = [(job, "run-a"), (replace(job, lease_epoch=theirs.lease_epoch), "run-a"), (job, "run-b")]
    for zombie, owner in zombies:
        if end == "complete":
            assert world.catalog.jobs.complete(PARSE, [zombie], owner, {job.job_id: {"parsed": 1}}) == []
        else:
            world.catalog.jobs.fail(PARSE, zombie, owner, errors[end])
    assert world.snapshot() == before


def test_completion_advances_the_holders_jobs_and_adds_their_figures(world: World) -> None:
    job = claimed(world)
    lost = replace(job, job_id=job.job_id + 1)
    assert world.catalog.jobs.complete(PARSE, [job, lost], "run-a", {job.job_id: {"parsed": 1, "cache_hits": 2}}) == [job]
    row = world.job_row(job.job_id)
    assert (row.state, row.stage, row.parsed, row.cache_hits, row.lease_owner, row.finished_at) == (
        "pending_chunk",
        "chunk",
        1,
        2,
        None,
        None,
    )
    assert world.catalog.jobs.complete(PARSE, [job], "run-a", {}) == [], "a second completion finds it past"


def test_a_stage_that_succeeds_forgives_the_attempts_of_the_one_before(world: World) -> None:
    job = claimed(world)
    world.catalog.jobs.fail(PARSE, job, "run-a", Transient("busy"))
    world.pass_time(timedelta(hours=1))
    (again,) = world.claim(PARSE)
    assert again.attempts == 1
    world.catalog.jobs.complete(PARSE, [again], "run-a", {})
    assert world.job_row(job.job_id).attempts == 0


def test_a_newer_version_supersedes_what_waits_and_what_died_of_that_document_alone(world: World) -> None:
    document, other = world.document("a.md"), world.document("b.md")
    waits, elsewhere = world.job(document, 1), world.job(other, 1)
    newer = world.job(document, 2, content="two")
    assert states(world, waits, elsewhere, newer) == ["superseded", "pending_parse", "pending_parse"]
    assert world.job_row(waits).finished_at is not None
    held = next(job for job in world.claim(PARSE) if job.job_id == newer)
    world.catalog.jobs.fail(PARSE, held, "run-a", FAULT)
    newest = world.job(document, 3, content="three")
    assert states(world, newer, newest) == ["superseded", "pending_parse"]


def test_each_open_version_gets_its_own_job_and_they_do_not_supersede_each_other(world: World) -> None:
    world.catalog.deployments.add_version("v2", REMODELLED, VersionState.BUILDING, len(BUCKETS))
    document = world.document("a.md")
    world.job(document, 1, versions=[VERSION, "v2"])
    world.job(document, 2, versions=["v2"])
    found = [(row.index_version, row.source_version, row.state) for row in world.rows(jobs)]
    assert found == [(VERSION, "v1", "pending_parse"), ("v2", "v1", "superseded"), ("v2", "v2", "pending_parse")]


def test_a_permission_change_supersedes_permission_changes_only(world: World) -> None:
    document = world.document("a.md")
    content = world.job(document, 1)
    first = world.job(document, 1, Operation.ACL)
    second = world.job(document, 1, Operation.ACL)
    assert states(world, content, first, second) == ["pending_parse", "superseded", "pending_write"]
    newer = world.job(document, 2, content="two")
    assert states(world, content, second, newer) == ["superseded", "superseded", "pending_parse"], (
        "a new version brings its permissions along"
    )


def test_a_held_job_is_not_overtaken_by_a_permission_change(world: World) -> None:
    job = claimed(world)
    world.job(job.doc_id, 1, Operation.ACL)
    world.catalog.jobs.complete(PARSE, [job], "run-a", {})
    assert states(world, job.job_id) == ["pending_chunk"]


def test_a_delete_supersedes_the_upsert_that_waits(world: World) -> None:
    document = world.document("a.md")
    upsert = world.job(document)
    delete = world.job(document, operation=Operation.DELETE, content=None)
    assert states(world, upsert, delete) == ["superseded", "pending_write"]


def _fail(world: World, errors: Sequence[PrimerError]) -> list[tuple[str, int]]:
    seen = []
    for error in errors:
        (job,) = world.claim(PARSE)
        world.catalog.jobs.fail(PARSE, job, "run-a", error)
        row = world.job_row(job.job_id)
        seen.append((row.state, row.attempts))
        world.pass_time(timedelta(hours=1))
    return seen


def test_transient_errors_spend_attempts_and_the_fifth_is_a_dead_letter(world: World) -> None:
    document = world.document("a.md")
    job_id = world.job(document)
    seen = _fail(world, [Transient(f"busy {n}") for n in range(5)])
    assert seen == [("pending_parse", 1), ("pending_parse", 2), ("pending_parse", 3), ("pending_parse", 4), ("dead", 5)]
    row = world.job_row(job_id)
    assert (row.reason, row.error, row.stage) == (Reason.ATTEMPTS_EXHAUSTED, "busy 4", "parse")
    assert (world.row_of(document).status, world.row_of(document).reason) == ("dead_letter", "attempts_exhausted")
    (letter,) = world.catalog.lookup.dead_letters()
    assert (letter.doc_id, letter.stage, letter.attempts, letter.error) == (document, "parse", 5, "busy 4")


def test_an_outage_of_any_length_spends_no_attempt(world: World) -> None:
    world.job(world.document("a.md"))
    assert _fail(world, [Deferred("the embedder answers 503")] * 12) == [("pending_parse", 0)] * 12


def test_backoff_grows_and_nobody_claims_before_it_ends(world: World) -> None:
    world.job(world.document("a.md"))
    for shortest, longest in ((2.5, 5), (5, 10), (10, 20)):
        (job,) = world.claim(PARSE)
        world.catalog.jobs.fail(PARSE, job, "run-a", Transient("busy"))
        world.pass_time(timedelta(seconds=shortest) - SECOND)
        assert world.claim(PARSE) == []
        world.pass_time(timedelta(seconds=longest - shortest) + SECOND)
    (job,) = world.claim(PARSE)
    world.catalog.jobs.fail(PARSE, job, "run-a", Deferred("down"))
    world.pass_time(DEFER - DEFER / 3)
    assert world.claim(PARSE) == []
    world.pass_time(DEFER)
    assert len(world.claim(PARSE)) == 1


def test_the_documents_own_fault_is_a_dead_letter_at_once_and_only_for_it(world: World) -> None:
    world.job(world.document("a.pdf"))
    world.job(world.document("b.md"))
    bad, good = world.claim(PARSE)
    world.catalog.jobs.fail(PARSE, bad, "run-a", FAULT)
    row = world.job_row(bad.job_id)
    assert (row.state, row.attempts, row.reason, row.error) == ("dead", 1, Reason.ENCRYPTED, "a.pdf needs a password")
    assert (world.row_of(bad.doc_id).status, world.row_of(bad.doc_id).reason) == ("dead_letter", "encrypted")
    assert world.catalog.jobs.complete(PARSE, [bad, good], "run-a", {}) == [good]
    world.pass_time(timedelta(days=1))
    assert world.claim(PARSE) == [], "a terminal state leaves only by an operator's retry"


def test_an_older_versions_fault_does_not_blame_the_newer_one(world: World) -> None:
    job = claimed(world)
    world.advance(job.doc_id, 2)
    world.job(job.doc_id, 2, content="two")
    world.catalog.jobs.fail(PARSE, job, "run-a", FAULT)
    assert world.row_of(job.doc_id).status == "pending"


def test_a_document_that_never_got_its_bytes_is_a_dead_letter_that_replaces_the_one_before(world: World) -> None:
    document = world.document("a.md")
    new = NewJob(document, SOURCE, "v1", None, "", "fast", Operation.UPSERT, START)
    for reason in (Reason.UNREADABLE, Reason.CHANGING):
        with world.catalog.database.begin() as connection:
            world.catalog.dead_letters.add(connection, new, [VERSION], FETCH, DocumentFault(reason, "cannot"))
    (letter,) = world.catalog.lookup.dead_letters(SOURCE)
    assert (letter.reason, letter.stage) == (Reason.CHANGING, "fetch")
    assert world.catalog.dead_letters.retry([letter.job_id]) == 0, "there are no bytes to go on with"
    assert world.catalog.queue.waiting(LEASE) == []


def test_a_retry_starts_at_the_stage_that_failed_with_fresh_attempts(world: World) -> None:
    document = world.document("a.md")
    job_id = world.job(document)
    _fail(world, [Transient("busy")] * 5)
    assert world.catalog.dead_letters.retry([job_id, job_id + 99]) == 1
    row = world.job_row(job_id)
    assert (row.state, row.attempts, row.reason, row.error, row.finished_at) == ("pending_parse", 0, None, None, None)
    assert (world.row_of(document).status, world.row_of(document).reason) == ("pending", None)
    assert world.catalog.dead_letters.retry([job_id]) == 0, "only a dead letter can be retried"
    assert [job.job_id for job in world.claim(PARSE)] == [job_id]


def test_a_superseded_job_cannot_be_retried(world: World) -> None:
    document = world.document("a.md")
    old = world.job(document, 1)
    world.job(document, 2)
    assert world.catalog.dead_letters.retry([old]) == 0


def test_rows_of_a_write_that_died_become_purges(world: World) -> None:
    job_id = world.job(world.document("a.md"))
    world.bring_to_write()
    flip = world.flip_of(world.claim_write(), ["c1", "c2"])
    assert {row.row_id for row in world.rows(intents)} == {"c1:1", "c2:1"}
    world.catalog.jobs.fail(WRITE, flip.job, "run-a", FAULT)
    assert world.rows(intents) == []
    assert {(row.row_id, row.dead_gen, row.bucket) for row in world.rows(purges_due)} == {("c1:1", 1, "00"), ("c2:1", 1, "00")}
    assert states(world, job_id) == ["dead"]


def test_rows_of_a_write_whose_holder_died_for_the_last_time_become_purges(world: World) -> None:
    world.job(world.document("a.md"))
    world.bring_to_write()
    for n in range(5):
        world.flip_of(world.claim_write(f"run-{n}"), ["c1"])
        world.pass_time(LEASE + SECOND)
    assert world.claim(WRITE, "run-9") == []
    assert {(row.row_id, row.dead_gen) for row in world.rows(purges_due)} == {(f"c1:{n}", n) for n in range(1, 6)}
    assert world.rows(intents) == []


def test_finished_jobs_are_pruned_in_time_and_dead_letters_stay(world: World) -> None:
    for n in range(3):
        world.index(world.document(f"{n}.md"), 1, [f"c{n}"])
    dead = claimed(world, "dead.md")
    world.catalog.jobs.fail(PARSE, dead, "run-a", FAULT)
    world.pass_time(timedelta(days=1))
    world.index(world.document("young.md"), 1, ["c9"])
    waits = world.job(world.document("waits.md"))
    over = world.catalog.now() - timedelta(hours=1)
    assert world.catalog.jobs.prune(over, limit=2) == 2
    assert world.catalog.jobs.prune(over, limit=2) == 1
    assert world.catalog.jobs.prune(over, limit=2) == 0
    assert {row.state for row in world.rows(jobs)} == {"dead", "indexed", "pending_parse"}
    assert max(row.job_id for row in world.rows(jobs)) == waits


def test_job_ids_are_never_used_again(world: World) -> None:
    world.index(world.document("a.md"), 1, ["c"])
    last = max(row.job_id for row in world.rows(jobs))
    world.catalog.jobs.prune(world.catalog.now() + SECOND, limit=10)
    assert world.job(world.document("b.md")) > last


def test_waiting_counts_purges_only_past_their_grace(world: World) -> None:
    document = world.document("a.md", bucket="00")
    world.index(document, 1, ["c1", "c2"])
    world.index(document, 2, ["c2"])
    grace = timedelta(seconds=60)
    assert world.catalog.queue.waiting(grace) == []
    world.pass_time(grace + SECOND)
    (row,) = world.catalog.queue.waiting(grace)
    assert (row.index_version, row.bucket, row.jobs, row.purges, row.oldest) == (VERSION, "00", 0, 1, None)
    world.job(document, 3)
    (both,) = world.catalog.queue.waiting(grace)
    assert (both.jobs, both.purges) == (1, 1)
    assert both.oldest is not None


def test_unfinished_counts_by_source(world: World) -> None:
    claimed(world, "held.md")
    world.job(world.document("waits.md"))
    assert (world.catalog.queue.unfinished(), world.catalog.queue.unfinished([SOURCE]), world.catalog.queue.unfinished(["wiki"])) == (
        2,
        2,
        0,
    )
    assert world.catalog.queue.unfinished([]) == 0
