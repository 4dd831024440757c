"""The sensors on a real catalog and a real Dagster instance: what is due becomes runs, what is under way is left, the dead are seen."""

from dataclasses import replace
from datetime import timedelta

import dagster as dg
import pytest
from dagster import DagsterRunStatus
from sqlalchemy import update

from primer_core.source_health import Health
from primer_core.stages import Operation
from primer_resources.catalog.events import NewEvent
from primer_resources.catalog.schema import sources
from primer_sensors.index_sweep_sensor import index_sweep_sensor
from primer_sensors.runs import RANGE_END, RANGE_START, SOURCE_TAG, active_values
from primer_sensors.source_sync_sensor import source_sync_sensor
from tests.deployment import Deployment
from tests.primer_resources.catalog.world import drives_of
from tests.sensor_ticks import start_run, tick, waiting_document

LEASE = timedelta(seconds=90)


def test_a_due_source_is_one_run_and_none_while_one_is_under_way(docs: Deployment) -> None:
    made = docs.workspace
    result = tick(source_sync_sensor, made)
    assert [request.partition_key for request in result.run_requests] == ["docs"]
    again = tick(source_sync_sensor, made, result.cursor)
    assert again.run_requests[0].run_key != result.run_requests[0].run_key
    start_run(made, {SOURCE_TAG: "docs"})
    assert isinstance(tick(source_sync_sensor, made, result.cursor), dg.SkipReason)


def test_a_source_just_synced_is_not_due(docs: Deployment) -> None:
    catalog = docs.workspace.catalog
    taken = catalog.sources.acquire("docs", "a run", LEASE)
    assert taken is not None
    catalog.sources.finish("docs", taken[1], catalog.now(), None)
    assert isinstance(tick(source_sync_sensor, docs.workspace), dg.SkipReason)


def test_sources_of_an_inactive_tenant_are_passed_over_with_a_reason(docs: Deployment) -> None:
    made, tenants = docs.workspace, docs.workspace.catalog.tenants
    tenants.add("rival", drives_of("rival"))
    made.catalog.sources.add(replace(made.catalog.sources.get("docs"), source_id="rivals", tenant_id="rival"))
    tenants.set_active("rival", False)
    assert [request.partition_key for request in tick(source_sync_sensor, made).run_requests] == ["docs"]
    tenants.set_active(made.settings.tenant, False)
    skipped = tick(source_sync_sensor, made)
    assert skipped.skip_message == "no source is due; those of inactive tenants are passed over: default, rival"
    assert "tenant 'default' is inactive" in (docs.sync().error or ""), "nor is one read that somebody launches in the UI"
    tenants.set_active("rival", True)
    assert [request.partition_key for request in tick(source_sync_sensor, made).run_requests] == ["rivals"]


def test_one_source_that_hangs_slows_none_of_twenty_and_those_that_wait_are_not_stalled(docs: Deployment) -> None:
    made, catalog = docs.workspace, docs.workspace.catalog
    for n in range(20):
        catalog.sources.add(replace(catalog.sources.get("docs"), source_id=f"quick-{n:02}"))
        taken = catalog.sources.acquire(f"quick-{n:02}", "earlier", LEASE)
        assert taken is not None
        catalog.sources.finish(f"quick-{n:02}", taken[1], catalog.now(), None)
    assert catalog.sources.acquire("docs", "hanging", timedelta(days=1)) is not None
    long_ago = catalog.now() - timedelta(hours=2)
    with catalog.database.begin() as connection:
        connection.execute(update(sources).where(sources.c.source_id == "docs").values(turn_began_at=long_ago, progressed_at=long_ago))
        ended = {"last_synced_at": long_ago, "last_good_at": long_ago, "turn_began_at": long_ago}
        connection.execute(update(sources).where(sources.c.source_id != "docs").values(**ended))
    start_run(made, {SOURCE_TAG: "docs"})
    cursor, served = None, []
    while isinstance(result := tick(source_sync_sensor, made, cursor), dg.SensorResult):
        assert len(result.run_requests) == min(3, 20 - len(served))
        cursor = result.cursor
        health = {each.source_id: each.health for each in catalog.pulses.sources(made.settings.pulse_limits.stalled)}
        assert health.pop("docs") is Health.STALLED
        assert {health[name] for name in health if name not in served} == {Health.WAITING}
        for request in result.run_requests:
            served.append(request.partition_key)
            taken = catalog.sources.acquire(request.partition_key, "a run", LEASE)
            assert taken is not None
            catalog.sources.finish(request.partition_key, taken[1], catalog.now(), None)
    assert sorted(served) == [f"quick-{n:02}" for n in range(20)]


