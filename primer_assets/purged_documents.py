"""`purged_documents`: the bodies of what was deleted go for good, and every purge is proved.

Passages went with the sweep that deleted their rows. Here the catalog lets go of a document's bodies, then vectors and bytes go, then all
of it is looked for, and only then the proof is written. A run that dies in between leaves purges that the next one ends.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import dagster as dg

from primer_assets.grid_asset import SYSTEM_RETRY
from primer_assets.stage_run import Checkpoint, Tally, plain_errors
from primer_assets.vectors import vector_key
from primer_core.failures import Deferred, SystemFault
from primer_core.ids import content_hash
from primer_core.stored_states import DriveKind, Part
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.purges import Purge
from primer_resources.catalog.stored_states import FreedObject
from primer_resources.document_store import DocumentStore
from primer_resources.document_store.drive import Drive, ObjectGone
from primer_resources.document_store.parts import to_chunks
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
        keys = {purge.purge_id: self._forget_vectors(purge) for purge in served}
        self.checkpoint("vectors gone")
        objects = self.catalog.purges.objects_of([purge.purge_id for purge in served])
        self.remove(objects)
        self.checkpoint("bytes gone")
        self._look_for_objects(objects)
        looked = self._look_for_rows(served)
        self._look_for_vectors({key for mine in keys.values() for key in mine})
        done = []
        for purge in served:
            parts = Counter(entry.part for content in purge.contents if content.is_freed for entry in content.entries if entry.object_key)
            figures = {
                **looked[purge.purge_id],
                "objects": parts.total(),
                "elements": parts[Part.PARSED],
                "cached_vectors": len(keys[purge.purge_id]),
            }
            done.append((purge, figures))
            self.tally.counts["bytes_freed"] += sum(content.size for content in purge.contents if content.is_freed)
        self.catalog.purges.finish(done)
        self.tally.documents += len(done)
        self.tally.counts["proofs"] += len(done)
        self.checkpoint("proved")

    def remove(self, objects: Iterable[FreedObject]) -> list[FreedObject]:
        """Delete objects, some at a time, drive by drive. Returns those that are gone; those of refused tenants wait."""
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

    def _forget_vectors(self, purge: Purge) -> set[str]:
        """Take the vectors of a purged text out of the caches of all models, but for words that a living document has, too. Returns their
        keys."""
        drive = self._drives(purge.tenant_id)[DriveKind.PIPELINE]
        texts: dict[str, str] = {}
        for content in purge.contents:
            for entry in content.entries:
                if content.is_freed and entry.part is Part.CHUNKS and entry.object_key is not None:
                    try:
                        body = drive.get(entry.object_key)
                    except ObjectGone:
                        continue  # an earlier run came this far: vectors go before the bytes that name them
                    texts |= {chunk.embed_text: content_hash(chunk.text.encode()) for chunk in to_chunks(body)}
        living = self.catalog.purges.living_texts(set(texts.values()))
        keys = self._forget({embed_text for embed_text, text_hash in texts.items() if text_hash not in living})
        self.tally.counts["vectors"] += len(keys)
        return keys

    def _forget(self, texts: set[str]) -> set[str]:
        every: set[str] = set()
        for tools in self.tools.values():
            keys = {vector_key(tools, text) for text in texts}
            tools.cache.delete(keys)
            every |= keys
        return every

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

    def _look_for_vectors(self, keys: set[str]) -> None:
        for name, tools in self.tools.items():
            if there := tools.cache.known(keys):
                raise SystemFault(
                    f"{len(there)} vectors of deleted text are still in the cache of index version {name}; the next run tries again"
                )
