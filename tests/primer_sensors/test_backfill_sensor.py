"""The backfill's sensor: one run at a time behind all others, and none while live work is late."""

from dataclasses import replace

import dagster as dg
from sqlalchemy import update

from primer_assets.run_tags import BACKFILL_TAG, SWEEP_TAG
from primer_core.backfills import BackfillReason, BackfillState
from primer_core.buckets import bucket_names
from primer_core.index_versions import VersionState
from primer_resources.catalog.backfills import Backfill
from primer_resources.catalog.schema import jobs
from primer_sensors.backfill_sensor import backfill_sensor
from primer_sensors.index_sweep_sensor import index_sweep_sensor
from primer_sensors.runs import RANGE_END, RANGE_START
from tests.deployment import Deployment
from tests.sensor_ticks import start_run, tick, waiting_document


def begin(docs: Deployment) -> Backfill:
    """A backfill of a version that is another model's."""
    catalog, buckets = docs.workspace.catalog, docs.workspace.settings.buckets
    recipe = catalog.deployments.live().recipe
    other = replace(recipe, embedding=replace(recipe.embedding, revision="another"))
    catalog.deployments.add_version("v2", other, VersionState.BUILDING, buckets)
    return catalog.backfills.begin(catalog.deployments.version("v2"), BackfillReason.EMBEDDING_MODEL, None, bucket_names(buckets))


def test_a_backfill_is_one_run_over_all_buckets_behind_all_others_and_makes_its_partition_known(docs: Deployment) -> None:
    assert isinstance(tick(backfill_sensor, docs.workspace), dg.SkipReason)
    waiting_document(docs.workspace, "a.md", "02")
    begin(docs)
    first = tick(backfill_sensor, docs.workspace)
    (request,) = first.run_requests
    assert (request.tags[RANGE_START], request.tags[RANGE_END]) == ("00|v2", "07|v2")
    assert int(request.tags["dagster/priority"]) < 0
    assert SWEEP_TAG not in request.tags
    assert [each.partition_keys for each in first.dynamic_partitions_requests] == [["v2"]]
    start_run(docs.workspace, dict(request.tags))
    second = tick(backfill_sensor, docs.workspace, first.cursor)
    assert isinstance(second, dg.SkipReason)


def test_none_is_launched_while_a_change_has_waited_too_long_or_the_backfill_is_paused(docs: Deployment) -> None:
    catalog = docs.workspace.catalog
    waiting_document(docs.workspace, "a.md", "02")
    backfill = begin(docs)
    assert tick(backfill_sensor, docs.workspace).run_requests
    late = catalog.now() - 2 * docs.workspace.settings.backfill_yields_after
    with catalog.database.begin() as connection:
        connection.execute(update(jobs).values(created_at=late, changed_at=None))
    skipped = tick(backfill_sensor, docs.workspace)
    assert isinstance(skipped, dg.SkipReason)
    assert "live work has waited for 12" in (skipped.skip_message or "")
    with catalog.database.begin() as connection:
        connection.execute(update(jobs).values(state="indexed"))
    assert tick(backfill_sensor, docs.workspace).run_requests
    catalog.backfills.steer(backfill.backfill_id, BackfillState.PAUSED)
    assert isinstance(tick(backfill_sensor, docs.workspace), dg.SkipReason)


def test_what_a_backfill_has_taken_up_launches_no_sweep(docs: Deployment) -> None:
    catalog = docs.workspace.catalog
    backfill = begin(docs)
    waiting_document(docs.workspace, "a.md", "02")
    catalog.backfills.feed(backfill, bucket_names(8), 10)
    sweeps = tick(index_sweep_sensor, docs.workspace).run_requests
    assert {request.tags[RANGE_START] for request in sweeps} == {"02|v1"}
    assert all(BACKFILL_TAG not in request.tags for request in sweeps)
