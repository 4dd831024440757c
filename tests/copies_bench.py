"""Several sources whose documents have few contents among them, taken all the way into indexes of memory, step by step and in any order.

The catalog, the syncs and the steps of a write are the real ones. Parsing and chunking are of the bench's own making, and the indexes keep
their rows in a dict, so that a test can afford many short lives of a deployment.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from sqlalchemy import select

from primer_assets import embeddings, indexed_documents, keyword_index, purged_documents, vector_index
from primer_assets.source_events import EventSync
from primer_assets.source_turn import take_turn
from primer_assets.stage_run import StageRun, Tally
from primer_assets.writing import plans_in_hand
from primer_core import ids
from primer_core.chunks import Chunk, number_occurrences
from primer_core.failures import DocumentFault, Reason
from primer_core.index_versions import VersionState
from primer_core.lanes import FastLane
from primer_core.recipe import Recipe
from primer_core.stages import CHUNK, EMBED, PARSE, WRITE, Operation
from primer_core.upkeep import UpkeepResult
from primer_resources.catalog.schema import canonicals, documents, index_state, jobs
from primer_resources.connectors.base import Access
from primer_resources.embedder.base import Vector
from primer_resources.index_base import Hit, IndexFigures, IndexRow, Scope
from primer_resources.reader import Reader, SearchResult
from primer_resources.reconciling import ReconcileReport, reconcile
from primer_resources.settings import load_settings
from primer_resources.toolkit import Tools
from tests.primer_resources.catalog.world import BUCKETS, LEASE, RECIPE, TENANT, World, drives_of, source
from tests.scripted_source import ScriptedSource
from tests.source_bench import LineExpander
from tests.stores import folder_store

SPOILT = "spoilt"
"""A content with this word cannot be parsed, until the bench's parser is mended."""
EVERYTHING = 1000


class MemoryIndex:
    """Either index: all rows that the scope admits match any query."""

    def __init__(self) -> None:
        self.rows: dict[str, IndexRow] = {}

    def write(self, *bucket_and_rows: Any) -> None:
        for row in bucket_and_rows[-1]:
            assert self.rows.get(row.row_id, row) == row or self.rows[row.row_id].text == row.text, "rows are immutable"
            self.rows[row.row_id] = row

    def delete(self, *bucket_and_ids: Any) -> None:
        for row_id in bucket_and_ids[-1]:
            self.rows.pop(row_id, None)

    def search(self, _query: Any, scope: Scope, limit: int) -> list[Hit]:
        seen = [r for r in self.rows.values() if r.tenant_id == scope.tenant_id and scope.acl_ids.intersection(r.acl_ids)]
        assert len(seen) < limit
        return [Hit(row.row_id, row.chunk_id, row.added_gen, row.doc_id, 1.0) for row in seen]

    def present(self, *bucket_and_ids: Any) -> set[str]:
        return set(bucket_and_ids[-1]) & self.rows.keys()

    def row_ids(self, _buckets: Iterable[str] | None = None) -> Iterator[str]:
        yield from list(self.rows)

    def upkeep(self, _now: datetime) -> UpkeepResult:
        raise NotImplementedError

    def figures(self, _now: datetime) -> IndexFigures:
        return IndexFigures(len(self.rows), len(self.rows), 0)

    def size(self) -> int:
        return len(self.rows)

    def drop(self) -> None:
        self.rows.clear()

    def close(self) -> None:
        """Nothing is held."""


class Ones:
    """An embedder that counts what it is asked for."""

    spec = RECIPE.embedding

    def __init__(self) -> None:
        self.asked = 0

    def embed(self, texts: Sequence[str]) -> Vector:
        self.asked += len(texts)
        return cast(Vector, np.ones((len(texts), self.spec.dims), dtype=np.float32))

    def embed_query(self, _text: str) -> Vector:
        return cast(Vector, np.ones(self.spec.dims, dtype=np.float32))


class MemoryCache:
    """The embedding cache."""

    def __init__(self) -> None:
        self.vectors: dict[str, Vector] = {}

    def get(self, keys: Iterable[str]) -> dict[str, Vector]:
        return {key: self.vectors[key] for key in keys if key in self.vectors}

    def known(self, keys: Iterable[str]) -> set[str]:
        return set(keys) & self.vectors.keys()

    def put(self, vectors: Mapping[str, Vector]) -> None:
        self.vectors.update(vectors)

    def delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            self.vectors.pop(key, None)


