"""Generations: intents, the flip, purges, and what a holder that lost its lease can still do (nothing)."""

import threading
from datetime import timedelta

import pytest

from primer_core.failures import DocumentFault, LeaseLost, Reason, Transient
from primer_core.stages import PARSE, WRITE, Operation
from primer_resources.catalog.generations import Flip, removed_rows
from primer_resources.catalog.schema import chunks, index_state, intents, purges_due
from tests.primer_resources.catalog.world import BUCKETS, HASHES, LEASE, VERSION, World, place, waits_for_a_lock

SECOND = timedelta(seconds=1)
GRACE = timedelta(seconds=60)


def held_write(world: World, path: str = "a.md", owner: str = "run-a") -> Flip:
    """A document whose first write is at its flip."""
    world.job(world.document(path))
    world.bring_to_write()
    return world.flip_of(world.claim_write(owner), ["c1", "c2"])


def state(world: World, doc_id: str) -> object:
    (row,) = world.rows(index_state, doc_id=doc_id)
    return row.generation, row.previous_generation, row.manifest


def test_a_flip_makes_the_rows_count_and_the_document_indexed(world: World) -> None:
    flip = held_write(world)
    assert state(world, flip.job.doc_id) == (0, 0, {})
    assert world.flip(flip) == [flip.job]
    (row,) = world.rows(index_state)
    assert (row.generation, row.previous_generation, row.manifest) == (1, 0, {"c1": 1, "c2": 1})
    assert (row.content_hash, row.acl_ids) == (HASHES["one"], ["acl-a"])
    assert world.rows(intents) == world.rows(purges_due) == []
    assert [(chunk.chunk_id, chunk.added_gen, chunk.ordinal, chunk.heading_path) for chunk in world.rows(chunks)] == [
        ("c1", 1, 0, ["Guide"]),
        ("c2", 1, 1, ["Guide"]),
    ]
    job = world.job_row(flip.job.job_id)
    assert (job.state, job.chunks_new, job.lease_owner) == ("indexed", 2, None)
    assert world.row_of(flip.job.doc_id).status == "indexed"


def test_a_second_flip_keeps_what_stayed_and_purges_what_went(world: World) -> None:
    document = world.document("a.md")
    world.index(document, 1, ["c1", "c2"])
    world.pass_time(SECOND)
    world.index(document, 2, ["c2", "c3"], "two")
    assert state(world, document) == (2, 1, {"c2": 1, "c3": 2})
    (row,) = world.rows(index_state)
    assert (row.content_hash, row.previous_content_hash) == (HASHES["two"], HASHES["one"])
    assert row.flipped_at > row.previous_flipped_at
    assert [(purge.row_id, purge.dead_gen, purge.done_at) for purge in world.rows(purges_due)] == [("c1:1", 2, None)]
    assert [(chunk.chunk_id, chunk.added_gen, chunk.ordinal) for chunk in world.rows(chunks)] == [("c2", 1, 0), ("c3", 2, 1)]
    assert sorted(world.catalog.lookup.live_rows(VERSION)) == ["c2:1", "c3:2"]
    assert sorted(world.catalog.lookup.passing_rows(VERSION)) == ["c1:1"]


def test_a_chunk_that_comes_back_is_a_new_row_beside_the_purge_of_the_old_one(world: World) -> None:
    document = world.document("a.md")
    for order, made in enumerate((["c1", "c2"], ["c1"], ["c1", "c2"]), start=1):
        world.index(document, order, made)
    assert state(world, document) == (3, 2, {"c1": 1, "c2": 3})
    assert [(purge.row_id, purge.dead_gen) for purge in world.rows(purges_due)] == [("c2:1", 2)]
    assert sorted(world.catalog.lookup.live_rows(VERSION)) == ["c1:1", "c2:3"]


def test_removed_rows_are_the_old_rows_that_the_new_manifest_does_not_hold() -> None:
    assert removed_rows({"a": 1, "b": 1, "c": 2}, {"a": 1, "b": 3}) == ("b:1", "c:2")
    assert removed_rows({"a": 1}, {"a": 1}) == ()


