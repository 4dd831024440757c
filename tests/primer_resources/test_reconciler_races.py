"""A reconciler that takes orphans beside saves that run, are slow, or are killed: no object that a row owns is ever lost."""

import multiprocessing
import os
import signal
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from random import Random
from threading import Condition
from typing import Any

import pytest
from sqlalchemy import delete

from primer_core.coherence import MIN_AGE
from primer_core.drives import DriveSpec
from primer_core.ids import content_hash
from primer_core.lanes import Lane
from primer_core.part_keys import SOURCE, chunk_set
from primer_core.stored_states import DriveKind, pipeline_state
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.contents import Contents
from primer_resources.catalog.schema_bodies import stored_states
from primer_resources.catalog.stored_states import StoredStates
from primer_resources.clock import SystemClock
from primer_resources.document_store import Arrived
from primer_resources.document_store.drive import Drive
from primer_resources.document_store.folder_drive import FolderDrive
from primer_resources.document_store.states import new_key
from tests.primer_resources.catalog.conftest import postgres_copy, sqlite_template, world, world_url
from tests.primer_resources.catalog.world import TENANT, HandClock, World
from tests.shelves import CHUNKER, PARSE, Shelves, chunk, parsed

__all__ = ["postgres_copy", "sqlite_template", "world", "world_url"]

SAVERS, ROUNDS = 3, 8
WAIT_S = 60
LONG_AGO = 2 * MIN_AGE.total_seconds()
INTAKE, PIPELINE = DriveKind.INTAKE, DriveKind.PIPELINE

on_sqlite = pytest.mark.parametrize("world_url", ["sqlite"], indirect=True)
"""Of what the database has no part in."""


def shelves_of(catalog: Catalog, folder: Path) -> Shelves:
    return Shelves(catalog, TENANT, {kind: DriveSpec(str(folder / kind)) for kind in DriveKind}, folder)


@pytest.fixture
def shelves(world: World, tmp_path: Path) -> Shelves:
    return shelves_of(world.catalog, tmp_path)


def check_all_there(shelves: Shelves) -> None:
    """Every object that a row owns is on its drive."""
    for kind in DriveKind:
        assert shelves.owned(kind) <= shelves.keys(kind).keys()


def age(shelves: Shelves, kind: DriveKind, key: str) -> None:
    """The file of an object is two hours old."""
    path = Path(shelves.drive(kind).place) / key
    then = path.stat().st_mtime - LONG_AGO
    os.utime(path, (then, then))


class Looks:
    """Looks that were taken, and threads that wait for one."""

    def __init__(self) -> None:
        self._taken = 0
        self._changed = Condition()

    def one_more(self) -> None:
        with self._changed:
            self._taken += 1
            self._changed.notify_all()

    def wait_for_a_whole_one(self) -> None:
        """Until a look has ended that began after this call."""
        with self._changed:
            enough = self._taken + 2
            assert self._changed.wait_for(lambda: self._taken >= enough, WAIT_S)


def test_saves_that_run_meanwhile_lose_nothing_and_old_orphans_go(shelves: Shelves, monkeypatch: pytest.MonkeyPatch) -> None:
    """New documents, chunk sets made again in the place of others, and the losers of races for one body, beside look after look. Each third
    save commits only after a look has met its objects without an owner."""
    looks, saves = Looks(), count()
    for owner, name in ((StoredStates, "save"), (Contents, "add")):
        plain = getattr(owner, name)

        def commit(*given: object, _plain: Callable[..., object] = plain) -> object:
            if looking and next(saves) % 3 == 0:
                looks.wait_for_a_whole_one()
            return _plain(*given)

        monkeypatch.setattr(owner, name, commit)
    looking = False
    shared = shelves.document("shared")
    planted = [(kind, f"ab/planted{number}") for kind in DriveKind for number in range(20)]
    for kind, key in planted:
        shelves.drive(kind).create(key, b"nobody's")
        age(shelves, kind, key)

    def save(saver: int) -> None:
        for number in range(ROUNDS):
            content = shelves.document(f"{saver}-{number}")
            shelves.keep(f"raced for {number}")
            shelves.store.put_chunks(content, PARSE, CHUNKER, [chunk(f"{saver} {number} again")], "run")
            shelves.store.put_chunks(shared, PARSE, CHUNKER, [chunk(f"{saver} {number}")], "run")

    looking = True
    with ThreadPoolExecutor(SAVERS) as threads:
        savers: list[Future[None]] = [threads.submit(save, saver) for saver in range(SAVERS)]
        while not all(each.done() for each in savers):
            for look in shelves.reconciler(SystemClock()).run([TENANT], takes_orphans=True):
                assert (look.fault, look.missing) == (None, 0)
            looks.one_more()
        for each in savers:
            each.result()
    check_all_there(shelves)
    left = {kind: shelves.keys(kind) for kind in DriveKind}
    assert not [key for kind, key in planted if key in left[kind]]
    for saver in range(SAVERS):
        for number in range(ROUNDS):
            content = content_hash(f"the bytes of {saver}-{number}".encode())
            assert shelves.store.get_chunks(content, PARSE, CHUNKER)[0].text == f"{saver} {number} again"
            shelves.store.fetch_content(content, shelves.files / "fetched")


