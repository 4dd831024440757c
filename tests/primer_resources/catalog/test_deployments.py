from dataclasses import replace

import pytest

from primer_core.failures import PrimerError
from primer_core.index_versions import VersionState
from primer_core.recipe import ParserSpec
from primer_resources.catalog.schema import lanes
from tests.primer_resources.catalog.world import BUCKETS, RECIPE, VERSION, World

OTHER = replace(RECIPE, parser=ParserSpec("docling", "2"))


def test_the_number_of_buckets_is_fixed_when_the_deployment_is_made(world: World) -> None:
    world.catalog.deployments.require_buckets(len(BUCKETS))
    with pytest.raises(PrimerError, match="PRIMER_BUCKETS = 8, but this deployment was created with 4"):
        world.catalog.deployments.create(8)
    world.catalog.deployments.require_buckets(len(BUCKETS))


def test_a_recipe_never_changes_under_its_name(world: World) -> None:
    with pytest.raises(PrimerError, match="v1 was made with another recipe"):
        world.catalog.deployments.add_version(VERSION, OTHER, VersionState.LIVE, len(BUCKETS))
    assert world.catalog.deployments.version(VERSION).recipe == RECIPE
    world.catalog.deployments.add_version(VERSION, RECIPE, VersionState.LIVE, len(BUCKETS))


def test_a_new_version_opens_for_writing_and_leaves_the_live_one_live(world: World) -> None:
    world.catalog.deployments.add_version("v0", OTHER, VersionState.RETIRED, len(BUCKETS))
    world.catalog.deployments.add_version("v2", OTHER, VersionState.BUILDING, len(BUCKETS))
    assert {version.name for version in world.catalog.deployments.open_versions()} == {"v1", "v2"}
    assert world.catalog.deployments.live().name == VERSION


def test_every_bucket_of_a_version_has_one_lane(world: World) -> None:
    world.catalog.deployments.add_version("v2", OTHER, VersionState.BUILDING, len(BUCKETS))
    assert [row.bucket for row in world.rows(lanes, index_version="v2")] == list(BUCKETS)


def test_a_version_that_nobody_made_is_named_with_those_that_are_there(world: World) -> None:
    with pytest.raises(PrimerError, match="index version 'v9' is unknown; known are v1"):
        world.catalog.deployments.version("v9")