def test_a_delete_empties_the_manifest_and_purges_every_row(world: World) -> None:
    document = world.document("a.md")
    world.index(document, 1, ["c1", "c2"])
    with world.catalog.database.begin() as connection:
        known = world.catalog.documents.by_id([document])[document]
        world.catalog.documents.tombstone(connection, [known], world.catalog.now())
    world.job(document, 1, Operation.DELETE, None)
    assert len(world.flip(world.flip_of(world.claim_write(), []))) == 1
    (row,) = world.rows(index_state)
    assert (row.manifest, row.content_hash, row.previous_content_hash) == ({}, None, HASHES["one"])
    assert [purge.row_id for purge in world.rows(purges_due)] == ["c1:1", "c2:1"]
    assert world.rows(chunks) == []
    assert world.row_of(document).status == "deleted"


def test_every_try_gets_a_generation_of_its_own_and_buries_the_one_before(world: World) -> None:
    flip = held_write(world)
    world.catalog.jobs.fail(WRITE, flip.job, "run-a", Transient("busy"))
    world.pass_time(timedelta(minutes=1))
    assert len(world.rows(intents)) == 2
    second = world.flip_of(world.claim_write(), ["c1", "c2"])
    assert (flip.generation, second.generation) == (1, 2)
    assert {row.row_id for row in world.rows(intents)} == {"c1:2", "c2:2"}
    assert {(row.row_id, row.dead_gen) for row in world.rows(purges_due)} == {("c1:1", 1), ("c2:1", 1)}
    world.flip(second)
    assert state(world, flip.job.doc_id) == (2, 0, {"c1": 2, "c2": 2})
    assert world.rows(intents) == []


def test_a_second_flip_of_the_same_generation_changes_nothing(world: World) -> None:
    flip = held_write(world)
    world.flip(flip)
    before = world.snapshot()
    lanes = world.catalog.lanes.acquire(VERSION, BUCKETS, "run-a", LEASE)
    assert world.catalog.generations.flip(VERSION, lanes, "run-a", [flip]) == []
    after = world.snapshot()
    assert {name: rows for name, rows in after.items() if name != "lanes"} == {n: rows for n, rows in before.items() if n != "lanes"}


def test_a_document_never_goes_back_to_an_older_generation(world: World) -> None:
    flip = held_write(world)
    with world.catalog.database.begin() as connection:
        connection.execute(index_state.update().values(generation=flip.generation))
    before = world.snapshot()
    lanes = world.catalog.lanes.acquire(VERSION, BUCKETS, "run-a", LEASE)
    with pytest.raises(LeaseLost, match="is already past generation 1"):
        world.catalog.generations.flip(VERSION, lanes, "run-a", [flip])
    assert {**world.snapshot(), "lanes": before["lanes"]} == before


@pytest.mark.parametrize("taken", ["lane", "job", "both"])
def test_a_holder_that_lost_its_lease_flips_nothing(world: World, taken: str) -> None:
    flip, other = held_write(world), held_write(world, "b.md")
    lanes = world.catalog.lanes.acquire(VERSION, BUCKETS, "run-a", LEASE)
    world.pass_time(LEASE + SECOND)
    if taken != "lane":
        assert len(world.claim(WRITE, "run-b")) == 2
    if taken == "job":
        lanes = world.catalog.lanes.acquire(VERSION, BUCKETS, "run-a", LEASE)
    else:
        world.catalog.lanes.acquire(VERSION, BUCKETS, "run-b", LEASE)
    before = world.snapshot()
    if taken == "job":
        assert world.catalog.generations.flip(VERSION, lanes, "run-a", [flip, other]) == []
    else:
        with pytest.raises(LeaseLost):
            world.catalog.generations.flip(VERSION, lanes, "run-a", [flip, other])
    assert world.snapshot() == before


def test_one_lost_lane_of_two_leaves_both_documents_as_they_were(world: World) -> None:
    flip = held_write(world)
    world.job(world.document("b.md", bucket="01"), bucket="01")
    world.bring_to_write()
    other = world.flip_of(world.claim_write(), ["x"])
    lanes = world.catalog.lanes.acquire(VERSION, BUCKETS, "run-a", LEASE)
    before = world.snapshot()
    with pytest.raises(LeaseLost):
        world.catalog.generations.flip(VERSION, lanes | {"01": lanes["01"] - 1}, "run-a", [flip, other])
    assert world.snapshot() == before


