"""Reviews on both databases: decisions last, nothing is asked twice, and a decision reaches every document, whatever is under way."""

from collections.abc import Sequence
from threading import Event, Thread

import pytest
from sqlalchemy import select, update

from primer_core.failures import DocumentFault, PrimerError, Reason
from primer_core.lanes import Lane
from primer_core.reviews import ReviewState, output_version
from primer_core.stages import CHUNK, PARSE, Operation, State
from primer_resources.catalog.reviews import SeenPage
from primer_resources.catalog.schema import index_state, jobs
from primer_resources.catalog.schema_bodies import reviews
from tests.primer_resources.catalog.world import HASHES, RECIPE, TENANT, VERSION, World

ONE = HASHES["one"]
PARSER = RECIPE.parser.version


def content(world: World, name: str = "one", lane: Lane = Lane.SLOW) -> None:
    world.content(name, lane, mime="application/pdf")


def see(world: World, *pages: int, parser: str = PARSER, text: str = "blurred", name: str = "one") -> None:
    """A parse that found these pages below the bar."""
    seen = [SeenPage(page, 0, 0.4, text, f"reviews/{page}.png") for page in pages]
    with world.catalog.database.begin() as connection:
        world.catalog.reviews.record(connection, TENANT, HASHES[name], parser, {PARSER, parser}, seen)


def decide(world: World, state: ReviewState, *pages: int) -> Sequence[str]:
    return world.catalog.reviews.decide(TENANT, ONE, pages, state, "ann").doc_ids


def waiting(world: World) -> list[tuple[str, int]]:
    return [(review.path, review.page) for review in world.catalog.reviews.listed([ReviewState.OPEN])]


def label(world: World) -> str:
    with world.catalog.database.begin() as connection:
        return world.catalog.reviews.accepted(connection, TENANT, [ONE])[ONE]


def test_pages_are_listed_with_every_document_that_has_the_content_and_go_with_it(world: World) -> None:
    content(world)
    first = world.document("a.pdf")
    world.document("b.pdf")
    see(world, 2, 5)
    assert waiting(world) == [("a.pdf", 2), ("a.pdf", 5), ("b.pdf", 2), ("b.pdf", 5)]
    assert world.catalog.lookup.status(first, VERSION).pages_to_review == 2
    known = world.catalog.documents.by_id([first])
    with world.catalog.database.begin() as connection:
        world.catalog.documents.tombstone(connection, [known[first]], world.catalog.now())
    assert waiting(world) == [("b.pdf", 2), ("b.pdf", 5)]
    assert world.advance(world.catalog.lookup.find_document("handbook/b.pdf")[0], 2)
    assert waiting(world) == [], "nobody has that content any more"


def test_a_decision_survives_every_later_parse_and_is_never_asked_again(world: World) -> None:
    content(world)
    world.document("a.pdf")
    see(world, 1, 2, 3)
    decide(world, ReviewState.ACCEPTED, 1)
    decide(world, ReviewState.REJECTED, 2)
    see(world, 1, 2, 3, parser="docling 9", text="other words")
    assert waiting(world) == [("a.pdf", 3)]
    assert {row.page: (row.state, row.text, row.decided_by) for row in world.rows(reviews)} == {
        1: ("accepted", "blurred", "ann"),
        2: ("rejected", "blurred", "ann"),
        3: ("open", "other words", None),
    }
    assert label(world) == "1"
    world.document("late.pdf")
    assert ("late.pdf", 1) not in waiting(world), "a document that comes later with this content is decided, too"


def test_pages_that_a_newer_parse_reads_well_are_asked_no_more_but_those_of_another_parser_in_use_are(world: World) -> None:
    content(world)
    world.document("a.pdf")
    see(world, 1, 2)
    see(world, 2)
    assert waiting(world) == [("a.pdf", 2)]
    see(world, 4, parser="docling 9")
    assert waiting(world) == [("a.pdf", 2), ("a.pdf", 4)], "the live version's parser still cannot read page 2"
    with world.catalog.database.begin() as connection:
        world.catalog.reviews.record(connection, TENANT, ONE, "docling 9", {"docling 9"}, [])
    assert waiting(world) == [], "neither parser is in use with these pages"


def test_accepting_makes_one_new_job_for_each_document_in_the_contents_lane(world: World) -> None:
    content(world)
    ids = sorted([world.document("a.pdf"), world.document("b.pdf")])
    other = world.document("other.pdf", content="two")
    see(world, 1, 2)
    assert sorted(decide(world, ReviewState.ACCEPTED)) == ids
    found = world.rows(jobs)
    assert sorted(row.doc_id for row in found) == ids
    assert {(row.lane, row.state, row.content_hash, row.source_version) for row in found} == {("slow", "pending_parse", ONE, "v1")}
    assert world.row_of(other).status == "pending"
    assert label(world) == "1-2"


def test_a_decision_that_changes_no_page_makes_no_job_and_one_that_is_taken_back_does(world: World) -> None:
    content(world)
    doc = world.document("a.pdf")
    see(world, 1, 2)
    assert decide(world, ReviewState.REJECTED, 1) == ()
    assert world.rows(jobs) == []
    assert decide(world, ReviewState.ACCEPTED, 1) == (doc,)
    assert decide(world, ReviewState.ACCEPTED, 1) == ()
    assert decide(world, ReviewState.REJECTED, 1) == (doc,)
    assert [row.state for row in world.rows(jobs)] == [State.SUPERSEDED, State.PENDING_PARSE]


