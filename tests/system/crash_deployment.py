"""A deployment for the crash tests: a small home with all parses and vectors made beforehand, and the checks of what it holds."""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from threading import Event

from sqlalchemy import select

from primer.workspace import FIRST_VERSION, Workspace
from primer_core.chunks import Chunk
from primer_core.ids import content_hash, doc_id
from primer_resources.catalog.schema_bodies import contents, parsed, stored_states
from primer_resources.catalog.sources import Source
from primer_resources.reconciling import ReconcileReport, reconcile
from primer_resources.settings import Settings, load_settings
from tests.system.crash_documents import DELETED, DOCUMENTS, VERSIONS, Document, Verdict, judge, mark_of, shared_passages, text_of
from tests.system.crash_reader import GROUPS, QUICK, SLOW, poll
from tests.system.crash_worker import DEADLINE_S, FORKED, Order, Worker, working

SOURCE = "surveys"
GRACE_S = 4.0
"""Longer than the reads of the tests on a machine with work to do; those that take longer are not counted."""
LEASE_S = 3.0
"""Longer than Dagster takes from one step to the next on a busy machine: nothing renews a lease in between."""
WARM_LEASE_S = 90.0
BUCKETS = 2
"""Dagster writes an event a bucket and step, and each costs a commit."""
POLL_S = 0.05


def build_template(place: Path) -> Path:
    """A deployment without documents that has parsed, chunked and embedded every version already. Returns its home.

    Another deployment does that in the ordinary way; what it made is kept under the hashes of what made it, and so is carried over.
    """
    warm, home, folder = place / "warm", place / "template", place / "texts"
    folder.mkdir()
    for number, (version, sections) in product(range(DOCUMENTS), enumerate(VERSIONS)):
        if sections is not None:
            (folder / f"{number}-{version}.md").write_text(text_of(number, sections), encoding="utf-8")
    made, template = Workspace(_settings(warm, WARM_LEASE_S)), Workspace(_settings(home, LEASE_S))
    for workspace in (made, template):
        workspace.create()
    made.catalog.sources.add(_source(made.settings, folder))
    with working(_environment(made.settings)) as worker:
        assert worker.do(Order()) is None
    assert not made.catalog.lookup.dead_letters()
    for name in ("store", "embeddings"):
        shutil.copytree(warm / name, home / name, dirs_exist_ok=True)
    # The contents, what was made of them, and the states of other documents that own them: a document finds its content parsed and chunked,
    # and its deletion frees nothing.
    for table in (contents, parsed, stored_states):
        with made.catalog.database.read() as connection:
            rows = [dict(row._mapping) for row in connection.execute(select(table))]
        with template.catalog.database.begin() as connection:
            connection.execute(table.insert(), rows)
    for workspace in (made, template):
        workspace.close()
    return home


def _settings(home: Path, lease_s: float) -> Settings:
    return load_settings(home=home, buckets=BUCKETS, lease=f"{lease_s}s", purge_grace=f"{GRACE_S}s", claim_batch=2, parse_workers=1)


def _environment(settings: Settings) -> dict[str, str]:
    """The same settings for another process."""
    return {
        "PRIMER_HOME": str(settings.home),
        "PRIMER_BUCKETS": str(settings.buckets),
        "PRIMER_LEASE": f"{settings.lease.total_seconds()}s",
        "PRIMER_PURGE_GRACE": f"{settings.purge_grace.total_seconds()}s",
        "PRIMER_CLAIM_BATCH": str(settings.claim_batch),
        "PRIMER_PARSE_WORKERS": str(settings.parse_workers),
        "PRIMER_EMBEDDING_THREADS": "1",
    }


@dataclass(slots=True)
class Deployment:
    """The home, the source's folder and the documents in it."""

    workspace: Workspace
    folder: Path
    environment: dict[str, str]
    documents: list[Document]
    workers: list[Worker] = field(default_factory=list)

    def start_worker(self) -> Worker:
        """A new process; it ends with the deployment."""
        worker = Worker(self.environment)
        self.workers.append(worker)
        return worker

    def edit(self) -> None:
        """Every document steps to its next version: most are edited, one is deleted, one made again."""
        for document in self.documents:
            document.step(time.time())

    def settle(self) -> None:
        """All is indexed: earlier versions must not be seen any more."""
        for document in self.documents:
            document.settle(time.time())

    def recover(self, worker: Worker) -> float:
        """The next process finishes what is there, and everything agrees. Returns how long its last sync took, seconds."""
        while True:
            began = time.monotonic()
            notes = worker.do(Order())
            if notes is None:
                break
            assert "another run" in notes, notes  # a source that the dead process still holds for the rest of its lease
        self.settle()
        assert self.problems() == []
        return time.monotonic() - began

    def problems(self) -> list[str]:
        """What is wrong after a sync that finished: documents not at their newest version, letters dead, id sets that differ."""
        catalog = self.workspace.catalog
        found = [f"{catalog.queue.unfinished()} jobs are unfinished"] if catalog.queue.unfinished() else []
        found += [f"dead letter: {letter}" for letter in catalog.lookup.dead_letters()]
        states = catalog.generations.states(FIRST_VERSION, [document.doc_id for document in self.documents])
        known = catalog.documents.by_id([document.doc_id for document in self.documents])
        for document in self.documents:
            manifest = states[document.doc_id].manifest if document.doc_id in states else {}
            listed = catalog.lookup.chunk_ids(document.doc_id, FIRST_VERSION)
            if not (document.chunks == set(manifest) == set(listed)):
                found.append(f"document {document.number} is not indexed at version {document.version}")
            row = known.get(document.doc_id)
            expected = "deleted" if document.version == DELETED else "indexed"
            if row is not None and row.status != expected:
                found.append(f"document {document.number} has status {row.status}, not {expected}")
        differences = self.reconcile().differences
        return found + [f"{kind}: {rows}" for kind, rows in differences.items() if rows]

    def reconcile(self) -> ReconcileReport:
        """The three id sets."""
        version = self.workspace.catalog.deployments.live()
        return reconcile(self.workspace.catalog, version, self.workspace.toolkit.of(version))

    def remains(self, worker: Worker) -> list[str]:
        """What is wrong once every grace is over: after sweeps until nothing waits to be purged or forgotten, live rows alone are left."""
        eventually(lambda: self._swept(worker))
        report = self.reconcile()
        counts = {"expected": report.expected, "vector": report.vector_rows, "keyword": report.keyword_rows}
        return self.problems() + ([f"row counts differ: {counts}"] if len(set(counts.values())) > 1 else [])

    def _swept(self, worker: Worker) -> bool:
        if self.reconcile().passing == 0:
            return True
        assert worker.do(Order(sync=False)) is None
        assert worker.do(Order(purge=True)) is None  # the marks of a deleted document's rows stay until its bodies are purged
        return False

    def purges_wait(self) -> bool:
        """Whether rows are due to be purged now."""
        return any(row.purges for row in self.workspace.catalog.queue.waiting(self.workspace.settings.purge_grace))


