"""Sensors evaluated as the daemon does it, and what they find: documents that wait, and runs that Dagster believes to be under way."""

from typing import Any
from uuid import uuid4

import dagster as dg
from dagster import DagsterRunStatus

from primer.workspace import Workspace
from primer_core.stages import Operation
from primer_resources.catalog.jobs import NewJob
from tests.primer_resources.catalog.world import facts, place


def tick(sensor: dg.SensorDefinition, made: Workspace, cursor: str | None = None) -> Any:
    """One evaluation of a sensor, as the daemon makes it."""
    resources = {"catalog": made.catalog, "settings": made.settings}
    wanted = {name: resources[name] for name in sensor.required_resource_keys}
    return sensor(dg.build_sensor_context(instance=made.instance, cursor=cursor, resources=wanted))


def waiting_document(made: Workspace, path: str, bucket: str, lane: str = "fast", operation: Operation = Operation.UPSERT) -> None:
    """A document with a job that waits in a bucket."""
    catalog, source = made.catalog, made.catalog.sources.get("docs")
    now = catalog.now()
    with catalog.database.begin() as connection:
        assert catalog.documents.add(connection, source, f"doc-{path}", place(path, "acl-a"), facts(1, "one", bucket))
        job = NewJob(f"doc-{path}", "docs", "1", "one", bucket, lane, operation, now)
        catalog.jobs.add(connection, [job], ["v1"])


def start_run(made: Workspace, tags: dict[str, str]) -> dg.DagsterRun:
    """A run that Dagster believes to be under way."""
    run = dg.DagsterRun(job_name="a_run", run_id=str(uuid4()), status=DagsterRunStatus.NOT_STARTED, tags=tags)
    made.instance.add_run(run)
    return run
