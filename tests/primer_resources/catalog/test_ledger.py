"""The ledger: receipts only move it forward, it is written with what it tells of, and pages of it are read from an index."""

import re
import threading
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from multiprocessing import get_context
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, event

from primer_core.failures import DocumentFault, LeaseLost, Reason
from primer_core.outcomes import SUCCESSES, Outcome, Receipt
from primer_core.stages import FETCH, PARSE, WRITE, Operation
from primer_core.ulids import moment_of, next_ulid
from primer_resources.catalog.jobs import NewJob
from primer_resources.catalog.ledger import Entry
from primer_resources.catalog.schema import ledger
from tests.primer_resources.catalog.recorders import PROCESSES, record_all
from tests.primer_resources.catalog.world import BUCKETS, HASHES, LEASE, SOURCE, START, VERSION, World, place, source, waits_for_a_lock

SECOND = timedelta(seconds=1)
FAULT = DocumentFault(Reason.CORRUPT, "it is broken")


def receipt(doc_id: str, number: int, outcome: Outcome = Outcome.INDEXED, **changes: Any) -> Receipt:
    """The receipt of an attempt in that second, which differs from that of any other."""
    at = START + number * SECOND
    is_dead = outcome is Outcome.DEAD
    values: dict[str, Any] = {
        "doc_id": doc_id,
        "index_version": VERSION,
        "source_id": SOURCE,
        "attempt_ulid": next_ulid(at, Random(number)),
        "outcome": outcome,
        "source_version": f"v{number}",
        "content_hash": f"hash {number}",
        "chunks": number if outcome is Outcome.INDEXED else 0,
        "reason": Reason.CORRUPT if is_dead else None,
        "error": f"error {number}" if is_dead else None,
        "job_id": number,
        "ended_at": at,
    }
    return Receipt(**(values | changes))


def record(world: World, *receipts: Receipt) -> None:
    with world.catalog.database.begin() as connection:
        world.catalog.ledger.record(connection, receipts)


def entry(world: World, doc_id: str) -> Entry:
    return world.catalog.ledger.of([doc_id], VERSION)[doc_id]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
@given(
    outcomes=st.lists(st.sampled_from(Outcome), min_size=1, max_size=6),
    order=st.lists(st.integers(0, 5), max_size=8),
    together=st.booleans(),
    shuffle=st.randoms(use_true_random=False),
)
def test_receipts_in_any_order_and_repeated_give_the_row_that_they_give_in_order(
    world: World, outcomes: list[Outcome], order: list[int], together: bool, shuffle: Any
) -> None:
    documents = [world.catalog.documents.by_path(SOURCE, [path]).get(path) for path in ("straight", "mixed")]
    straight, mixed = (
        known.doc_id if known else world.document(path) for known, path in zip(documents, ("straight", "mixed"), strict=True)
    )
    with world.catalog.database.begin() as connection:
        connection.execute(delete(ledger))
    for number, outcome in enumerate(outcomes):
        record(world, receipt(straight, number, outcome))
    all_of_them = [*range(len(outcomes)), *(number for number in order if number < len(outcomes))]
    shuffle.shuffle(all_of_them)
    shuffled = [receipt(mixed, number, outcomes[number]) for number in all_of_them]
    for part in [shuffled] if together else [[each] for each in shuffled]:
        record(world, *part)
    assert replace(entry(world, mixed), doc_id=straight) == entry(world, straight)
    last = outcomes[-1]
    assert entry(world, mixed).outcome is last
    changed = [number for number, outcome in enumerate(outcomes) if outcome is not Outcome.DEAD]
    stands = bool(changed) and outcomes[changed[-1]] in SUCCESSES
    assert entry(world, mixed).indexed_version == (f"v{changed[-1]}" if stands else None)


@pytest.mark.parametrize("late", Outcome)
def test_a_stale_and_a_repeated_receipt_are_no_ops(world: World, late: Outcome) -> None:
    document = world.document("a.md")
    newest = receipt(document, 5)
    record(world, newest)
    before = world.snapshot()
    record(world, receipt(document, 4, late), newest, replace(newest, outcome=late, chunks=99))
    assert world.snapshot() == before


def test_what_died_later_is_the_outcome_and_what_was_written_meanwhile_stands(world: World) -> None:
    document = world.document("a.md")
    record(world, receipt(document, 7, Outcome.DEAD))
    record(world, receipt(document, 3))
    found = entry(world, document)
    assert (found.outcome, found.source_version, found.error, found.job_id) == (Outcome.DEAD, "v7", "error 7", 7)
    assert (found.indexed_version, found.chunks, found.indexed_at) == ("v3", 3, START + 3 * SECOND)


