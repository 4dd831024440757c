from datetime import timedelta

import pytest

from primer_core.failures import LeaseLost
from tests.primer_resources.catalog.world import BUCKETS, LEASE, VERSION, World

MARGIN = timedelta(seconds=20)
"""Around a lease: on Postgres the real clock runs on, and a busy machine may take seconds between two statements."""


def check(world: World, epochs: dict[str, int], owner: str) -> None:
    with world.catalog.database.begin() as connection:
        world.catalog.lanes.check(connection, VERSION, epochs, owner, world.catalog.now())


def test_a_lane_has_one_owner_and_what_is_taken_is_left_out(world: World) -> None:
    mine = world.catalog.lanes.acquire(VERSION, ["00", "01"], "run-a", LEASE)
    assert set(mine) == {"00", "01"}
    assert set(world.catalog.lanes.acquire(VERSION, BUCKETS, "run-b", LEASE)) == {"02", "03"}


def test_the_same_owner_keeps_its_epoch_while_it_comes_back_in_time(world: World) -> None:
    first = world.catalog.lanes.acquire(VERSION, BUCKETS, "run-a", LEASE)
    world.pass_time(LEASE - MARGIN)
    assert world.catalog.lanes.acquire(VERSION, BUCKETS, "run-a", LEASE) == first
    world.pass_time(LEASE + MARGIN)
    late = world.catalog.lanes.acquire(VERSION, BUCKETS, "run-a", LEASE)
    assert late == {bucket: epoch + 1 for bucket, epoch in first.items()}, "meanwhile somebody may have been there"


def test_a_dead_owners_lane_goes_to_another_under_a_new_epoch(world: World) -> None:
    first = world.catalog.lanes.acquire(VERSION, BUCKETS, "run-a", LEASE)
    world.pass_time(LEASE - MARGIN)
    assert world.catalog.lanes.renew("run-a", LEASE) == len(BUCKETS)
    world.pass_time(LEASE - MARGIN)
    assert world.catalog.lanes.acquire(VERSION, BUCKETS, "run-b", LEASE) == {}
    world.pass_time(2 * MARGIN)
    assert world.catalog.lanes.renew("run-a", LEASE) == 0
    second = world.catalog.lanes.acquire(VERSION, BUCKETS, "run-b", LEASE)
    assert second == {bucket: epoch + 1 for bucket, epoch in first.items()}
    world.catalog.lanes.release("run-a")
    check(world, second, "run-b")


def test_a_lane_that_was_given_back_and_taken_again_has_another_epoch(world: World) -> None:
    first = world.catalog.lanes.acquire(VERSION, ["00"], "run-a", LEASE)
    world.catalog.lanes.release("run-a")
    assert world.catalog.lanes.acquire(VERSION, ["00"], "run-b", LEASE) == {"00": first["00"] + 1}
    with pytest.raises(LeaseLost, match="lane v1/00: run-a no longer holds epoch"):
        check(world, first, "run-a")


def test_only_the_owner_under_its_epoch_and_within_its_lease_passes_the_check(world: World) -> None:
    mine = world.catalog.lanes.acquire(VERSION, BUCKETS, "run-a", LEASE)
    check(world, mine, "run-a")
    check(world, {}, "run-b")
    for epochs, owner in ((mine, "run-b"), ({**mine, "03": mine["03"] + 1}, "run-a"), ({**mine, "03": mine["03"] - 1}, "run-a")):
        with pytest.raises(LeaseLost):
            check(world, epochs, owner)
    world.pass_time(LEASE + MARGIN)
    with pytest.raises(LeaseLost):
        check(world, mine, "run-a")


def test_versions_have_lanes_of_their_own(world: World) -> None:
    world.catalog.lanes.acquire(VERSION, BUCKETS, "run-a", LEASE)
    assert world.catalog.lanes.acquire("v2", BUCKETS, "run-a", LEASE) == {}
