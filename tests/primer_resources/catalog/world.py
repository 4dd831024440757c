"""A small catalog to act in: one source, documents by path, and time that the test moves on whichever database keeps it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from random import Random
from time import monotonic
from typing import Any

from sqlalchemy import Interval, Row, Table, literal, select, text, update

from primer_core import ids
from primer_core.chunks import next_manifest
from primer_core.drives import DriveSpec
from primer_core.index_versions import VersionState
from primer_core.lanes import Lane
from primer_core.recipe import ChunkerSpec, EmbeddingSpec, ParserSpec, Recipe
from primer_core.stages import CHUNK, EMBED, PARSE, WRITE, Operation, Stage
from primer_core.stored_states import DriveKind
from primer_resources.catalog.acls import AclRow
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.contents import NewContent
from primer_resources.catalog.documents import Placement, VersionFacts
from primer_resources.catalog.generations import ChunkRecord, Flip, removed_rows
from primer_resources.catalog.jobs import Job, NewJob
from primer_resources.catalog.schema import jobs
from primer_resources.catalog.schema_bodies import purge_proofs
from primer_resources.catalog.schema_versions import metadata
from primer_resources.catalog.sources import Source
from primer_resources.catalog.types import UtcDateTime

TENANT, SOURCE, VERSION = "acme", "handbook", "v1"
BUCKETS = ("00", "01", "02", "03")
LEASE = timedelta(seconds=90)
RECIPE = Recipe(ParserSpec("docling", "1"), ChunkerSpec("hybrid", "docling", 400, 15), EmbeddingSpec("m", "1", 4, "", True, "f32", 64))
"""What v1 is made with."""
REMODELLED = replace(RECIPE, embedding=replace(RECIPE.embedding, revision="2"))
RECHUNKED = replace(RECIPE, chunker=replace(RECIPE.chunker, max_tokens=200))
REPARSED = replace(RECIPE, parser=ParserSpec("docling", "2"))
START = datetime(2026, 1, 1, tzinfo=UTC)
HASHES = {name: ids.content_hash(name.encode()) for name in ("one", "two", "three")}


class HandClock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.moment = START

    def now(self) -> datetime:
        return self.moment


def source(name: str = SOURCE, **changes: Any) -> Source:
    """A polled source of the tenant."""
    values: dict[str, Any] = {
        "source_id": name,
        "tenant_id": TENANT,
        "library": "main",
        "type": "drive",
        "settings": {"root": f"/{name}"},
        "sync": "poll",
        "poll_interval_s": 30,
        "scan": 0,
        "held_digest": None,
        "held_count": 0,
        "held_at": None,
        "last_synced_at": None,
        "last_error": None,
        "removed_at": None,
    }
    return Source(**(values | changes))


def drives_of(tenant_id: str) -> dict[DriveKind, DriveSpec]:
    """Drives of a tenant that nobody opens."""
    return {kind: DriveSpec(f"/drives/{tenant_id}/{kind}") for kind in DriveKind}


def place(path: str, acl_id: str = "acl-a", acl_error: str | None = None, fingerprint: str = "f1") -> Placement:
    """Where a document stands."""
    return Placement(path, f"file:///{path}", path, None, fingerprint, acl_id, acl_error, START)


def facts(order: int = 1, content: str | None = "one", bucket: str | None = "00") -> VersionFacts:
    """A version of a document; `content` is a name of HASHES, a hash, or None where it could not be read."""
    status = "dead_letter" if content is None else "pending"
    return VersionFacts(f"v{order}", order, hash_of(content), "text/plain", bucket, status, None)


def hash_of(content: str | None) -> str | None:
    """The hash that a name of HASHES stands for; a hash stands for itself."""
    return None if content is None else HASHES.get(content, content)


@dataclass
class World:
    """A catalog of one tenant, one source and one live index version; `make` it once, then open it or copies of its database."""

    url: str
    clock: HandClock = field(default_factory=HandClock)
    catalog: Catalog = field(init=False)

    def __post_init__(self) -> None:
        self.catalog = Catalog(self.url, self.clock, Random(1))

    def make(self) -> None:
        """Bring the schema up and add what stands in every world."""
        self.catalog.database.migrate()
        self.catalog.deployments.create(len(BUCKETS))
        self.catalog.tenants.add(TENANT, drives_of(TENANT))
        self.catalog.deployments.add_version(VERSION, RECIPE, VersionState.LIVE, len(BUCKETS))
        self.catalog.sources.add(source())

    def pass_time(self, span: timedelta) -> None:
        """Let time pass: the clock moves, or, where the server keeps the time, all that is stored grows older."""
        if self.catalog.database.is_sqlite:
            self.clock.moment += span
            return
        with self.catalog.database.begin() as connection:
            for table in (table for table in metadata.tables.values() if table is not purge_proofs):  # which the database refuses to change
                moments = {
                    column.name: column - literal(span, Interval()) for column in table.columns if isinstance(column.type, UtcDateTime)
                }
                if moments:
                    connection.execute(update(table).values(**moments))

    def document(self, path: str, order: int = 1, content: str = "one", bucket: str = "00", acl_id: str = "acl-a") -> str:
        """A new document with no job. Returns its doc_id."""
        doc_id = ids.doc_id(SOURCE, path)
        with self.catalog.database.begin() as connection:
            added = self.catalog.documents.add(connection, source(), doc_id, place(path, acl_id), facts(order, content, bucket))
        assert added
        return doc_id

    def content(self, name: str = "one", lane: Lane = Lane.FAST, size: int = 5, mime: str = "text/plain") -> None:
        """A content whose bytes a sync has just stored; `name` is one of HASHES, or a hash."""
        content = hash_of(name) or ""
        self.catalog.contents.add(NewContent(TENANT, content, size, mime, lane, f"blobs/{name}"))

    def acl(self, acl_id: str, *groups: str, readable: bool = True) -> None:
        """An ACL row."""
        with self.catalog.database.begin() as connection:
            row = AclRow(acl_id, acl_id, groups, readable, "" if readable else "denied")
            self.catalog.acls.put(connection, source(), row, self.catalog.now())

    def job(
        self,
        doc_id: str,
        order: int = 1,
        operation: Operation = Operation.UPSERT,
        content: str | None = "one",
        bucket: str = "00",
        versions: Sequence[str] = (VERSION,),
    ) -> int:
        """A job for a document. Returns its id (of the last version's)."""
        new = NewJob(doc_id, SOURCE, f"v{order}", hash_of(content), bucket, "fast", operation, START)
        with self.catalog.database.begin() as connection:
            self.catalog.jobs.add(connection, [new], versions)
            return int(connection.execute(select(jobs.c.job_id).order_by(jobs.c.job_id.desc()).limit(1)).scalar_one())

    def advance(self, doc_id: str, order: int, content: str = "two", acl_id: str = "acl-a") -> bool:
        """A newer version of a document, with no job."""
        path = self.row_of(doc_id).path
        with self.catalog.database.begin() as connection:
            return self.catalog.documents.advance(connection, doc_id, place(path, acl_id), facts(order, content))

    def claim(self, stage: Stage, owner: str = "run-a", limit: int = 100, buckets: Sequence[str] = BUCKETS) -> list[Job]:
        """Claim in the live version."""
        return self.catalog.jobs.claim(stage, VERSION, buckets, owner, LEASE, limit)

    def bring_to_write(self) -> None:
        """Take all that waits up to the write stage."""
        for stage in (PARSE, CHUNK, EMBED):
            self.catalog.jobs.complete(stage, self.claim(stage, "early"), "early", {})

    def claim_write(self, owner: str = "run-a") -> Job:
        """Claim the one job that waits to be written."""
        (job,) = self.claim(WRITE, owner)
        return job

    def flip_of(self, job: Job, chunks: Sequence[str], rewrite: bool = False) -> Flip:
        """Open a generation for a held job, record its rows, and make the flip that would end the write."""
        ((job, state),) = self.catalog.generations.open([job], self.owner_of(job))
        manifest = next_manifest(chunks, {} if rewrite else state.manifest, state.claimed_generation)
        new = [ids.row_id(chunk, gen) for chunk, gen in manifest.items() if gen == state.claimed_generation]
        self.catalog.generations.intend(VERSION, [(job, state.claimed_generation, new)])
        records = tuple(ChunkRecord(chunk, f"hash of {chunk}", n, ("Guide",), 1, 5) for n, chunk in enumerate(chunks))
        removed = removed_rows(state.manifest, manifest)
        return Flip(job, state.claimed_generation, manifest, removed, records, job.acl_ids or (), {"chunks_new": len(new)})

    def flip(self, flip: Flip, owner: str = "run-a") -> list[Job]:
        """Take the lanes and flip."""
        lanes = self.catalog.lanes.acquire(VERSION, BUCKETS, owner, LEASE)
        return self.catalog.generations.flip(VERSION, lanes, owner, [flip])

    def index(self, doc_id: str, order: int, chunks: Sequence[str], content: str = "one") -> Flip:
        """The whole way of one version, from its job to its flip."""
        self.job(doc_id, order, content=content)
        self.bring_to_write()
        flip = self.flip_of(self.claim_write(), chunks)
        assert self.flip(flip) == [flip.job]
        self.catalog.lanes.release("run-a")
        return flip

    def rows(self, table: Table, **where: Any) -> list[Row[Any]]:
        """Rows of a table whose columns have these values."""
        statement = select(table).where(*(table.c[name] == value for name, value in where.items())).order_by(*table.primary_key)
        with self.catalog.database.read() as connection:
            return list(connection.execute(statement).all())

    def row_of(self, doc_id: str) -> Row[Any]:
        """A document's row."""
        (row,) = self.rows(metadata.tables["documents"], doc_id=doc_id)
        return row

    def job_row(self, job_id: int) -> Row[Any]:
        """A job's row."""
        (row,) = self.rows(jobs, job_id=job_id)
        return row

    def owner_of(self, job: Job) -> str:
        """Who holds a job."""
        return str(self.job_row(job.job_id).lease_owner)

    def snapshot(self) -> Mapping[str, list[Row[Any]]]:
        """All rows of all tables."""
        return {name: self.rows(table) for name, table in metadata.tables.items()}


@contextmanager
def waits_for_a_lock(world: World) -> Iterator[None]:
    """Goes on once some other transaction waits for a row."""
    deadline = monotonic() + 20
    while monotonic() < deadline:
        with world.catalog.database.read() as connection:
            waiting = connection.execute(text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")).scalar_one()
        if waiting:
            yield
            return
    raise AssertionError("nobody came to the row that is locked")