def test_processes_that_record_at_once_leave_the_newest_of_all(world: World) -> None:
    documents = [world.document(f"{n}.md") for n in range(5)]
    context = get_context("spawn")
    with context.Manager() as manager, ProcessPoolExecutor(PROCESSES, mp_context=context) as pool:
        together = manager.Barrier(PROCESSES)
        told = list(pool.map(record_all, [world.url] * PROCESSES, range(PROCESSES), [documents] * PROCESSES, [together] * PROCESSES))
    for document in documents:
        newest = max((each for one in told for each in one if each.doc_id == document), key=lambda each: each.attempt_ulid)
        changed = max(
            (each for one in told for each in one if each.doc_id == document and each.outcome is Outcome.INDEXED),
            key=lambda each: each.attempt_ulid,
        )
        found = entry(world, document)
        assert (found.attempt_ulid, found.outcome, found.source_version) == (newest.attempt_ulid, newest.outcome, newest.source_version)
        assert (found.indexed_version, found.chunks) == (changed.source_version, changed.chunks)


def test_a_flip_writes_what_is_indexed_now(world: World) -> None:
    document = world.document("a.md")
    flip = world.index(document, 1, ["c1", "c2"])
    found = entry(world, document)
    assert (found.outcome, found.source_version, found.content_hash, found.job_id) == ("indexed", "v1", HASHES["one"], flip.job.job_id)
    assert (found.indexed_version, found.chunks, found.reason, found.error) == ("v1", 2, None, None)
    assert found.indexed_at == found.ended_at
    assert found.attempt_ulid == flip.job.attempt_ulid
    world.index(document, 2, [], "two")
    found = entry(world, document)
    assert (found.outcome, found.indexed_version, found.chunks) == ("empty", "v2", 0)


def test_a_delete_leaves_nothing_indexed(world: World) -> None:
    document = world.document("a.md")
    world.index(document, 1, ["c1"])
    with world.catalog.database.begin() as connection:
        world.catalog.documents.tombstone(connection, [world.catalog.documents.by_id([document])[document]], world.catalog.now())
    world.job(document, 1, Operation.DELETE, None)
    world.flip(world.flip_of(world.claim_write(), []))
    found = entry(world, document)
    assert (found.outcome, found.indexed_version, found.chunks, found.indexed_at) == ("deleted", None, 0, None)


def test_a_dead_letter_says_why_and_what_was_indexed_before_it_stands(world: World) -> None:
    document = world.document("a.md")
    world.index(document, 1, ["c1"])
    world.advance(document, 2, "two")
    job_id = world.job(document, 2, content="two")
    (job,) = world.claim(PARSE)
    world.catalog.jobs.fail(PARSE, job, "run-a", FAULT)
    found = entry(world, document)
    assert (found.outcome, found.source_version, found.content_hash, found.job_id) == ("dead", "v2", HASHES["two"], job_id)
    assert (found.reason, found.error, found.indexed_version, found.chunks) == ("corrupt", "it is broken", "v1", 1)
    status = world.catalog.lookup.status(document, VERSION)
    assert (status.stage, status.outcome, status.error, status.reason) == ("dead_letter", "dead", "it is broken", "corrupt")
    assert (status.indexed_version, status.chunks, status.indexed_at) == ("v1", 1, found.indexed_at)


def test_the_last_death_of_a_holder_is_in_the_ledger(world: World) -> None:
    document = world.document("a.md")
    world.job(document)
    for _ in range(5):
        world.claim(PARSE)
        world.pass_time(LEASE + SECOND)
    assert world.claim(PARSE) == []
    found = entry(world, document)
    assert (found.outcome, found.reason, found.indexed_version) == ("dead", "attempts_exhausted", None)


def died_at_its_fetch(world: World, doc_id: str, order: int) -> None:
    with world.catalog.database.begin() as connection:
        job = NewJob(doc_id, SOURCE, f"v{order}", None, "00", "fast", Operation.UPSERT, START)
        world.catalog.dead_letters.add(connection, job, [VERSION], FETCH, FAULT)


def test_a_version_that_dies_at_its_fetch_while_the_one_before_is_written_is_the_outcome(world: World) -> None:
    document = world.document("a.md")
    world.job(document)
    world.bring_to_write()
    flip = world.flip_of(world.claim_write(), ["c1"])
    world.advance(document, 2, "two")
    died_at_its_fetch(world, document, 2)
    assert world.flip(flip) == [flip.job]
    found = entry(world, document)
    assert (found.outcome, found.source_version, found.indexed_version, found.chunks) == ("dead", "v2", "v1", 1)


