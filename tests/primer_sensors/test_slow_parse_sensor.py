"""The slow lane's sensor: one run a version over all buckets, beside the sweeps and never twice."""

import dagster as dg

from primer_assets.run_tags import SLOW_SWEEP_TAG, SWEEP_TAG
from primer_core.stages import Operation
from primer_resources.catalog.jobs import NewJob
from primer_sensors.index_sweep_sensor import index_sweep_sensor
from primer_sensors.runs import RANGE_END, RANGE_START
from primer_sensors.slow_parse_sensor import MOST_RUN_TIME_TAG, slow_parse_sensor
from tests.deployment import Deployment
from tests.primer_resources.catalog.world import facts, place
from tests.sensor_ticks import start_run, tick, waiting_document


def scan(docs: Deployment, path: str, bucket: str) -> None:
    """A document that waits in the slow lane."""
    waiting_document(docs.workspace, path, bucket, "slow", Operation.UPSERT)


def test_scans_become_one_run_over_all_buckets_with_a_time_limit_of_its_own(docs: Deployment) -> None:
    assert isinstance(tick(slow_parse_sensor, docs.workspace), dg.SkipReason)
    scan(docs, "a.pdf", "02")
    scan(docs, "b.pdf", "05")
    (request,) = tick(slow_parse_sensor, docs.workspace).run_requests
    assert (request.tags[RANGE_START], request.tags[RANGE_END]) == ("00|v1", "07|v1")
    longest = docs.workspace.settings.slow_time.longest.total_seconds()
    assert int(request.tags[MOST_RUN_TIME_TAG]) > docs.workspace.settings.slow_run_time.total_seconds() + longest
    assert int(request.tags["dagster/priority"]) < 0
    assert SWEEP_TAG not in request.tags, "a sweep of the same buckets must not take it for its own"


def test_a_second_run_waits_for_the_first_and_a_sweep_for_neither(docs: Deployment) -> None:
    scan(docs, "a.pdf", "02")
    first = tick(slow_parse_sensor, docs.workspace)
    start_run(docs.workspace, dict(first.run_requests[0].tags))
    assert isinstance(tick(slow_parse_sensor, docs.workspace, first.cursor), dg.SkipReason)
    catalog = docs.workspace.catalog
    with catalog.database.begin() as connection:
        catalog.documents.add(connection, catalog.sources.get("docs"), "wiki", place("w.md"), facts(1, "two", "02"))
        catalog.jobs.add(connection, [NewJob("wiki", "docs", "1", "two", "02", "fast", Operation.UPSERT, catalog.now())], ["v1"])
    (sweep,) = tick(index_sweep_sensor, docs.workspace).run_requests
    assert (sweep.tags[RANGE_START], sweep.tags[RANGE_END]) == ("02|v1", "02|v1")


def test_run_keys_of_launches_differ_and_a_waiting_scan_launches_no_sweep(docs: Deployment) -> None:
    scan(docs, "a.pdf", "02")
    first = tick(slow_parse_sensor, docs.workspace)
    second = tick(slow_parse_sensor, docs.workspace, first.cursor)
    assert first.run_requests[0].run_key != second.run_requests[0].run_key
    idle = tick(index_sweep_sensor, docs.workspace)
    assert SLOW_SWEEP_TAG not in idle.run_requests[0].tags, "the idle sweep, which finds the scan not to be its work"
    assert isinstance(tick(index_sweep_sensor, docs.workspace, idle.cursor), dg.SkipReason)