def test_a_document_that_is_no_longer_the_holders_does_not_keep_the_others_from_flipping(world: World) -> None:
    lost, mine = held_write(world), held_write(world, "b.md")
    world.catalog.jobs.fail(WRITE, lost.job, "run-a", Transient("busy"))
    lanes = world.catalog.lanes.acquire(VERSION, BUCKETS, "run-a", LEASE)
    assert world.catalog.generations.flip(VERSION, lanes, "run-a", [lost, mine]) == [mine.job]
    assert state(world, lost.job.doc_id) == (0, 0, {})


def test_a_holder_that_was_overtaken_records_no_rows_that_nobody_would_purge(world: World) -> None:
    flip = held_write(world)
    world.pass_time(LEASE + SECOND)
    theirs = world.flip_of(world.claim_write("run-b"), ["c1", "c2"])
    for overtaken in ("while the other writes", "after its flip"):
        before = world.snapshot()
        with pytest.raises(LeaseLost, match=f"job {flip.job.job_id} of document {flip.job.doc_id}"):
            world.catalog.generations.intend(VERSION, [(flip.job, flip.generation, ["c1:1", "c2:1"])])
        assert world.snapshot() == before, overtaken
        if world.rows(intents):
            world.flip(theirs, "run-b")


def test_a_zombie_opens_nothing(world: World) -> None:
    flip = held_write(world)
    world.pass_time(LEASE + SECOND)
    world.flip_of(world.claim_write("run-b"), ["c1"])
    before = (world.rows(intents), world.rows(purges_due), world.job_row(flip.job.job_id))
    assert world.catalog.generations.open([flip.job], "run-a") == []
    assert (world.rows(intents), world.rows(purges_due), world.job_row(flip.job.job_id)) == before


def test_the_acl_that_rows_are_written_with_is_the_documents_at_the_opening(world: World) -> None:
    document = world.document("a.md", acl_id="acl-a")
    world.job(document)
    world.bring_to_write()
    with world.catalog.database.begin() as connection:
        world.catalog.documents.move(connection, document, place("a.md", "acl-b"))
    job = world.claim_write()
    ((opened, _),) = world.catalog.generations.open([job], "run-a")
    assert (opened.acl_ids, opened.generation) == (("acl-b",), 1)
    assert world.catalog.jobs.held(WRITE, VERSION, BUCKETS, "run-a") == [opened]


def move_to(world: World, document: str, acl_id: str, order: int, content: str) -> None:
    """A document comes under another ACL, and its rows are written anew."""
    with world.catalog.database.begin() as connection:
        world.catalog.documents.move(connection, document, place("a.md", acl_id))
    world.job(document, order, Operation.ACL, content)
    flip = world.flip_of(world.claim_write(), ["c1"], rewrite=True)
    assert world.flip(flip) == [flip.job]
    world.catalog.lanes.release("run-a")


def test_a_permission_change_keeps_the_content_that_the_rows_are_of(world: World) -> None:
    document = world.document("a.md")
    world.index(document, 1, ["c1"])
    world.advance(document, 2, "two")
    world.job(document, 2, content="two")
    (job,) = world.claim(PARSE)
    world.catalog.jobs.fail(PARSE, job, "run-a", DocumentFault(Reason.CORRUPT, "broken"))
    for acl_id in ("acl-b", "acl-c"):
        move_to(world, document, acl_id, 2, "two")
        (row,) = world.rows(index_state)
        assert (row.acl_ids, row.content_hash, row.previous_content_hash) == ([acl_id], HASHES["one"], HASHES["one"])
        assert (world.row_of(document).status, world.row_of(document).reason) == ("dead_letter", "corrupt"), "it brought no new version"


def test_a_permission_change_that_died_and_was_retried_ends_with_the_document_indexed(world: World) -> None:
    document = world.document("a.md")
    world.index(document, 1, ["c1"])
    job_id = world.job(document, 1, Operation.ACL)
    world.catalog.jobs.fail(WRITE, world.claim_write(), "run-a", DocumentFault(Reason.CORRUPT, "cannot"))
    assert world.row_of(document).status == "dead_letter"
    world.catalog.dead_letters.retry([job_id])
    world.flip(world.flip_of(world.claim_write(), ["c1"], rewrite=True))
    assert (world.row_of(document).status, world.row_of(document).reason) == ("indexed", None)