def test_a_document_that_died_unread_and_went_is_deleted(world: World) -> None:
    document = world.document("a.md")
    died_at_its_fetch(world, document, 1)
    with world.catalog.database.begin() as connection:
        world.catalog.jobs.supersede(connection, document, world.catalog.now())
    found = entry(world, document)
    assert (found.outcome, found.error, found.job_id) == ("deleted", None, None)


def test_a_document_that_comes_back_has_nothing_indexed_until_its_new_version_is(world: World) -> None:
    document = world.document("a.md")
    world.index(document, 1, ["c1"])
    with world.catalog.database.begin() as connection:
        world.catalog.documents.tombstone(connection, [world.catalog.documents.by_id([document])[document]], world.catalog.now())
    assert world.document("a.md", order=9, content="two") == document
    assert entry(world, document).indexed_version is None
    died_at_its_fetch(world, document, 9)
    found = entry(world, document)
    assert (found.outcome, found.indexed_version, found.chunks) == ("dead", None, 0)


def rewritten(world: World, document: str) -> None:
    """The document comes under another ACL, and its rows are written anew."""
    with world.catalog.database.begin() as connection:
        world.catalog.documents.move(connection, document, place("a.md", "acl-b"))
    world.job(document, 1, Operation.ACL)
    flip = world.flip_of(world.claim_write(), ["c1"], rewrite=True)
    assert world.flip(flip) == [flip.job]


def test_a_permission_change_does_not_hide_that_the_newest_version_died(world: World) -> None:
    document = world.document("a.md")
    world.index(document, 1, ["c1"])
    world.advance(document, 2, "two")
    world.job(document, 2, content="two")
    (job,) = world.claim(PARSE)
    world.catalog.jobs.fail(PARSE, job, "run-a", FAULT)
    before = entry(world, document)
    rewritten(world, document)
    assert entry(world, document) == before


def test_a_permission_change_that_died_is_mended_by_the_next_one(world: World) -> None:
    document = world.document("a.md")
    world.index(document, 1, ["c1"])
    world.job(document, 1, Operation.ACL)
    world.catalog.jobs.fail(WRITE, world.claim_write(), "run-a", FAULT)
    assert entry(world, document).outcome == "dead"
    rewritten(world, document)
    found = entry(world, document)
    assert (found.outcome, found.source_version, found.content_hash, found.chunks) == ("indexed", "v1", HASHES["one"], 1)


def test_a_holder_that_was_overtaken_has_an_older_attempt_and_writes_no_receipt(world: World) -> None:
    document = world.document("a.md")
    world.job(document)
    world.bring_to_write()
    flip = world.flip_of(world.claim_write("run-a"), ["c1"])
    world.pass_time(LEASE + SECOND)
    theirs = world.flip_of(world.claim_write("run-b"), ["c1"])
    assert flip.job.attempt_ulid is not None
    assert theirs.job.attempt_ulid is not None
    assert flip.job.attempt_ulid < theirs.job.attempt_ulid
    world.flip(theirs, "run-b")
    world.catalog.lanes.release("run-b")
    before = world.snapshot()["ledger"]
    with suppress(LeaseLost):
        world.flip(flip, "run-a")
    assert world.snapshot()["ledger"] == before
    assert entry(world, document).attempt_ulid == theirs.job.attempt_ulid


# SQLite has one writer at a time: there is nothing to wait for crosswise.
@pytest.mark.parametrize("world_url", ["postgres"], indirect=True)
def test_a_flip_and_dead_letters_of_the_same_documents_do_not_wait_for_each_other(world: World) -> None:
    documents = sorted(world.document(f"{n}.md") for n in range(2))
    for document in documents:
        world.job(document)
    world.bring_to_write()
    flips = [world.flip_of(job, [f"c of {job.doc_id}"]) for job in world.claim(WRITE)]
    for document in documents:
        world.advance(document, 2, "two")
    lanes = world.catalog.lanes.acquire(VERSION, BUCKETS, "run-a", LEASE)
    done: list[object] = []
    flipping = threading.Thread(target=lambda: done.extend(world.catalog.generations.flip(VERSION, lanes, "run-a", flips)), daemon=True)
    dead = [NewJob(document, SOURCE, "v2", None, "00", "fast", Operation.UPSERT, START) for document in documents]
    with world.catalog.database.begin() as connection:
        world.catalog.documents.lock(connection, documents)
        world.catalog.dead_letters.add(connection, dead[1], [VERSION], FETCH, FAULT)
        flipping.start()
        with waits_for_a_lock(world):
            world.catalog.dead_letters.add(connection, dead[0], [VERSION], FETCH, FAULT)
    flipping.join(20)
    assert len(done) == 2
    assert [(entry(world, document).outcome, entry(world, document).indexed_version) for document in documents] == [("dead", "v1")] * 2