def test_a_source_that_events_wait_for_is_read_whether_or_not_it_is_due(docs: Deployment) -> None:
    made = docs.workspace
    catalog, known = made.catalog, made.catalog.sources.get("docs")
    taken = catalog.sources.acquire("docs", "a run", LEASE)
    assert taken is not None
    catalog.sources.finish("docs", taken[1], catalog.now(), None)
    event = NewEvent("docs", "one", "a.md", None, Operation.UPSERT, "v1", None, None, catalog.now())
    catalog.inbox.receive(known, [event])
    first = tick(source_sync_sensor, made)
    assert [request.partition_key for request in first.run_requests] == ["docs"]
    # Committed and never started: the run was asked for, and nothing came of it.
    again = tick(source_sync_sensor, made, first.cursor)
    assert [request.partition_key for request in again.run_requests] == ["docs"]
    taken = catalog.sources.acquire("docs", "a run", LEASE)
    assert taken is not None
    catalog.sources.finish("docs", taken[1], None, "the source is gone")
    assert isinstance(tick(source_sync_sensor, made, again.cursor), dg.SkipReason), "what fails is not tried with every tick"
    [waiting] = catalog.events.due("docs", catalog.now(), 0, 10)
    with catalog.database.begin() as connection:
        catalog.events.put_off(connection, [waiting.seq], timedelta(minutes=1), "later")
    assert isinstance(tick(source_sync_sensor, made, again.cursor), dg.SkipReason)


def test_waiting_buckets_become_contiguous_range_runs(docs: Deployment) -> None:
    for bucket in ("01", "02", "06"):
        waiting_document(docs.workspace, f"{bucket}.md", bucket)
    requests = tick(index_sweep_sensor, docs.workspace).run_requests
    assert [(r.tags[RANGE_START], r.tags[RANGE_END]) for r in requests] == [("01|v1", "02|v1"), ("06|v1", "06|v1")]


def test_a_bucket_that_a_sweep_is_on_is_left_to_it(docs: Deployment) -> None:
    for bucket in ("01", "06"):
        waiting_document(docs.workspace, f"{bucket}.md", bucket)
    first = tick(index_sweep_sensor, docs.workspace)
    start_run(docs.workspace, dict(first.run_requests[0].tags))
    later = tick(index_sweep_sensor, docs.workspace, first.cursor)
    assert [r.tags[RANGE_START] for r in later.run_requests] == ["06|v1"]


def test_an_idle_deployment_is_swept_now_and_then_so_that_freshness_tells_the_truth(docs: Deployment) -> None:
    first = tick(index_sweep_sensor, docs.workspace)
    assert [(r.tags[RANGE_START], r.tags[RANGE_END]) for r in first.run_requests] == [("00|v1", "07|v1")]
    assert isinstance(tick(index_sweep_sensor, docs.workspace, first.cursor), dg.SkipReason)


@pytest.mark.parametrize("beats", [True, False])
def test_a_run_whose_process_died_is_marked_as_failed_and_a_living_one_is_left(docs: Deployment, beats: bool) -> None:
    made = docs.workspace
    run = start_run(made, {SOURCE_TAG: "docs"})
    for event in (dg.DagsterEventType.RUN_START,):
        made.instance.report_dagster_event(dg.DagsterEvent(event_type_value=event.value, job_name="a_run"), run.run_id)
    if beats:
        made.catalog.holders.beat(run.run_id, LEASE)
    tiny = timedelta(microseconds=1)
    assert active_values(made.instance, made.catalog, SOURCE_TAG, tiny) == (["docs"] if beats else [])
    status = made.instance.get_run_by_id(run.run_id).status
    assert status is (DagsterRunStatus.STARTED if beats else DagsterRunStatus.FAILURE)
