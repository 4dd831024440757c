"""`purged_documents`: the bodies of what was deleted go for good, and every purge is proved.

Passages went with the sweep that deleted their rows. Here the catalog lets go of a document's bodies, then vectors and bytes go, then all
of it is looked for, and only then the proof is written. A run that dies in between leaves purges that the next one ends.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import dagster as dg

from primer_assets.forgotten_vectors import VectorForgetter
from primer_assets.grid_asset import SYSTEM_RETRY
from primer_assets.stage_run import Checkpoint, Tally, plain_errors
from primer_core.failures import Deferred, SystemFault
from primer_core.stored_states import DriveKind, Part
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.purges import Purge
from primer_resources.catalog.stored_states import FreedObject
from primer_resources.document_store import DocumentStore
from primer_resources.document_store.drive import Drive
from primer_resources.heartbeat import Heartbeat
from primer_resources.settings import Settings
from primer_resources.toolkit import Toolkit, Tools

RELEASED_A_BATCH = 200
"""Documents that the catalog lets go of in one transaction: few enough that no sync waits long for their locks."""
FINISHED_A_BATCH = 200
REMOVED_A_BATCH = 1_000
"""Objects of one delete call: what S3 takes at most."""


@dg.asset(
    group_name="store",
    deps=["source_documents", "indexed_documents", "access_rows"],
    retry_policy=SYSTEM_RETRY,
    kinds={"python", "sql"},
    description="Bodies of deleted documents, and of versions that no index serves any more, are removed from the drives and the embedding "
    "cache, looked for, and proved gone. `primer prove DOC` shows the proof.",
)
def purged_documents(
    context: dg.AssetExecutionContext,
    catalog: dg.ResourceParam[Catalog],
    store: dg.ResourceParam[DocumentStore],
    settings: dg.ResourceParam[Settings],
    toolkit: dg.ResourceParam[Toolkit],
    checkpoint: dg.ResourceParam[Checkpoint],
) -> dg.MaterializeResult[None]:
    """Purge what is due."""
    owner, lease = context.run.run_id, settings.lease
    with plain_errors():
        catalog.holders.beat(owner, lease)
        with Heartbeat(lease, lambda: catalog.holders.beat(owner, lease)):
            tally = purge(catalog, store, settings, toolkit, checkpoint)
    states, objects = catalog.purges.waiting()
    left = {"states_left": dg.MetadataValue.int(states), "objects_left": dg.MetadataValue.int(objects)}
    return dg.MaterializeResult(metadata={**tally.metadata("released", "proofs", "objects", "bytes_freed", "vectors"), **left})


def purge(catalog: Catalog, store: DocumentStore, settings: Settings, toolkit: Toolkit, checkpoint: Checkpoint) -> Tally:
    """Let go of what is due, remove it, look for it, prove it. Raises SystemFault where something is still there after it was removed."""
    tally, after = Tally(), ""
    while doc_ids := catalog.purges.doomed(settings.purge_grace, after, RELEASED_A_BATCH):
        after = doc_ids[-1]
        tally.counts["released"] += catalog.purges.release(doc_ids, settings.purge_grace)
        checkpoint("released")
    tally.counts["released"] += catalog.purges.free_unowned(RELEASED_A_BATCH)
    work, ended = _Purging(catalog, store, toolkit, checkpoint, tally), 0
    while purges := catalog.purges.under_way(ended, FINISHED_A_BATCH):
        ended = purges[-1].purge_id
        work.finish(purges)
    tried: list[FreedObject] = []
    while freed := catalog.states.freed(len(tried), REMOVED_A_BATCH):
        removed = work.remove(freed)
        catalog.states.removed(removed)
        tried.extend(set(freed) - set(removed))
    return tally


@dataclass(slots=True)
class _Purging:
    """One run's work on purges that were begun. Tenants that are refused keep theirs until they are served again."""

    catalog: Catalog
    store: DocumentStore
    toolkit: Toolkit
    checkpoint: Checkpoint
    tally: Tally
    tools: dict[str, Tools] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tools = {version.name: self.toolkit.of(version) for version in self.catalog.deployments.open_versions()}

    def finish(self, purges: Sequence[Purge]) -> None:
        """Remove vectors and bytes, look for everything, and prove."""
        served = [purge for purge in purges if self._drives(purge.tenant_id)]
        purge_ids = [purge.purge_id for purge in served]
        self.remove(self.catalog.states.freed_by(purge_ids))
        self.checkpoint("bytes gone")
        objects: dict[int | None, list[FreedObject]] = defaultdict(list)
        for freed in self.catalog.states.freed_by(purge_ids):
            objects[freed.purge_id].append(freed)
        self._look_for_objects(freed for theirs in objects.values() for freed in theirs)
        looked = self._look_for_rows(served)
        done = [(purge, {**looked[purge.purge_id], **_bodies_looked_for(purge, objects[purge.purge_id])}) for purge in served]
        for purge in served:
            self.tally.counts["bytes_freed"] += sum(content.size for content in purge.contents if content.is_freed)
        self.catalog.purges.finish(done)
        self.tally.documents += len(done)
        self.tally.counts["proofs"] += len(done)
        self.checkpoint("proved")

    def remove(self, objects: Sequence[FreedObject]) -> list[FreedObject]:
        """Delete objects, some at a time, drive by drive, after the vectors that only they name. Returns those that are gone; those of
        refused tenants wait."""
        VectorForgetter(self.catalog, self.tools, self.tally).forget(objects, self._drives)
        self.checkpoint("vectors gone")
        by_drive: dict[tuple[str, DriveKind], list[FreedObject]] = defaultdict(list)
        for freed in objects:
            by_drive[freed.tenant_id, freed.kind].append(freed)
        gone: list[FreedObject] = []
        for (tenant_id, kind), theirs in by_drive.items():
            drives = self._drives(tenant_id)
            for start in range(0, len(theirs) if drives else 0, REMOVED_A_BATCH):
                part = theirs[start : start + REMOVED_A_BATCH]
                drives[kind].delete([freed.object_key for freed in part])
                gone.extend(part)
        self.tally.counts["objects"] += len(gone)
        return gone

    def _drives(self, tenant_id: str) -> dict[DriveKind, Drive]:
        """A tenant's drives; none where it is refused."""
        try:
            mine = self.store.of(tenant_id)
        except Deferred as error:
            self.tally.fail(error)
            return {}
        return {DriveKind.INTAKE: mine.intake, DriveKind.PIPELINE: mine.pipeline.drive}

    def _look_for_objects(self, objects: Iterable[FreedObject]) -> None:
        for freed in objects:
            drives = self._drives(freed.tenant_id)
            if drives and drives[freed.kind].head(freed.object_key) is not None:
                raise SystemFault(
                    f"object {freed.object_key} is still on drive {drives[freed.kind].place} after it was deleted; see its policies"
                )

    def _look_for_rows(self, purges: Sequence[Purge]) -> dict[int, dict[str, int]]:
        """purge_id → how many rows were looked for in each index. Raises SystemFault for one that is there."""
        looked = {purge.purge_id: {"vector_rows": 0, "keyword_rows": 0} for purge in purges}
        vector: dict[str, list[str]] = defaultdict(list)
        keyword: dict[tuple[str, str], list[str]] = defaultdict(list)
        for purge in purges:
            for version, buckets in purge.rows.items():
                for bucket, row_ids in buckets.items() if version in self.tools else ():
                    vector[version] += row_ids
                    keyword[version, bucket] += row_ids
                    for name in looked[purge.purge_id]:
                        looked[purge.purge_id][name] += len(row_ids)
        there = [row for version, row_ids in vector.items() for row in self.tools[version].vectors.present(row_ids)]
        there += [row for (version, bucket), row_ids in keyword.items() for row in self.tools[version].keywords.present(bucket, row_ids)]
        if there:
            raise SystemFault(f"{len(there)} rows of deleted documents are still in an index, such as {min(there)}; see `primer reconcile`")
        return looked


def _bodies_looked_for(purge: Purge, objects: Sequence[FreedObject]) -> dict[str, int]:
    """The proof's figures of bodies and of the vectors that were theirs. A chunk set without its mark could not be read any more, nor
    could one that was known to be lost."""
    parts = Counter(entry.part for content in purge.contents if content.is_freed for entry in content.entries if entry.object_key)
    chunk_sets = [freed for freed in objects if freed.is_chunk_set]
    lost = [entry for content in purge.contents if content.is_freed for entry in content.entries if entry.is_lost]
    return {
        "objects": parts.total(),
        "elements": parts[Part.PARSED],
        "cached_vectors": sum(freed.forgotten_vectors or 0 for freed in chunk_sets),
        "unread_chunk_sets": sum(freed.forgotten_at is None for freed in chunk_sets) + sum(entry.part is Part.CHUNKS for entry in lost),
    }
