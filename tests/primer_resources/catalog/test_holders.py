"""Who is alive: a run that beats, until a lease after its last beat."""

from datetime import timedelta

from tests.primer_resources.catalog.world import LEASE, World

MARGIN = timedelta(seconds=20)
"""Around a lease: on Postgres the real clock runs on, and a busy machine may take seconds between two statements."""


def test_a_run_is_alive_until_a_lease_after_its_last_beat(world: World) -> None:
    assert world.catalog.holders.alive() == set()
    world.catalog.holders.beat("run-a", LEASE)
    world.catalog.holders.beat("run-b", LEASE)
    world.pass_time(LEASE - MARGIN)
    world.catalog.holders.beat("run-b", LEASE)
    assert world.catalog.holders.alive() == {"run-a", "run-b"}
    world.pass_time(2 * MARGIN)
    assert world.catalog.holders.alive() == {"run-b"}
    assert world.catalog.holders.forget() == 1
    assert world.catalog.holders.alive() == {"run-b"}