def test_a_dead_letter_comes_back_to_life_when_a_page_is_accepted(world: World) -> None:
    content(world, lane=Lane.FAST)
    doc = world.document("a.pdf")
    world.job(doc)
    (job,) = world.claim(PARSE)
    see(world, 1)
    world.catalog.jobs.fail(PARSE, job, "run-a", DocumentFault(Reason.OCR_BELOW_BAR, "nothing is readable"))
    assert world.row_of(doc).reason == "ocr_below_bar"
    decide(world, ReviewState.ACCEPTED)
    assert world.catalog.lookup.dead_letters() == []
    assert (world.row_of(doc).status, world.row_of(doc).reason) == ("pending", None)
    assert len(world.claim(PARSE)) == 1


def test_pages_that_were_never_listed_and_decisions_on_nothing_are_named(world: World) -> None:
    content(world)
    world.document("a.pdf")
    see(world, 1, 2, 3)
    with pytest.raises(PrimerError, match="page 7,9 is not under review; pages that wait: 1-3"):
        decide(world, ReviewState.ACCEPTED, 1, 7, 9)
    assert waiting(world) == [("a.pdf", 1), ("a.pdf", 2), ("a.pdf", 3)]
    decide(world, ReviewState.REJECTED)
    with pytest.raises(PrimerError, match="no page of this document waits"):
        decide(world, ReviewState.ACCEPTED)


def test_a_parse_that_ends_after_a_decision_is_superseded_by_the_decisions_job(world: World) -> None:
    content(world, lane=Lane.FAST)
    doc = world.document("a.pdf")
    old = world.job(doc)
    (job,) = world.claim(PARSE)
    see(world, 1)
    decide(world, ReviewState.ACCEPTED)
    with world.catalog.database.begin() as connection:
        world.catalog.jobs.put_back(connection, PARSE, [job], "run-a")
    assert world.job_row(old).state == State.SUPERSEDED
    (new,) = world.claim(PARSE, "run-b")
    assert new.job_id > old


def test_a_fault_of_a_parse_that_a_decision_overtook_is_no_dead_letter(world: World) -> None:
    content(world, lane=Lane.FAST)
    doc = world.document("a.pdf")
    old = world.job(doc)
    (job,) = world.claim(PARSE)
    see(world, 1)
    decide(world, ReviewState.ACCEPTED)
    world.catalog.jobs.fail(PARSE, job, "run-a", DocumentFault(Reason.OCR_BELOW_BAR, "nothing is readable"))
    assert world.job_row(old).state == State.SUPERSEDED
    assert world.row_of(doc).status == "pending"


def test_a_decision_waits_for_a_parse_that_is_being_committed_and_sees_its_jobs(world: World) -> None:
    """On Postgres the lock on the content does it; SQLite has one writer."""
    content(world, lane=Lane.FAST)
    see(world, 1)
    doc = world.document("a.pdf")
    world.job(doc)
    (job,) = world.claim(PARSE)
    begun = Event()

    def from_another_process() -> None:
        begun.set()
        decide(world, ReviewState.ACCEPTED)

    person = Thread(target=from_another_process)
    with world.catalog.database.begin() as connection:
        assert world.catalog.reviews.accepted(connection, TENANT, [ONE]) == {ONE: ""}
        person.start()
        assert begun.wait(10)
        person.join(0.3)
        assert person.is_alive(), "the decision must not be made between the look and the commit"
        world.catalog.jobs.complete_parse(connection, [job], "run-a", {}, "")
    person.join(30)
    assert not person.is_alive()
    assert [(row.state, row.accepted_pages) for row in world.rows(jobs)] == [(State.SUPERSEDED, ""), (State.PENDING_PARSE, "")]


def test_what_a_parse_gave_is_known_by_the_pages_it_was_made_with(world: World) -> None:
    content(world)
    with world.catalog.database.begin() as connection:
        world.catalog.parses.record(connection, output_version("p", ""), TENANT, ONE, 3, 2, None)
        assert world.catalog.parses.known(connection, TENANT, {ONE: output_version("p", "")}) == {ONE}
        assert world.catalog.parses.known(connection, TENANT, {ONE: output_version("p", "1")}) == set()
        world.catalog.parses.record(connection, output_version("p", "1"), TENANT, ONE, None, None, Reason.PARSE_TIMEOUT)
        assert world.catalog.parses.known(connection, TENANT, {ONE: output_version("p", "1")}) == set(), "a fault is no output"


def test_the_label_goes_with_the_job_to_the_flip_and_a_permission_change_keeps_it(world: World) -> None:
    content(world)
    doc = world.document("a.pdf")
    world.index(doc, 1, ["c1"])
    world.job(doc)
    (job,) = world.claim(PARSE)
    with world.catalog.database.begin() as connection:
        world.catalog.jobs.complete_parse(connection, [job], "run-a", {}, "2-3")
    assert [each.accepted_pages for each in world.claim(CHUNK)] == ["2-3"]
    with world.catalog.database.begin() as connection:
        connection.execute(update(jobs).where(jobs.c.job_id == job.job_id).values(state=State.PENDING_WRITE, stage="write"))
    flip = world.flip_of(world.claim_write(), ["c1", "c2"])
    assert world.flip(flip) == [flip.job]
    assert world.catalog.generations.states(VERSION, [doc])[doc].accepted_pages == "2-3"
    world.job(doc, operation=Operation.ACL, content=None)
    flip = world.flip_of(world.claim_write(), ["c1", "c2"])
    assert world.flip(flip) == [flip.job]
    with world.catalog.database.read() as connection:
        row = connection.execute(select(index_state.c.accepted_pages, index_state.c.previous_accepted_pages)).one()
    assert tuple(row) == ("2-3", "2-3")
