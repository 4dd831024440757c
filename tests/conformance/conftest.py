"""A catalog that the connectors' whole syncs begin with."""

from pathlib import Path

import pytest

from tests.primer_resources.catalog.world import World


@pytest.fixture(scope="session")
def catalog_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with a world in it, nobody connected."""
    path = tmp_path_factory.mktemp("syncs") / "catalog.sqlite"
    world = World(f"sqlite:///{path}")
    world.make()
    world.catalog.close()
    return path
