"""The access lane's sensor: a run at once for the buckets of a removal, beside everything else, and no sweep for the same work."""

import dagster as dg

from primer_assets.run_tags import SWEEP_TAG
from primer_core.stages import Operation
from primer_sensors.access_sensor import access_sensor
from primer_sensors.index_sweep_sensor import index_sweep_sensor
from primer_sensors.runs import RANGE_END, RANGE_START
from tests.deployment import Deployment
from tests.sensor_ticks import start_run, tick, waiting_document


def removal(docs: Deployment, path: str, bucket: str) -> None:
    """A document whose permissions changed."""
    waiting_document(docs.workspace, path, bucket, "fast", Operation.ACL)


def test_a_removal_is_a_run_of_its_own_that_goes_before_others_and_no_sweep(docs: Deployment) -> None:
    idle = tick(index_sweep_sensor, docs.workspace)
    assert isinstance(tick(access_sensor, docs.workspace), dg.SkipReason)
    removal(docs, "a.md", "03")
    (request,) = tick(access_sensor, docs.workspace).run_requests
    assert (request.tags[RANGE_START], request.tags[RANGE_END]) == ("00|v1", "07|v1"), "it takes up what comes meanwhile, wherever"
    assert int(request.tags["dagster/priority"]) > 0
    assert SWEEP_TAG not in request.tags, "a sweep of the same buckets must not take it for its own"
    assert isinstance(tick(index_sweep_sensor, docs.workspace, idle.cursor), dg.SkipReason), "or the same work would be two runs"


def test_a_removal_waits_for_no_sweep_and_is_left_to_the_run_that_is_under_way(docs: Deployment) -> None:
    start_run(docs.workspace, {SWEEP_TAG: "v1:00:07"})
    removal(docs, "a.md", "03")
    first = tick(access_sensor, docs.workspace)
    again = tick(access_sensor, docs.workspace, first.cursor)
    assert again.run_requests[0].run_key != first.run_requests[0].run_key
    start_run(docs.workspace, dict(first.run_requests[0].tags))
    removal(docs, "b.md", "06")
    assert isinstance(tick(access_sensor, docs.workspace, first.cursor), dg.SkipReason)