def test_a_flip_that_fails_leaves_the_ledger_as_it_was(world: World) -> None:
    world.job(world.document("a.md"))
    world.bring_to_write()
    flip = world.flip_of(world.claim_write(), ["c1"])
    lanes = world.catalog.lanes.acquire(VERSION, BUCKETS, "run-a", LEASE)
    with pytest.raises(LeaseLost):
        world.catalog.generations.flip(VERSION, {bucket: epoch - 1 for bucket, epoch in lanes.items()}, "run-a", [flip])
    assert world.rows(ledger) == []


def test_an_attempt_is_newer_than_all_before_it_though_the_clock_went_back(world: World) -> None:
    document = world.document("a.md")
    ahead = receipt(document, 0, attempt_ulid=next_ulid(world.catalog.now() + timedelta(days=3650), Random(1)))
    record(world, ahead)
    flip = world.index(document, 2, ["c1"], "two")
    assert flip.job.attempt_ulid is not None
    assert flip.job.attempt_ulid > ahead.attempt_ulid
    assert entry(world, document).source_version == "v2"
    with world.catalog.database.begin() as connection:
        (other,) = world.catalog.ledger.attempts(connection, VERSION, ["another"], world.catalog.now()).values()
    assert moment_of(other) < world.catalog.now() + SECOND, "one document's clock is not all documents'"


def test_attempts_of_one_millisecond_are_in_the_order_in_which_they_began(world: World) -> None:
    now, made = world.catalog.now(), []
    with world.catalog.database.begin() as connection:
        for _ in range(50):
            made += world.catalog.ledger.attempts(connection, VERSION, ["a"], now).values()
    assert made == sorted(set(made))


def seeded(world: World) -> dict[str, list[str]]:
    """Nine documents, three of them dead, every second one of another source. Returns source → doc_ids of the dead."""
    world.catalog.sources.add(source("wiki"))
    dead: dict[str, list[str]] = {SOURCE: [], "wiki": []}
    for number in range(9):
        document = world.document(f"{number}.md")
        where = "wiki" if number % 2 else SOURCE
        outcome = Outcome.DEAD if number % 3 == 0 else Outcome.INDEXED
        record(world, receipt(document, number, outcome, source_id=where))
        if outcome is Outcome.DEAD:
            dead[where].append(document)
    return dead


def ids(entries: Sequence[Entry]) -> list[str]:
    return [each.doc_id for each in entries]


def test_pages_of_an_outcome_show_each_document_once_in_the_order_of_their_ids(world: World) -> None:
    dead = seeded(world)
    every = sorted([*dead[SOURCE], *dead["wiki"]])
    book = world.catalog.ledger
    first = book.with_outcome(Outcome.DEAD, VERSION, limit=2)
    assert ids(first) == every[:2]
    assert ids(book.with_outcome(Outcome.DEAD, VERSION, after=first[-1].doc_id, limit=2)) == every[2:]
    assert ids(book.with_outcome(Outcome.DEAD, VERSION, "wiki")) == sorted(dead["wiki"])
    assert len(book.with_outcome(Outcome.INDEXED, VERSION)) == 6
    assert book.with_outcome(Outcome.DEAD, "v2") == []


def test_times_are_closed_at_their_start_and_open_at_their_end(world: World) -> None:
    seeded(world)
    found = world.catalog.ledger.with_outcome(Outcome.DEAD, VERSION, since=START + 3 * SECOND, until=START + 6 * SECOND)
    assert [each.ended_at for each in found] == [START + 3 * SECOND]


@pytest.mark.parametrize(("source_id", "index"), [(None, "ix_ledger_outcome"), ("wiki", "ix_ledger_source_outcome")])
def test_a_page_is_read_from_an_index_in_its_order(world: World, source_id: str | None, index: str) -> None:
    seen: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_rest: Any) -> None:
        if "ledger" in statement:
            seen.append((statement, parameters))

    event.listen(world.catalog.database.engine, "before_cursor_execute", note)
    world.catalog.ledger.with_outcome(Outcome.DEAD, VERSION, source_id, START, START + SECOND, "0", 5)
    event.remove(world.catalog.database.engine, "before_cursor_execute", note)
    ((statement, parameters),) = seen
    with world.catalog.database.read() as connection:
        if world.catalog.database.is_sqlite:
            plan = "\n".join(str(row[-1]) for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters))
        else:
            connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
            connection.exec_driver_sql("SET LOCAL enable_bitmapscan = off")
            plan = "\n".join(str(row[0]) for row in connection.exec_driver_sql(f"EXPLAIN {statement}", parameters))
    assert re.search(rf"\b{index}\b", plan), plan
    assert not re.search("TEMP B-TREE|Sort", plan), plan