@pytest.fixture
def slow(shelves: Shelves, monkeypatch: pytest.MonkeyPatch) -> tuple[Shelves, HandClock]:
    """Shelves whose every save takes two hours between its objects and its row, in which the reconciler takes what it finds."""
    clock = HandClock()
    clock.moment = datetime.now(UTC)
    shelves.clock = clock

    def after_two_hours(plain: Callable[..., object]) -> Callable[..., object]:
        def call(*given: object) -> object:
            clock.moment += 2 * MIN_AGE
            taken = [each for each in shelves.reconciler(clock).run([TENANT], takes_orphans=True) if each.reclaimed.count]
            assert taken
            return plain(*given)

        return call

    monkeypatch.setattr(StoredStates, "save", after_two_hours(StoredStates.save))
    monkeypatch.setattr(Contents, "add", after_two_hours(Contents.add))
    return shelves, clock


@on_sqlite
def test_a_save_slower_than_the_least_age_of_an_orphan_puts_its_objects_again(slow: tuple[Shelves, HandClock]) -> None:
    shelves, clock = slow
    content = shelves.document("slow")
    check_all_there(shelves)
    assert shelves.store.get_parsed(content, PARSE) == parsed("slow")
    assert shelves.store.get_chunks(content, PARSE, CHUNKER) == (chunk("slow"),)
    shelves.store.fetch_content(content, shelves.files / "fetched")
    assert all(look.is_coherent for look in shelves.reconciler(clock).run([TENANT]))


@on_sqlite
def test_a_slow_save_does_not_bring_back_what_was_purged_meanwhile(
    slow: tuple[Shelves, HandClock], monkeypatch: pytest.MonkeyPatch
) -> None:
    shelves, _ = slow
    content = shelves.document("slow")
    identity = pipeline_state(TENANT, content, PARSE)
    save = StoredStates.save

    def purged_at_once(states: StoredStates, *given: Any) -> object:
        manifest = save(states, *given)
        with shelves.catalog.database.begin() as connection:
            connection.execute(delete(stored_states).where(stored_states.c.node_id == identity.node_id))
        shelves.drive(PIPELINE).delete([each.object_key or "" for each in manifest.present()])
        monkeypatch.setattr(StoredStates, "save", save)
        return manifest

    monkeypatch.setattr(StoredStates, "save", purged_at_once)
    shelves.store.put_chunks(content, PARSE, "c2", [chunk("purged")], "run")
    assert shelves.keys(PIPELINE).keys() == shelves.owned(PIPELINE) == set()


@on_sqlite
def test_a_file_that_is_not_primers_is_named_and_left(shelves: Shelves) -> None:
    path = Path(shelves.drive(INTAKE).place) / "a person's notes.txt"
    path.write_text("left here")
    os.utime(path, (0, 0))
    look = shelves.reconciler(SystemClock()).look(shelves.drive(INTAKE), TENANT, INTAKE, takes_orphans=True)
    assert (look.foreign.sample, look.foreign.count, look.orphans.count, look.is_coherent) == ((path.name,), 1, 0, True)
    assert path.read_text() == "left here"