def test_an_older_versions_flip_does_not_call_the_newer_one_indexed(world: World) -> None:
    flip = held_write(world)
    world.advance(flip.job.doc_id, 2, "two")
    world.job(flip.job.doc_id, 2, content="two")
    world.flip(flip)
    assert world.row_of(flip.job.doc_id).status == "pending"


def test_purges_wait_for_their_grace_and_their_marks_for_another(world: World) -> None:
    document = world.document("a.md", bucket="00")
    world.index(document, 1, ["c1", "c2"])
    world.index(document, 2, ["c2"])
    generations = world.catalog.generations
    assert generations.due(VERSION, BUCKETS, GRACE, 10) == []
    world.pass_time(GRACE + SECOND)
    assert generations.due(VERSION, ["01"], GRACE, 10) == []
    due = generations.due(VERSION, BUCKETS, GRACE, 10)
    assert [(purge.row_id, purge.bucket) for purge in due] == [("c1:1", "00")]
    assert generations.forget_purges(GRACE) == 0, "what is still in the indexes is never forgotten"
    generations.purged(VERSION, due)
    assert generations.due(VERSION, BUCKETS, GRACE, 10) == []
    assert generations.forget_purges(GRACE) == 0, "a reader that began before may still have seen the row"
    assert world.catalog.gate.look(VERSION, [document], ["c1:1"], [], world.catalog.now()).dead_gens == {"c1:1": 2}
    world.pass_time(GRACE + SECOND)
    assert generations.forget_purges(GRACE) == 1
    assert world.rows(purges_due) == []


def test_marks_are_kept_by_the_time_that_made_them_whatever_this_hosts_clock_says(world: World) -> None:
    document = world.document("a.md")
    world.index(document, 1, ["c1"])
    world.index(document, 2, ["c2"])
    world.pass_time(GRACE + SECOND)
    world.catalog.generations.purged(VERSION, world.catalog.generations.due(VERSION, BUCKETS, GRACE, 10))
    if not world.catalog.database.is_sqlite:
        world.clock.moment += timedelta(days=3650)  # a host that is ten years ahead of the server
    assert world.catalog.generations.forget_purges(GRACE) == 0


def test_purges_come_oldest_first_and_no_more_than_asked(world: World) -> None:
    document = world.document("a.md")
    for order in (1, 2, 3):
        world.index(document, order, [f"c{order}"])
        world.pass_time(SECOND)
    world.pass_time(GRACE)
    assert [purge.row_id for purge in world.catalog.generations.due(VERSION, BUCKETS, GRACE, 1)] == ["c1:1"]
    assert [purge.row_id for purge in world.catalog.generations.due(VERSION, BUCKETS, GRACE, 9)] == ["c1:1", "c2:2"]


# SQLite has one writer at a time: there is nothing to wait for crosswise.
@pytest.mark.parametrize("world_url", ["postgres"], indirect=True)
def test_a_flip_and_a_listing_that_change_the_same_documents_do_not_wait_for_each_other(world: World) -> None:
    flips = sorted((held_write(world, f"{n}.md") for n in range(2)), key=lambda flip: flip.job.doc_id)
    first, last = (flip.job.doc_id for flip in flips)
    lanes = world.catalog.lanes.acquire(VERSION, BUCKETS, "run-a", LEASE)
    done: list[object] = []
    flipping = threading.Thread(
        target=lambda: done.extend(world.catalog.generations.flip(VERSION, lanes, "run-a", list(reversed(flips)))), daemon=True
    )
    with world.catalog.database.begin() as connection:
        world.catalog.documents.lock(connection, [last, first])
        flipping.start()
        with waits_for_a_lock(world):
            world.catalog.documents.mark_missing(connection, [last, first], 5)
    flipping.join(20)
    assert len(done) == 2
    assert {world.row_of(doc_id).missing_scan for doc_id in (first, last)} == {5}
