"""`source_documents`: what a source holds, learned by feed, listing or events; new bytes fetched and hashed, jobs committed."""

from contextlib import closing
from typing import Any

import dagster as dg

from primer_assets.grid_asset import SYSTEM_RETRY
from primer_assets.partitions import SOURCES
from primer_assets.plan_applying import PlannedSync, PlanRefused
from primer_assets.plan_making import Planner
from primer_assets.source_turn import take_turn
from primer_assets.stage_run import plain_errors
from primer_core.delete_guard import Verdict
from primer_core.failures import PrimerError
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.sources import is_due
from primer_resources.connectors.registry import Connectors
from primer_resources.document_store import DocumentStore
from primer_resources.heartbeat import Heartbeat
from primer_resources.settings import Settings
from primer_resources.toolkit import Toolkit

SHOWN_PROBLEMS = 20


@dg.asset(
    partitions_def=SOURCES,
    group_name="sources",
    retry_policy=SYSTEM_RETRY,
    kinds={"python"},
    description="Documents of a source as its change feed, its events or its newest full listing show them. New and changed ones are "
    "fetched and wait to be parsed; vanished ones are deleted, or held where too many vanish at once.",
)
def source_documents(
    context: dg.AssetExecutionContext,
    catalog: dg.ResourceParam[Catalog],
    store: dg.ResourceParam[DocumentStore],
    settings: dg.ResourceParam[Settings],
    connectors: dg.ResourceParam[Connectors],
    toolkit: dg.ResourceParam[Toolkit],
    plan: dg.ResourceParam[Any],
) -> dg.MaterializeResult[None]:
    """Sync one source; a second run on the same source finds it taken and leaves it."""
    with plain_errors():
        owner = context.run.run_id
        source = catalog.sources.get(context.partition_key)
        catalog.tenants.require_active(source.tenant_id)
        taken = catalog.sources.acquire(source.source_id, owner, settings.lease)
        if taken is None:
            context.log.info(f"source {source.source_id} is being synced by another run; nothing to do")
            return dg.MaterializeResult(metadata={"taken_by_another_run": True})
        scan, epoch = taken
        by_sensor = "dagster/sensor_name" in context.run.tags
        waited = source.held_at is None or catalog.now() >= source.held_at + settings.held_delete_wait
        confirms_held = waited or not by_sensor
        lease, began_at = settings.lease, catalog.now()
        with Heartbeat(lease, lambda: catalog.holders.beat(owner, lease), lambda: catalog.sources.renew(owner, lease)):
            try:
                with closing(connectors.open(source)) as connector:
                    sync = PlannedSync(
                        catalog,
                        store.of(source.tenant_id),
                        connector,
                        toolkit.expander,
                        source,
                        scan,
                        epoch,
                        settings.buckets,
                        confirms_held,
                        settings.fast_lane,
                        plan=plan,
                        run_id=owner,
                    )
                    due = not by_sensor or is_due(source, began_at, settings.full_listing_interval, settings.held_delete_wait)
                    if plan is None:
                        turn = take_turn(sync, began_at, settings.full_listing_interval, due)
                    else:
                        turn = sync.apply(Planner(catalog, store, toolkit.expander, settings), connector)
            except PlanRefused:
                catalog.sources.give_back(owner)
                raise
            except PrimerError as error:
                catalog.sources.finish(source.source_id, epoch, None, str(error))
                raise
        hidden = [f"documents are hidden, since their permissions cannot be read: {error}" for error in sorted(sync.hiding)]
        undecided = turn.decision.reasons if turn.decision is not None and turn.decision.verdict is Verdict.REFUSE else ()
        problems = [*undecided, *hidden, *sync.problems][:SHOWN_PROBLEMS]
        catalog.sources.finish(source.source_id, epoch, began_at, "; ".join(problems) or None, turn.listed, turn.is_whole)
        if sync.not_applied:
            catalog.sources.list_next([source.source_id])  # a feed does not tell again of what was left as it was
        metadata: dict[str, dg.MetadataValue] = {name: dg.MetadataValue.int(value) for name, value in sync.report.to_json().items()}
        metadata["learned_by"] = dg.MetadataValue.text(turn.learned_by)
        metadata["deletes"] = dg.MetadataValue.text("; ".join(turn.decision.reasons if turn.decision else ()) or "none")
        metadata["problems"] = dg.MetadataValue.json(problems)
        metadata["notices"] = dg.MetadataValue.json(list(sync.notices[:SHOWN_PROBLEMS]))
        metadata["skipped"] = dg.MetadataValue.json(dict(sync.skipped))
        return dg.MaterializeResult(metadata=metadata)
