"""The pulse in the UI: a stalled source and a late lane are told once, with their reasons, and without a run."""

from datetime import timedelta

import dagster as dg
from sqlalchemy import update

from primer_assets.freshness_report import freshness_report
from primer_assets.pulse_checks import sources_in_step
from primer_core.stages import Operation
from primer_resources.catalog.jobs import NewJob
from primer_resources.catalog.schema import jobs, sources
from primer_sensors.pulse_sensor import pulse_sensor
from tests.deployment import Deployment
from tests.primer_resources.catalog.world import facts, place
from tests.sensor_ticks import tick

LEASE = timedelta(seconds=90)


def fail_for_hours(docs: Deployment, hours: int) -> None:
    """The source was last read well so long ago, and just now it failed."""
    catalog = docs.workspace.catalog
    taken = catalog.sources.acquire("docs", "a run", LEASE)
    assert taken is not None
    catalog.sources.finish("docs", taken[1], None, "its folder is not there")
    with catalog.database.begin() as connection:
        connection.execute(update(sources).values(last_good_at=catalog.now() - timedelta(hours=hours)))


def told(result: dg.SensorResult) -> dict[str, tuple[bool, str, str]]:
    """check → (passed, severity, description)."""
    return {each.check_name: (each.passed, each.severity.value, each.description or "") for each in result.asset_events}


def test_a_stalled_source_is_told_with_its_reason_and_told_again_only_when_it_changes(docs: Deployment) -> None:
    first = tick(pulse_sensor, docs.workspace)
    assert {name: passed for name, (passed, _, _) in told(first).items()} == {"changes_in_time": True, "sources_in_step": True}
    assert isinstance(tick(pulse_sensor, docs.workspace, first.cursor), dg.SkipReason)
    fail_for_hours(docs, 2)
    second = tick(pulse_sensor, docs.workspace, first.cursor)
    passed, severity, words = told(second)["sources_in_step"]
    assert (passed, severity) == (False, "WARN")
    assert words.startswith("docs is stalled: no good sync for")
    assert "its folder is not there" in words
    assert isinstance(tick(pulse_sensor, docs.workspace, second.cursor), dg.SkipReason)
    fail_for_hours(docs, 7)
    assert told(tick(pulse_sensor, docs.workspace, second.cursor))["sources_in_step"][1] == "ERROR"
    assert not second.run_requests


def test_a_change_that_waits_past_the_limit_is_told(docs: Deployment) -> None:
    catalog, source = docs.workspace.catalog, docs.workspace.catalog.sources.get("docs")
    with catalog.database.begin() as connection:
        assert catalog.documents.add(connection, source, "doc", place("a.md", "acl-a"), facts(1, "one", "00"))
        catalog.jobs.add(connection, [NewJob("doc", "docs", "1", "one", "00", "fast", Operation.UPSERT, catalog.now())], ["v1"])
        connection.execute(update(jobs).values(created_at=catalog.now() - timedelta(minutes=6)))
    passed, severity, words = told(tick(pulse_sensor, docs.workspace))["changes_in_time"]
    assert (passed, severity) == (False, "WARN")
    assert "fast lane: the oldest of what waits has waited 6.0 min (limit 5.0 min)" in words


def test_the_report_and_the_check_by_hand_say_the_same(docs: Deployment) -> None:
    fail_for_hours(docs, 2)
    resources = {"catalog": docs.workspace.catalog, "settings": docs.workspace.settings}
    result = dg.materialize([freshness_report], resources=resources)
    metadata = result.asset_materializations_for_node("freshness_report")[0].metadata
    assert "| docs | stalled |" in str(metadata["report"].value)
    assert metadata["sources_late"].value == 1
    check = sources_in_step(**resources)
    assert isinstance(check, dg.AssetCheckResult)
    assert not check.passed
