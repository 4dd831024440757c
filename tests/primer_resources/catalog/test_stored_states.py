"""Stored states: what the database refuses, two that change one state at once, and whose a content is through the life of a document."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from threading import Barrier
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from sqlalchemy import delete, insert, select
from sqlalchemy.exc import IntegrityError

from primer_core.failures import Transient
from primer_core.ids import content_hash
from primer_core.lanes import Lane
from primer_core.stored_states import (
    INTAKE_NODE,
    Manifest,
    Part,
    PartEntry,
    PartState,
    StateIdentity,
    WrittenBy,
    earlier_state,
    intake_state,
    pipeline_state,
)
from primer_resources.catalog.contents import NewContent, is_content, lock_contents
from primer_resources.catalog.schema_bodies import LIVE, PENDING_PURGE, SUPERSEDED, contents, stored_states
from primer_resources.catalog.stored_states import state_of
from tests.primer_resources.catalog.world import HASHES, START, TENANT, World, drives_of

ONE, TWO = HASHES["one"], HASHES["two"]
OTHER_TENANT = "umbrella"
BY = WrittenBy("fetch", "run-1", "v1")
STATE = pipeline_state(TENANT, ONE, "docling 2")
NUMBERS = count()


def row(identity: StateIdentity, state: str = LIVE, **changes: Any) -> dict[str, Any]:
    """A row of a state of the content ONE."""
    values = {
        "node_id": identity.node_id,
        "doc_id": identity.doc_id,
        "node": identity.node,
        "tenant_id": identity.tenant_id,
        "graph": identity.graph,
        "content_hash": ONE,
        "manifest": [],
        "revision": 1,
        "state": state,
        "created_at": START,
        "updated_at": START,
        "doomed_at": None if state == LIVE else START,
    }
    return values | changes


def put(world: World, values: dict[str, Any]) -> None:
    with world.catalog.database.begin() as connection:
        connection.execute(insert(stored_states).values(**values))


def entry(key: str, sha256: str = "a" * 64, part: Part = Part.PARSED, sub_key: str = "document") -> PartEntry:
    """An object of a pipeline state."""
    return PartEntry(part, sub_key, PartState.PRESENT, 3, sha256, START, key, BY)


def test_the_three_kinds_of_states_are_taken(world: World) -> None:
    world.content("one")
    put(world, row(intake_state(TENANT, "doc")))
    put(world, row(intake_state(TENANT, "doomed"), PENDING_PURGE))
    put(world, row(earlier_state(TENANT, "doc", ONE), SUPERSEDED))
    put(world, row(STATE))
    assert len(world.rows(stored_states)) == 4


INTAKE, EARLIER = intake_state(TENANT, "doc"), earlier_state(TENANT, "doc", ONE)


FIELDS = ("doc_id", "node", "tenant_id", "graph")
REFUSED = (
    *(row(which, **{name: blank}) for which in (INTAKE, STATE) for name in FIELDS for blank in ("", "  ", "\t\n")),
    row(INTAKE, graph="intake:umbrella"),
    row(INTAKE, graph=f"pipeline:{TENANT}"),
    row(INTAKE, node=STATE.node),
    row(INTAKE, SUPERSEDED),
    row(EARLIER),
    row(EARLIER, SUPERSEDED, node=f"{INTAKE_NODE}/{TWO}"),
    row(EARLIER, SUPERSEDED, graph=f"pipeline:{TENANT}"),
    row(STATE, graph=f"intake:{TENANT}"),
    row(STATE, graph="pipeline:umbrella"),
    row(STATE, node=INTAKE_NODE),
    row(STATE, doc_id="doc"),
    row(STATE, PENDING_PURGE),
    row(INTAKE, doomed_at=START),
    row(INTAKE, PENDING_PURGE, doomed_at=None),
    row(INTAKE, "unheard of"),
)


def test_blank_and_mixed_identities_are_refused(world: World) -> None:
    world.content("one")
    for values in REFUSED:
        with pytest.raises(IntegrityError, match=r"ck_(no_blank_identity|no_mixed_identity|state)"):
            put(world, values)
    assert world.rows(stored_states) == []


def test_a_state_of_a_content_that_is_not_there_is_refused(world: World) -> None:
    with pytest.raises(IntegrityError):
        put(world, row(STATE))
    with pytest.raises(Transient, match="was freed while it was worked on"):
        world.catalog.states.save(STATE, ONE, [entry("key")])


def test_an_identity_that_the_database_refuses_is_not_called_a_content_that_was_freed(world: World) -> None:
    world.content("one")
    with pytest.raises(IntegrityError, match="ck_no_mixed_identity"):
        world.catalog.states.save(StateIdentity("doc", STATE.node, TENANT, STATE.graph), ONE, [entry("key")])


def test_a_body_that_is_there_stays_and_what_takes_the_place_of_another_frees_it(world: World) -> None:
    world.content("one")
    states = world.catalog.states
    states.save(STATE, ONE, [entry("first")])
    assert states.save(STATE, ONE, [entry("second")]) == Manifest.of([entry("first")])
    assert states.find([STATE.node_id])[STATE.node_id].revision == 1
    after = states.save(STATE, ONE, [entry("third", "b" * 64), entry("chunks", part=Part.CHUNKS, sub_key="c1")])
    assert [each.object_key for each in after.present()] == ["chunks", "third"]
    assert states.find([STATE.node_id])[STATE.node_id].manifest == after


def test_who_read_a_state_before_it_was_made_anew_cannot_change_it(world: World) -> None:
    world.content("one")
    states, database = world.catalog.states, world.catalog.database
    states.save(STATE, ONE, [entry("of the first life")])
    read = states.find([STATE.node_id])[STATE.node_id]
    world.pass_time(timedelta(seconds=1))
    with database.begin() as connection:
        connection.execute(delete(stored_states))
    states.save(STATE, ONE, [entry("of the second life")])
    with database.begin() as connection:
        assert not states.change(connection, read, read.manifest.merged([entry("chunks", part=Part.CHUNKS, sub_key="c1")]))
    assert [each.object_key for each in states.find([STATE.node_id])[STATE.node_id].manifest.present()] == ["of the second life"]


def test_of_many_that_make_one_state_at_once_all_have_their_parts_in_it(world: World) -> None:
    world.content("one")
    racers, rounds = 6, 8
    barrier = Barrier(racers)

    def save(number: int) -> None:
        for each in range(rounds):
            barrier.wait(60)
            sub_key = f"c{number}"
            world.catalog.states.save(pipeline_state(TENANT, ONE, f"v{each}"), ONE, [entry(sub_key, part=Part.CHUNKS, sub_key=sub_key)])

    with ThreadPoolExecutor(racers) as threads:
        for done in [threads.submit(save, number) for number in range(racers)]:
            done.result()
    rows = world.rows(stored_states)
    assert len(rows) == rounds
    assert all(len(state_of(each).manifest.present()) == racers for each in rows)


@dataclass
class Document:
    """What a model knows of a document: its content and whether it was deleted, and the contents that it had before."""

    content: str | None = None
    is_doomed: bool = False
    before: set[str] = field(default_factory=set)

    @property
    def claims(self) -> dict[str, str]:
        """content → the state that claims it."""
        found = dict.fromkeys(self.before, SUPERSEDED)
        if self.content is not None:
            found[self.content] = PENDING_PURGE if self.is_doomed else LIVE
        return found


class Rollback(Exception):
    """The transaction is not to be."""


DOCUMENTS, CONTENTS = 2, 3
tenants = st.sampled_from((TENANT, TENANT, TENANT, OTHER_TENANT))
documents = st.integers(0, DOCUMENTS - 1)
names = st.integers(0, CONTENTS - 1)


class Life(RuleBasedStateMachine):
    """Documents of two tenants get contents, lose them, are deleted and come back, and contents are freed by trying.

    A catalog serves many lives: the names of each are its own.
    """

    def __init__(self, world: World) -> None:
        super().__init__()
        self.catalog, self.world = world.catalog, world
        life = next(NUMBERS)
        self.docs = [f"life{life}-doc{number}" for number in range(DOCUMENTS)]
        self.hashes = [content_hash(b"life %d content %d" % (life, number)) for number in range(CONTENTS)]
        self.model: dict[tuple[str, str], Document] = {(tenant, doc): Document() for tenant in (TENANT, OTHER_TENANT) for doc in self.docs}
        self.objects: dict[tuple[str, str], str] = {}
        self.marked: set[tuple[str, str]] = set()

    def doc_id(self, tenant: str, number: int) -> str:
        """The id of a document, which two tenants never share."""
        return f"{tenant}-{self.docs[number]}"

    def claims(self, tenant: str, content: str) -> list[str]:
        """The states that claim a content."""
        return [document.claims[content] for (owner, _), document in self.model.items() if owner == tenant and content in document.claims]

    def own(self, tenant: str, number: int, content: str | None, fail: bool) -> None:
        """Give a document a content; with `fail` the transaction comes to nothing."""
        with self.catalog.database.begin() as connection:
            lock_contents(connection, [] if content is None else [(tenant, content)])
            self.catalog.states.own(connection, tenant, self.doc_id(tenant, number), content, BY)
            if fail:
                raise Rollback

    @initialize()
    def begin(self) -> None:
        """A sync has stored all contents."""
        for tenant in (TENANT, OTHER_TENANT):
            for name in range(CONTENTS):
                self.keep(tenant, name)

    @rule(tenant=tenants, name=names)
    def keep(self, tenant: str, name: int) -> None:
        """A sync stores bytes, or finds them stored."""
        content = self.hashes[name]
        known = self.objects.get((tenant, content))
        key = known or f"key-{next(NUMBERS)}"
        added = self.catalog.contents.add(NewContent(tenant, content, 9, "text/plain", Lane.FAST, key))
        assert added == (known is None)
        assert self.catalog.contents.touch(tenant, content, key)
        self.objects[tenant, content] = key
        self.marked.add((tenant, content))

    @rule(tenant=tenants, number=documents, name=names, fail=st.sampled_from((False, False, False, True)))
    def give(self, tenant: str, number: int, name: int, fail: bool) -> None:
        """A document is new, was edited, edited back, or comes back after its deletion."""
        content, document = self.hashes[name], self.model[tenant, self.docs[number]]
        if (tenant, content) not in self.objects:
            with pytest.raises(Transient, match="was freed"):
                self.own(tenant, number, content, fail)
            return
        if fail:
            with pytest.raises(Rollback):
                self.own(tenant, number, content, fail)
            return
        self.own(tenant, number, content, fail)
        self.marked.discard((tenant, content))
        if document.content is not None:
            document.before.add(document.content)
        document.before.discard(content)
        document.content, document.is_doomed = content, False

    @rule(tenant=tenants, number=documents)
    def cannot_be_read(self, tenant: str, number: int) -> None:
        """A document has no bytes any more that anybody could read."""
        document = self.model[tenant, self.docs[number]]
        self.own(tenant, number, None, fail=False)
        if document.content is not None:
            document.before.add(document.content)
        document.content, document.is_doomed = None, False

    @rule(tenant=tenants, numbers=st.sets(documents, min_size=1))
    def delete(self, tenant: str, numbers: set[int]) -> None:
        """Documents are tombstoned, perhaps again."""
        with self.catalog.database.begin() as connection:
            self.catalog.states.doom(connection, [self.doc_id(tenant, number) for number in numbers])
        for number in numbers:
            document = self.model[tenant, self.docs[number]]
            document.is_doomed = document.content is not None

    @rule(tenant=tenants, number=documents)
    def purge(self, tenant: str, number: int) -> None:
        """A document lets go of what it had, but for what a sync has just touched; contents that nobody else has are freed with it."""
        document = self.model[tenant, self.docs[number]]
        gone = {content for content, state in document.claims.items() if state != LIVE and (tenant, content) not in self.marked}
        assert self.catalog.purges.release([self.doc_id(tenant, number)], timedelta(0)) == len(gone)
        document.before -= gone
        if document.content in gone:
            document.content, document.is_doomed = None, False
        for content in gone:
            if not self.claims(tenant, content):
                del self.objects[tenant, content]

    @rule(tenant=tenants, name=names)
    def free(self, tenant: str, name: int) -> None:
        """A content is freed by trying: it goes if nobody claims it, and stays if anybody does."""
        content = self.hashes[name]
        try:
            with self.catalog.database.begin() as connection:
                connection.execute(delete(contents).where(is_content(tenant, content)))
        except IntegrityError:
            assert self.claims(tenant, content), "a content that nobody claims can be freed"
        else:
            assert not self.claims(tenant, content), "a content that somebody claims was freed"
            self.objects.pop((tenant, content), None)
            self.marked.discard((tenant, content))

    @invariant()
    def the_claims_are_those_of_the_model(self) -> None:
        """Each claim is one state, whole and with the key of the content's bytes."""
        every = {self.doc_id(tenant, number): (tenant, doc) for tenant in (TENANT, OTHER_TENANT) for number, doc in enumerate(self.docs)}
        with self.catalog.database.read() as connection:
            rows = [state_of(each) for each in connection.execute(select(stored_states).where(stored_states.c.doc_id.in_(every)))]
        found: dict[tuple[str, str], dict[str, str]] = {of: {} for of in self.model}
        for each in rows:
            found[every[each.doc_id]][each.content_hash] = each.state
            assert each.tenant_id == every[each.doc_id][0]
            assert (each.doomed_at is None) == (each.state == LIVE)
            (one,) = each.manifest.present()
            assert (one.key, one.sha256, one.object_key) == (
                (Part.BLOBS, ""),
                each.content_hash,
                self.objects[each.tenant_id, each.content_hash],
            )
        assert found == {of: document.claims for of, document in self.model.items()}

    @invariant()
    def what_nobody_claims_is_marked(self) -> None:
        """So that somebody looks after it."""
        with self.catalog.database.read() as connection:
            rows = connection.execute(select(contents).where(contents.c.content_hash.in_(self.hashes))).all()
        assert {(each.tenant_id, each.content_hash): each.object for each in rows} == self.objects
        assert {(each.tenant_id, each.content_hash) for each in rows if each.unowned_at is not None} == self.marked
        assert all(of in self.marked or self.claims(*of) for of in self.objects)


@pytest.fixture
def shared(world: World) -> World:
    """A world with two tenants."""
    world.catalog.tenants.add(OTHER_TENANT, drives_of(OTHER_TENANT))
    return world


def test_whatever_happens_to_documents_a_content_is_theirs_who_have_it(shared: World) -> None:
    many = settings(max_examples=25 if shared.catalog.database.is_sqlite else 12, stateful_step_count=25)
    run_state_machine_as_test(lambda: Life(shared), settings=many)
