"""A dry run of a sync: the same steps over a catalog that only reads, written down as a plan."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from primer_assets.plan_reading import DryReading, to_planned
from primer_assets.source_feed import FeedSync
from primer_assets.source_reading import Read, Reading
from primer_assets.source_turn import listing_due
from primer_core.delete_guard import DeleteDecision
from primer_core.failures import PrimerError
from primer_core.plan_estimate import ToIndex, estimate
from primer_core.sync_plan import PLAN_FORMAT, Estimate, PlannedAcl, PlannedStep, PlanOperation, SyncPlan
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.documents import KnownDocument, Placement, VersionFacts
from primer_resources.catalog.dry_run import DryCatalog, WrittenDown
from primer_resources.catalog.sources import Source
from primer_resources.connectors.base import ChangePage, Connector, Cursor, CursorExpired
from primer_resources.connectors.frozen import FrozenSource
from primer_resources.containers.expander import Expander
from primer_resources.document_store import DocumentStore, TenantStore
from primer_resources.scratch import Scratch
from primer_resources.settings import Settings

NO_ESTIMATE = Estimate(0, 0, 0.0, ())
CountOcrPages = Callable[[Path, str], int | None]
"""Looks into a PDF file (path, name); None where nobody can tell before the parse."""


@dataclass(frozen=True, slots=True)
class Planner:
    """Makes plans of one deployment."""

    catalog: Catalog
    store: DocumentStore
    expander: Expander
    settings: Settings

    def plan(self, source: Source, connector: Connector, count_ocr_pages: CountOcrPages) -> SyncPlan:
        """What a sync that a person starts now would do. Changed items are fetched to a scratch folder, hashed, and gone.

        Nothing is written in the catalog, the store or the indexes, and no cursor moves.
        """
        why = listing_due(self.catalog, source, self.catalog.now(), self.settings.full_listing_interval, confirms_held=True)
        readings: list[DryReading] = []

        def open_reading(*arguments: Any) -> Reading:
            opened: Callable[..., DryReading] = DryReading
            readings.append(opened(*arguments, count_ocr_pages=count_ocr_pages))
            return readings[-1]

        with Scratch() as work:
            frozen = FrozenSource(connector, work)
            try:
                plan = self.look(source, frozen, open_reading, why)
            except CursorExpired as expired:
                plan = self.look(source, frozen, open_reading, str(expired))
        reading = readings[-1]
        reads = tuple(to_planned(read) for read in reading.reads)
        estimated = self._estimate(plan, reading.reads, reading.ocr_pages, self.store.of(source.tenant_id))
        return replace(plan, reads=reads, estimate=estimated)

    def look(self, source: Source, frozen: FrozenSource, open_reading: Callable[..., Reading], why_listed: str | None) -> SyncPlan:
        """One look: by listing where `why_listed` says why, by the feed otherwise. The plan has no reads and no estimate yet.

        Raises CursorExpired where the feed cannot tell.
        """
        versions = self.catalog.deployments.open_versions()
        settings = self.settings
        with closing(DryCatalog(self.catalog)) as dry:
            sync = _PlanningSync(
                dry,
                self.store.of(source.tenant_id),
                frozen,
                self.expander,
                source,
                source.scan + 1,
                0,
                settings.buckets,
                True,
                settings.fast_lane,
                open_reading=open_reading,
            )
            decision = read_source(sync, why_listed)
            steps = self._steps(dry.written)
            acls = tuple(PlannedAcl(row.acl_id, row.scope, row.allow_groups) for row in dry.written.acls.values())
        return SyncPlan(
            format=PLAN_FORMAT,
            deployment=self.catalog.deployments.identity(),
            source=source.source_id,
            recipes={version.name: version.recipe.digest for version in versions},
            made_at=self.catalog.now().isoformat(timespec="seconds"),
            why_listed=why_listed,
            cursor=source.cursor,
            listing_digest=frozen.listing_digest,
            problems=sync.problems,
            verdict=None if decision is None else decision.verdict.value,
            reasons=() if decision is None else decision.reasons,
            vanished_digest=sync.vanished_digest,
            figures=sync.report.to_json(),
            steps=steps,
            acls=acls,
            reads=(),
            estimate=NO_ESTIMATE,
        )

    def _steps(self, written: WrittenDown) -> tuple[PlannedStep, ...]:
        """What was written down, one step a document, by path."""
        moved = [doc_id for doc_id, _ in written.moved] + [doc_id for doc_id, _, _ in written.granted]
        known = self.catalog.documents.by_id({*moved, *written.held})
        steps = [_version_step(PlanOperation.ADD, *each) for each in written.added]
        steps += [_version_step(PlanOperation.UPDATE, *each) for each in written.advanced]
        steps += [_move_step(known[doc_id], place) for doc_id, place in written.moved]
        for doc_id, acl_id, error in written.granted:
            steps.append(PlannedStep(PlanOperation.ACL, known[doc_id].path, doc_id, acl_id=acl_id, acl_error=error))
        steps += [PlannedStep(PlanOperation.DELETE, document.path, document.doc_id) for document in written.deleted]
        steps += [PlannedStep(PlanOperation.HOLD, known[doc_id].path, doc_id) for doc_id in written.held]
        return tuple(sorted(steps, key=lambda step: (step.path, step.doc_id)))

    def _estimate(self, plan: SyncPlan, reads: Sequence[Read], ocr_pages: Mapping[str, int], store: TenantStore) -> Estimate:
        """The cost of what would be indexed; a content that several documents have is read once."""
        live = self.catalog.deployments.live()
        edited = {step.content_hash for step in plan.steps if step.operation is PlanOperation.UPDATE}
        indexed = {step.content_hash for step in plan.steps if step.operation in (PlanOperation.ADD, PlanOperation.UPDATE)}
        contents: dict[str, ToIndex] = {}
        for read in (each for top in reads for each in (top, *top.members)):
            if read.fetched is None or read.fetched.content_hash not in indexed:
                continue
            key = read.fetched.content_hash
            has_chunks = store.has_chunks(key, live.recipe.parser.version, live.recipe.chunker.version)
            contents[key] = ToIndex(read.mime or "", read.fetched.size, key in edited, ocr_pages.get(key, 0), has_chunks)
        return estimate(contents.values(), self.catalog.plan_figures.measured(live.name))


class _PlanningSync(FeedSync):
    """A sync that settles its whole feed at once: what one piece would write, the next one could not find."""

    def pages(self, cursor: Cursor) -> list[ChangePage]:  # type: ignore[override]
        pages = list(super().pages(cursor))
        changes = tuple(change for page in pages for change in page.changes)
        return [ChangePage(changes, pages[-1].cursor, more=False)] if pages else []


def read_source(sync: FeedSync, why_listed: str | None) -> DeleteDecision | None:
    """Read a source the way that a plan says. Returns what was decided on deletes, None where the feed told."""
    if why_listed is not None:
        return sync.run()
    if sync.source.cursor is None:
        raise PrimerError(f"source {sync.source.source_id} has no cursor of a feed any more; make the plan anew")
    sync.follow(sync.source.cursor)
    return None


def _version_step(operation: PlanOperation, doc_id: str, place: Placement, version: VersionFacts) -> PlannedStep:
    return PlannedStep(
        operation,
        place.path,
        doc_id,
        fingerprint=place.fingerprint,
        content_hash=version.content_hash,
        acl_id=place.acl_id,
        acl_error=place.acl_error,
        reason=version.reason,
    )


def _move_step(known: KnownDocument, place: Placement) -> PlannedStep:
    operation, old_path = PlanOperation.TOUCH, None
    if place.path != known.path:
        operation, old_path = PlanOperation.RENAME, known.path
    elif (place.acl_id, place.acl_error) != (known.acl_id, known.acl_error):
        operation = PlanOperation.ACL
    return PlannedStep(
        operation,
        place.path,
        known.doc_id,
        old_path=old_path,
        fingerprint=place.fingerprint,
        content_hash=known.content_hash,
        acl_id=place.acl_id,
        acl_error=place.acl_error,
    )
