"""What Dagster loads. `build_defs(overrides)` makes fresh Definitions, so that a test swaps one resource and keeps the rest."""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from primer.workspace import make_store, open_catalog, open_drives
from primer_assets.access_rows import access_rows
from primer_assets.body_policies import body_policies
from primer_assets.freshness_report import freshness_report
from primer_assets.index_version import index_version
from primer_assets.parse_quality import parse_quality
from primer_assets.pulse_checks import changes_in_time, sources_in_step
from primer_assets.purged_documents import purged_documents
from primer_assets.retired_versions import retired_versions
from primer_assets.serving_alias import serving_alias
from primer_assets.slow_parsed_elements import slow_parsed_elements
from primer_assets.source_documents import source_documents
from primer_assets.stored_objects import coherent, stored_objects
from primer_assets.version_jobs import backfill_start, promote, rollback
from primer_resources.connectors.registry import Connectors
from primer_resources.document_store import DocumentStore
from primer_resources.document_store.drives import TenantDrives
from primer_resources.settings import load_settings
from primer_resources.toolkit import Toolkit
from primer_sensors.access_sensor import access_sensor
from primer_sensors.backfill_sensor import backfill_sensor
from primer_sensors.body_policies_schedule import body_policies_schedule
from primer_sensors.freshness_schedule import freshness_schedule
from primer_sensors.index_sweep_sensor import GRID_ASSETS, index_sweep_sensor
from primer_sensors.pulse_sensor import pulse_sensor
from primer_sensors.purge_sensor import purge_sensor
from primer_sensors.retired_versions_schedule import retired_versions_schedule
from primer_sensors.slow_parse_sensor import slow_parse_sensor
from primer_sensors.source_sync_sensor import source_sync_sensor
from primer_sensors.stored_objects_schedule import stored_objects_schedule


@dg.resource(description="Where documents, jobs, leases and generations are kept.")
def _catalog(_context: dg.InitResourceContext) -> Any:
    catalog = open_catalog(load_settings())
    try:
        yield catalog
    finally:
        catalog.close()


@dg.resource(description="The drives of tenants: where their objects are.", required_resource_keys={"catalog"})
def _drives(context: dg.InitResourceContext) -> TenantDrives:
    return open_drives(load_settings(), context.resources.catalog)


@dg.resource(description="Where source bytes, parsed documents and chunk sets are kept.", required_resource_keys={"catalog", "drives"})
def _store(context: dg.InitResourceContext) -> DocumentStore:
    return make_store(context.resources.catalog, context.resources.drives)


@dg.resource(description="Parser, chunker, embedder and the two indexes of each index version.")
def _toolkit(_context: dg.InitResourceContext) -> Any:
    toolkit = Toolkit(load_settings())
    try:
        yield toolkit
    finally:
        toolkit.close()


def _resources() -> dict[str, Any]:
    return {
        "settings": load_settings(),
        "catalog": _catalog,
        "store": _store,
        "drives": _drives,
        "toolkit": _toolkit,
        "connectors": Connectors(load_settings().source_folders),
        "plan": dg.ResourceDefinition.none_resource("The plan that a sync applies; none is an ordinary sync."),
        "checkpoint": dg.ResourceDefinition.hardcoded_resource(lambda _name: None),
    }


def build_defs(overrides: Mapping[str, Any] | None = None) -> dg.Definitions:
    """Fresh Definitions; `overrides` replace resources by key (settings, catalog, store, drives, toolkit, connectors, plan, checkpoint)."""
    return dg.Definitions(
        assets=[
            *(source_documents, slow_parsed_elements, *GRID_ASSETS, access_rows),
            *(index_version, serving_alias, retired_versions),
            *(purged_documents, body_policies, stored_objects, freshness_report, parse_quality),
        ],
        asset_checks=[sources_in_step, changes_in_time, coherent],
        sensors=[source_sync_sensor, index_sweep_sensor, slow_parse_sensor, access_sensor, backfill_sensor, purge_sensor, pulse_sensor],
        schedules=[freshness_schedule, stored_objects_schedule, body_policies_schedule, retired_versions_schedule],
        jobs=[backfill_start, promote, rollback],
        resources={**_resources(), **(overrides or {})},
        executor=dg.in_process_executor,
    )


defs = build_defs()
