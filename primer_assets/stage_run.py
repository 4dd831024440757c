"""What every stage of the grid shares: the scope of a step, the drain of its entry state under leases, and its tally."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import dagster as dg

from primer_assets.partitions import grid_scope
from primer_assets.run_tags import LIVE_TAGS
from primer_core.chunks import Chunk
from primer_core.failures import PrimerError, SystemFault
from primer_core.index_versions import VersionState
from primer_core.lanes import Lane
from primer_core.reviews import output_version
from primer_core.stages import Stage
from primer_resources.catalog.backfills import Backfill
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.deployments import IndexVersion
from primer_resources.catalog.jobs import Job
from primer_resources.catalog.sources import Source
from primer_resources.document_store import DocumentStore, TenantStore
from primer_resources.heartbeat import Heartbeat
from primer_resources.memory import give_back_memory
from primer_resources.settings import Settings
from primer_resources.toolkit import Toolkit, Tools

Checkpoint = Callable[[str], None]
"""Called with the name of each boundary between two commits, so that a test can stop the process there."""


@dataclass(slots=True)
class Tally:
    """A step's figures, shown as its metadata."""

    documents: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    started: float = field(default_factory=time.monotonic)

    def fail(self, error: PrimerError) -> None:
        """Count a failure by its reason, or by its kind where there is none."""
        self.failures[str(getattr(error, "reason", type(error).__name__.lower()))] += 1

    def metadata(self, *names: str) -> dict[str, dg.MetadataValue]:
        """The figures for people; `names` are shown even where they are zero."""
        shown: dict[str, dg.MetadataValue] = {"documents": dg.MetadataValue.int(self.documents)}
        for name in (*names, *sorted(set(self.counts) - set(names))):
            shown[name] = dg.MetadataValue.int(self.counts[name])
        shown["failures"] = dg.MetadataValue.json(dict(sorted(self.failures.items())))
        shown["seconds"] = dg.MetadataValue.float(round(time.monotonic() - self.started, 2))
        return shown


@dataclass(frozen=True, slots=True)
class StageRun:
    """One step over some buckets of one index version."""

    catalog: Catalog
    store: DocumentStore
    settings: Settings
    version: IndexVersion
    tools: Tools
    buckets: Sequence[str]
    owner: str
    takes_backfill: bool = True
    _sources: dict[str, Source] = field(default_factory=dict)

    @staticmethod
    def of(context: dg.AssetExecutionContext, catalog: Catalog, store: DocumentStore, settings: Settings, toolkit: Toolkit) -> "StageRun":
        """The step's scope. Raises PrimerError for an index version that the catalog does not know, or that is retired."""
        name, buckets = grid_scope(context.partition_keys)
        version = catalog.deployments.version(name)
        if version.state is VersionState.RETIRED:
            raise PrimerError(f"index version {name} is retired: its rows are gone and nothing is written to it; choose an open one")
        takes_backfill = LIVE_TAGS.isdisjoint(context.run.tags)
        if takes_backfill and version.state is VersionState.BUILDING:
            settings = settings.for_backfill
        return StageRun(catalog, store, settings, version, toolkit.of(version), buckets, context.run.run_id, takes_backfill)

    def source_of(self, source_id: str) -> Source:
        """The source of a job, removed or not: its tenant and library stand on every row."""
        if source_id not in self._sources:
            found = self.catalog.sources.find(source_id)
            if found is None:
                raise SystemFault(f"source {source_id} is in no catalog row, yet a job names it; restore the catalog from a backup")
            self._sources[source_id] = found
        return self._sources[source_id]

    def heartbeat(self) -> Heartbeat:
        """Holds the run's jobs and lanes while the step works, and says that the run is alive."""
        lease, catalog, owner = self.settings.lease, self.catalog, self.owner
        return Heartbeat(
            lease,
            lambda: catalog.holders.beat(owner, lease),
            lambda: catalog.jobs.renew(owner, lease),
            lambda: catalog.lanes.renew(owner, lease),
        )

    def store_of(self, job: Job) -> TenantStore:
        """The document store of the job's tenant."""
        return self.store.of(self.source_of(job.source_id).tenant_id)

    def by_tenant(self, batch: Iterable[Job]) -> dict[str, list[Job]]:
        """tenant → jobs: two tenants with equal bytes have two contents."""
        found: dict[str, list[Job]] = {}
        for job in batch:
            found.setdefault(self.source_of(job.source_id).tenant_id, []).append(job)
        return found

    def chunks_of(self, job: Job, content_hash: str, accepted_pages: str) -> tuple[Chunk, ...]:
        """The chunk set of a content of the job's tenant, as it was parsed with the pages that a person let through (their label)."""
        recipe = self.version.recipe
        output = output_version(recipe.parser.version, accepted_pages)
        return self.store_of(job).get_chunks(content_hash, output, recipe.chunker.version)

    def claims(self, stage: Stage, buckets: Sequence[str], lane: Lane | None = None, size: int | None = None) -> Iterator[list[Job]]:
        """Batches of claimed jobs until none waits or the run has had its share; the next sweep goes on.

        With a lane, only that one's; `size` is how many jobs a claim takes, the setting's when None.
        """
        taken = 0
        while buckets and taken < self.settings.run_documents:
            limit = min(size or self.settings.claim_batch, self.settings.run_documents - taken)
            batch = self.claim(stage, buckets, lane, limit)
            if not batch:
                return
            taken += len(batch)
            yield batch

    def claim(self, stage: Stage, buckets: Sequence[str], lane: Lane | None, limit: int | None = None) -> list[Job]:
        """One batch of claimed jobs, of a lane or of all; `limit` is the setting's when None. Before each batch it is asked anew whether a
        backfill's jobs may be among them."""
        size = limit or self.settings.claim_batch
        with_backfill = self.takes_backfill and self.backfill is not None
        return self.catalog.jobs.claim(stage, self.version.name, buckets, self.owner, self.settings.lease, size, lane, with_backfill)

    @property
    def backfill(self) -> Backfill | None:
        """The backfill that the run may work on now: none is under way, it is paused, or live work is late and goes first."""
        running = [each for each in self.catalog.backfills.running() if each.index_version == self.version.name]
        is_late = running and self.catalog.backfills.yields(self.settings.backfill_yields_after, self.catalog.queue.oldest_live())
        return None if is_late or not running else running[0]

    @contextmanager
    def working(self) -> Iterator[None]:
        """Hold leases; give everything back at once where the step fails, so that nobody waits for them to run out."""
        self.catalog.holders.beat(self.owner, self.settings.lease)
        with self.heartbeat():
            try:
                yield
            except BaseException:
                self.give_back()
                raise

    def give_back(self) -> None:
        """Put back what the run still holds: the shards' locks first, then the jobs and the lanes that guard them."""
        self.tools.keywords.close()
        self.catalog.jobs.release(self.owner)
        self.catalog.lanes.release(self.owner)


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn an error that a person must mend into a step failure that is not retried; the system's faults are."""
    try:
        yield
    except SystemFault:
        raise
    except PrimerError as error:
        raise dg.Failure(str(error), allow_retries=False) from error


def drain(run: StageRun, stage: Stage, work: Callable[[list[Job], Tally], None]) -> Tally:
    """Claim and work off what stands at the stage's entry in the step's buckets."""
    tally = Tally()
    with run.working():
        for batch in run.claims(stage, run.buckets):
            tally.documents += len(batch)
            work(batch, tally)
            give_back_memory()
    return tally