@on_sqlite
def test_an_entry_that_is_present_without_an_object_is_missing(shelves: Shelves) -> None:
    content = shelves.document("one")
    node = pipeline_state(TENANT, content, PARSE).node_id
    state = shelves.catalog.states.find([node])[node]
    entry = replace(state.manifest.entries[chunk_set(CHUNKER)], object_key=None)
    with shelves.catalog.database.begin() as connection:
        assert shelves.catalog.states.change(connection, state, state.manifest.merged([entry]))
    look = shelves.reconciler(SystemClock()).look(shelves.drive(PIPELINE), TENANT, PIPELINE)
    assert [(each.object_key, each.sub_key) for each in look.missing_sample] == [("", chunk_set(CHUNKER)[1])]


def _die(*_given: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _save_and_die(url: str, folder: Path, step: str) -> None:
    """A process of its own that is killed at a step of a save."""
    catalog = Catalog(url, SystemClock(), Random())
    shelves = shelves_of(catalog, folder)
    shelves.random = Random()  # other keys than the parent's
    for kind in DriveKind:
        shelves.drive(kind)  # probed before anything dies
    content = content_hash(b"the bytes of one")
    if step == "objects put, no row yet":
        StoredStates.save = _die  # type: ignore[method-assign,assignment]
        shelves.store.put_chunks(content, PARSE, "c2", [chunk("never committed")], "run")
    elif step == "bytes put, no content yet":
        Contents.add = _die  # type: ignore[method-assign,assignment]
        shelves.keep("never committed")
    elif step == "lost to another, own bytes not removed":
        key = shelves.files / "same"
        key.write_bytes(b"the bytes of one")
        Contents.object_of = lambda *_given: None  # type: ignore[method-assign,assignment]
        FolderDrive.delete = _die  # type: ignore[method-assign,assignment]
        shelves.store.keep(Arrived(key, content, 16, "text/plain", Lane.FAST))
    elif step == "freed, bytes not removed":
        shelves.store.put_chunks(content, PARSE, CHUNKER, [chunk("in its place")], "run")
        freed = catalog.states.freed(0, 10)
        Drive.delete = FolderDrive.delete = _die  # type: ignore[method-assign,assignment]
        shelves.drive(PIPELINE).delete([each.object_key for each in freed])
    elif step == "orphans named, not removed":
        FolderDrive.delete = _die  # type: ignore[method-assign,assignment]
        list(shelves.reconciler(SystemClock()).run([TENANT], takes_orphans=True))


@pytest.mark.parametrize(
    ("step", "orphans", "freed"),
    [
        ("objects put, no row yet", (0, 1), 0),
        ("bytes put, no content yet", (1, 0), 0),
        ("lost to another, own bytes not removed", (1, 0), 0),
        ("freed, bytes not removed", (0, 0), 1),
        ("orphans named, not removed", (1, 0), 0),
    ],
)
@on_sqlite
def test_what_a_killed_process_leaves_is_cleaned_by_the_purge_or_by_the_reconciler(
    world_url: str, shelves: Shelves, tmp_path: Path, step: str, orphans: tuple[int, int], freed: int
) -> None:
    content = shelves.document("one")
    if step.startswith("orphans"):
        key = new_key(pipeline_state(TENANT, content, "p2").node_id, SOURCE, shelves.random)
        shelves.drive(INTAKE).create(key, b"nobody's")
        age(shelves, INTAKE, key)
    process = multiprocessing.get_context("spawn").Process(target=_save_and_die, args=(world_url, tmp_path, step))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL

    later = HandClock()
    later.moment = datetime.now(UTC) + MIN_AGE + timedelta(minutes=1)
    looks = list(shelves.reconciler(later).run([TENANT], takes_orphans=True))
    assert tuple(each.reclaimed.count for each in looks) == orphans
    assert (sum(each.freed.count for each in looks), sum(each.missing for each in looks)) == (freed, 0)
    waiting = shelves.catalog.states.freed(0, 10)
    assert len(waiting) == freed
    for kind in DriveKind:
        assert shelves.keys(kind).keys() == shelves.owned(kind) | {each.object_key for each in waiting if each.kind is kind}