def eventually(condition: Callable[[], bool]) -> None:
    """Wait for a condition. Raises AssertionError at the deadline."""
    deadline = time.monotonic() + DEADLINE_S
    pause = Event()
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        pause.wait(POLL_S)


@contextmanager
def deployed(template: Path, place: Path, lease_s: float = LEASE_S) -> Iterator[Deployment]:
    """A copy of the template with an empty source. Its workers are ended at the end."""
    home, folder = place / "home", place / "surveys"
    folder.mkdir()
    shutil.copytree(template, home)
    settings = _settings(home, lease_s)
    workspace = Workspace(settings)
    workspace.catalog.sources.add(_source(settings, folder))
    deployment = Deployment(workspace, folder, _environment(settings), [_document(workspace, folder, n) for n in range(DOCUMENTS)])
    try:
        yield deployment
    finally:
        for worker in deployment.workers:
            worker.close()
        workspace.close()


def _source(settings: Settings, folder: Path) -> Source:
    return Source(
        source_id=SOURCE,
        tenant_id=settings.tenant,
        library=settings.library,
        type="drive",
        settings={"root": str(folder), "groups": list(GROUPS)},
        sync="poll",
        poll_interval_s=30,
        scan=0,
        held_digest=None,
        held_count=0,
        held_at=None,
        last_synced_at=None,
        last_error=None,
        removed_at=None,
    )


def _document(workspace: Workspace, folder: Path, number: int) -> Document:
    """A document that has not been written yet; each begins somewhere else in the round of versions."""
    recipe = workspace.catalog.deployments.live().recipe
    identity = doc_id(SOURCE, f"survey-{number}.md")
    ids: dict[int, frozenset[str]] = {}
    for version, sections in enumerate(VERSIONS):
        if sections is not None:
            key = content_hash(text_of(number, sections).encode())
            chunks = workspace.store.of("default").get_chunks(key, recipe.parser.version, recipe.chunker.version)
            _check_marks(chunks, [mark_of(number, *section) for section in sections.items()])
            ids[version] = frozenset(chunk.id_in(identity) for chunk in chunks)
    document = Document(number, folder / f"survey-{number}.md", identity, ids)
    assert shared_passages(document)
    document.version = (number - 1) % len(VERSIONS)
    return document


def _check_marks(chunks: tuple[Chunk, ...], marks: list[str]) -> None:
    held = [[mark for mark in marks if f" {mark} " in chunk.text] for chunk in chunks]
    assert held == [[mark] for mark in marks], "each section is to be one passage with its own mark"


@contextmanager
def reading(deployment: Deployment, place: Path) -> Iterator[Callable[[], Verdict]]:
    """A quick and a slow reader at work, each in a process. What is yielded stops them and gives the verdict on all their reads."""
    stop = FORKED.Event()
    logs = {place / "quick.jsonl": QUICK, place / "slow.jsonl": SLOW}
    ready = [FORKED.Event() for _ in logs]
    processes = [
        FORKED.Process(target=poll, args=(deployment.environment, pace, log, event, stop), daemon=True)
        for (log, pace), event in zip(logs.items(), ready, strict=True)
    ]
    for process in processes:
        process.start()

    def finish() -> Verdict:
        stop.set()
        verdict = Verdict()
        for process, log in zip(processes, logs, strict=True):
            process.join(DEADLINE_S)
            assert process.exitcode == 0, f"a reader ended with exit code {process.exitcode}"
            verdict.add(judge(log, deployment.documents, deployment.workspace.settings.purge_grace.total_seconds()))
        return verdict

    try:
        for event in ready:
            assert event.wait(DEADLINE_S), "a reader did not begin"
        yield finish
    finally:
        stop.set()
        for process in processes:
            process.join(DEADLINE_S)
            if process.is_alive():
                process.kill()
                process.join()