def passages(content: bytes) -> tuple[Chunk, ...]:
    """The passages of a content: one a part between bars."""
    parts = content.decode().split("|")
    return number_occurrences(Chunk(0, (), "", part, part, (), 1) for part in parts)


@dataclass
class CopiesBench:
    """A catalog of several scripted sources and its index versions."""

    url: str
    home: Path
    names: tuple[str, ...] = ("north", "south")
    versions: tuple[str, ...] = ("v1",)
    recipes: dict[str, Recipe] = field(default_factory=dict)
    is_mended: bool = False
    mime: str = "none"
    parses: int = 0
    contents: dict[str, bytes] = field(default_factory=dict)
    sources: dict[str, ScriptedSource] = field(default_factory=dict)
    tools: dict[str, Tools] = field(default_factory=dict)
    embedder: Ones = field(default_factory=Ones)
    runs: int = 0

    def __post_init__(self) -> None:
        self.world = World(self.url)
        self.catalog = self.world.catalog
        self.settings = load_settings(home=self.home)
        self.store = folder_store(self.catalog, self.home / "store")
        cache = MemoryCache()
        for version in self.versions:
            used: dict[str, Any] = {"embedder": self.embedder, "cache": cache, "vectors": MemoryIndex(), "keywords": MemoryIndex()}
            self.tools[version] = Tools(**{each.name: used.get(each.name) for each in fields(Tools)})

    def make(self) -> None:
        """Bring the schema up and add the sources."""
        self.catalog.database.migrate()
        self.catalog.deployments.create(len(BUCKETS))
        self.catalog.tenants.add(TENANT, drives_of(TENANT))
        for number, version in enumerate(self.versions):
            state = VersionState.BUILDING if number else VersionState.LIVE
            other = replace(RECIPE, embedding=replace(RECIPE.embedding, revision=version))
            recipe = self.recipes.get(version, other if number else RECIPE)
            self.catalog.deployments.add_version(version, recipe, state, len(BUCKETS))
        for name in self.names:
            self.catalog.sources.add(source(name))
            self.sources[name] = ScriptedSource(page_size=3)

    def put(self, name: str, path: str, text: str) -> None:
        """A document of a source is there, with this text."""
        content = text.encode()
        self.contents[ids.content_hash(content)] = content
        self.sources[name].put(path, content)

    def share(self, name: str, folder: str, *groups: str, error: str = "") -> None:
        """A folder's documents are open to these groups; with an error, nobody knows to whom."""
        scripted = self.sources[name]
        scripted.access[folder] = Access(folder, groups, not error, error)
        for path in [path for path in scripted.items if path.rpartition("/")[0] == folder]:
            scripted.happen(Operation.ACL, path)

    def sync(self, name: str, full: bool = False) -> None:
        """One turn of a source."""
        self.tick()
        if full:
            self.catalog.sources.list_next({name})
        row = self.catalog.sources.get(name)
        taken = self.catalog.sources.acquire(name, "bench", LEASE)
        assert taken is not None
        (self.home / "members").mkdir(parents=True, exist_ok=True)
        expander: Any = LineExpander(self.home / "members", self.mime)
        began_at = self.catalog.now()
        with closing(self.sources[name]) as connector:
            sync = EventSync(
                self.catalog,
                self.store.of(TENANT),
                connector,
                expander,
                row,
                *taken,
                len(BUCKETS),
                True,
                FastLane(25 << 20, 300),
            )
            turn = take_turn(sync, began_at, timedelta(days=400))
        self.catalog.sources.finish(name, taken[1], began_at, None, turn.listed)

    def sweep(self, version: str = "v1", checkpoint: Callable[[str], None] = lambda _name: None) -> None:
        """One run over all buckets: what waits goes a whole way. An exception of the checkpoint ends the run as a killed process ends."""
        self.tick()
        self.runs += 1
        made = self.catalog.deployments.version(version)
        run = StageRun(self.catalog, self.store, self.settings, made, self.tools[version], BUCKETS, f"run-{self.runs}")
        self._prepare(run)
        tally = Tally()
        lanes = self.catalog.lanes.acquire(version, BUCKETS, run.owner, LEASE)
        for batch in run.claims(WRITE, sorted(lanes)):
            vector_index.write_vectors(run, batch, tally, checkpoint)
        waiting = defaultdict(list)
        for write in plans_in_hand(run, sorted(lanes), Tally()):
            waiting[write.job.bucket].append(write)
        for bucket, writes in waiting.items():
            keyword_index._write_rows(run, bucket, writes, tally)
        checkpoint("keywords_written")
        for write in plans_in_hand(run, sorted(lanes), Tally()):
            self.tick()
            indexed_documents._flip(run, [write], lanes, tally)
            checkpoint("flipped")
        self.catalog.jobs.release(run.owner)
        self.catalog.lanes.release(run.owner)

    def _prepare(self, run: StageRun) -> None:
        """Parse, chunk and embed what waits."""
        parser, chunker = RECIPE.parser.version, RECIPE.chunker.version
        for batch in run.claims(PARSE, BUCKETS):
            for job in batch:
                content = self.contents[job.content_hash or ""]
                if SPOILT in content.decode() and not self.is_mended:
                    self.catalog.jobs.fail(PARSE, job, run.owner, DocumentFault(Reason.CORRUPT, f"{SPOILT} bytes"))
                    continue
                if not self.store.of(TENANT).has_chunks(job.content_hash or "", parser, chunker):
                    self.parses += 1
                    self.store.of(TENANT).put_chunks(job.content_hash or "", parser, chunker, passages(content), run.owner)
                self.catalog.jobs.complete(PARSE, [job], run.owner, {})
        for batch in run.claims(CHUNK, BUCKETS):
            self.catalog.jobs.complete(CHUNK, batch, run.owner, {})
        for batch in run.claims(EMBED, BUCKETS):
            embeddings._embed(run, batch, Tally())

    def drain(self) -> None:
        """Sweep until nothing is unfinished; leases of killed runs and pauses pass."""
        for _ in range(40):
            if not self.catalog.queue.unfinished(with_backfill=True):
                return
            before = self.states()
            for version in self.versions:
                self.sweep(version)
            if self.states() == before:
                self.world.pass_time(LEASE + timedelta(seconds=1))
        raise AssertionError(f"jobs do not come to an end: {self.states()}")

    def purge(self, checkpoint: Callable[[str], None] = lambda _name: None) -> Counter[str]:
        """Let the grace pass, purge dead rows, and then bodies. Returns the figures."""
        self.world.pass_time(self.settings.purge_grace + timedelta(seconds=1))
        for version in self.versions:
            self.runs += 1
            made = self.catalog.deployments.version(version)
            run = StageRun(self.catalog, self.store, self.settings, made, self.tools[version], BUCKETS, f"run-{self.runs}")
            indexed_documents._purge(run, BUCKETS, Tally(), lambda _name: None)
        toolkit: Any = SimpleNamespace(of=lambda version: self.tools[version.name])
        return purged_documents.purge(self.catalog, self.store, self.settings, toolkit, checkpoint).counts

    def objects(self) -> set[str]:
        """The keys of all objects on both drives."""
        store = self.store.of(TENANT)
        return {stored.key for drive in (store.intake, store.pipeline.drive) for stored in drive.list()}

    def states(self) -> list[tuple[int, str]]:
        """(job, state) of all jobs."""
        with self.catalog.database.read() as connection:
            return [(row.job_id, row.state) for row in connection.execute(select(jobs.c.job_id, jobs.c.state).order_by(jobs.c.job_id))]

    def tick(self) -> None:
        """The hand clock moves; a server's does so by itself."""
        self.world.clock.moment += timedelta(seconds=1)

    def search(self, *groups: str, version: str = "v1") -> list[SearchResult]:
        """All that people of these groups find."""
        reader = Reader(self.catalog, self.store, self.catalog.deployments.version(version), self.tools[version])
        return reader.search("anything", TENANT, groups, EVERYTHING)

    def found(self, *groups: str, version: str = "v1") -> set[tuple[str, str]]:
        """(SOURCE/path, passage) of all that people of these groups find; each is found once."""
        results = self.search(*groups, version=version)
        found = {(f"{result.source}/{result.path}", result.text) for result in results}
        assert len(found) == len(results), "a passage is found twice"
        return found

    def texts(self, *groups: str, version: str = "v1") -> set[str]:
        """The passages that people of these groups find."""
        return {text for _, text in self.found(*groups, version=version)}

    def begin(self, *groups: str, version: str = "v1") -> Callable[[], list[tuple[str, str]]]:
        """A search that has asked the indexes; what is returned asks the gate, whatever happened meanwhile, and gives (doc_id, passage).

        Raises TwoFlips as the gate does.
        """
        started_at = self.catalog.now()
        scope = Scope(TENANT, self.catalog.acls.open_to(TENANT, groups))
        index = cast(MemoryIndex, self.tools[version].vectors)
        hits = [(hit, index.rows[hit.row_id].text) for hit in index.search(None, scope, EVERYTHING)]

        def end() -> list[tuple[str, str]]:
            doc_ids, row_ids = {hit.doc_id for hit, _ in hits}, {hit.row_id for hit, _ in hits}
            gate = self.catalog.gate.look(version, doc_ids, row_ids, groups, started_at)
            shown = [(gate.shown_as(hit.doc_id, hit.row_id, hit.added_gen, started_at), text) for hit, text in hits]
            return [(document.doc_id, text) for document, text in shown if document is not None]

        return end

    def row_sets(self, version: str = "v1") -> list[tuple[str, tuple[str, ...]]]:
        """(passage, ACL ids) of the rows that count, the same in both indexes."""
        passing = set(self.catalog.lookup.passing_rows(version))
        one, other = (
            sorted((row.text, row.acl_ids) for row in index.rows.values() if row.row_id not in passing)
            for index in (cast(MemoryIndex, self.tools[version].vectors), cast(MemoryIndex, self.tools[version].keywords))
        )
        assert one == other
        return one

    def fresh_row_sets(self) -> list[tuple[str, tuple[str, ...]]]:
        """What `row_sets` is when all that the catalog knows now is indexed from nothing."""
        acls: dict[str, set[str]] = defaultdict(set)
        for row in self.living():
            if row.content_hash is not None and (self.is_mended or SPOILT.encode() not in self.contents[row.content_hash]):
                acls[row.content_hash].add(row.acl_id)
        made = [(chunk.text, tuple(sorted(acls[each]))) for each in acls for chunk in passages(self.contents[each])]
        return sorted(made)

    def living(self) -> list[Any]:
        """The rows of the living documents."""
        with self.catalog.database.read() as connection:
            return list(connection.execute(select(documents).where(documents.c.deleted_at.is_(None)).order_by(documents.c.doc_id)))

    def row(self, name: str, path: str) -> Any:
        """The row of a living document."""
        (found,) = (row for row in self.living() if (row.source_id, row.path) == (name, path))
        return found

    def broken_links(self) -> list[str]:
        """What is wrong with the links: a copy of what is gone, is itself a copy or has another content; a content with two leaders."""
        rows = {row.doc_id: row for row in self.living()}
        with self.catalog.database.read() as connection:
            led = {row.content_hash: row.doc_id for row in connection.execute(select(canonicals))}
            copies = set(connection.execute(select(index_state.c.doc_id).where(index_state.c.is_copy)).scalars())
        wrong = []
        for row in rows.values():
            leading = rows.get(row.canonical_doc_id)
            if leading is None or leading.canonical_doc_id != leading.doc_id or leading.content_hash != row.content_hash:
                wrong.append(f"{row.path} is linked to {row.canonical_doc_id}")
            if row.content_hash is not None and led.get(row.content_hash) != row.canonical_doc_id:
                wrong.append(f"{row.path} is not led by {led.get(row.content_hash)}")
        held = {row.content_hash for row in rows.values() if row.content_hash is not None}
        if led.keys() != held:
            wrong.append(f"{len(led.keys() ^ held)} contents are led by nobody, or by somebody without need")
        if not self.catalog.queue.unfinished():
            linked = {row.doc_id for row in rows.values() if row.canonical_doc_id != row.doc_id and row.status == "indexed"}
            if copies != linked:
                wrong.append(f"indexed as copies are {copies}, linked are {linked}")
        return wrong

    def reconcile(self, version: str = "v1") -> ReconcileReport:
        """The three id sets."""
        return reconcile(self.catalog, self.catalog.deployments.version(version), self.tools[version])
