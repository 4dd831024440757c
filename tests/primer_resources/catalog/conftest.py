"""A world on each of the two databases. The schema is migrated once a database; each test gets a copy."""

import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from tests.postgres import PostgresServer
from tests.primer_resources.catalog.world import World

NUMBERS = count()
"""Several packages have these fixtures, each an instance of its own on one server."""


def _make(url: str) -> None:
    world = World(url)
    world.make()
    world.catalog.close()


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with a world in it, nobody connected."""
    path = tmp_path_factory.mktemp("world") / "catalog.sqlite"
    _make(f"sqlite:///{path}")
    return path


@pytest.fixture(scope="session")
def postgres_copy(postgres: PostgresServer) -> Callable[[str], str]:
    """Makes a Postgres database with a world in it. Returns its URL."""

    template = f"world_template_{next(NUMBERS)}"

    def execute(statement: str, name: str) -> None:
        with psycopg.connect(host=str(postgres.folder), user="postgres", dbname="postgres", autocommit=True) as admin:
            admin.execute(sql.SQL(statement).format(sql.Identifier(name), sql.Identifier(template)))

    execute("CREATE DATABASE {} TEMPLATE template0", template)
    _make(postgres.url(template))

    def copy(name: str) -> str:
        execute("DROP DATABASE IF EXISTS {} WITH (FORCE)", name)
        execute("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy", name)
        return postgres.url(name)

    return copy


@pytest.fixture(params=["sqlite", "postgres"])
def world_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """URL of a database with a world in it: on SQLite, then on Postgres."""
    if request.param == "postgres":
        copy: Callable[[str], str] = request.getfixturevalue("postgres_copy")
        return copy("world")
    path = tmp_path / "catalog.sqlite"
    shutil.copy(request.getfixturevalue("sqlite_template"), path)
    return f"sqlite:///{path}"


@pytest.fixture
def world(world_url: str) -> Iterator[World]:
    """A catalog with one source, one version, no documents."""
    made = World(world_url)
    yield made
    made.catalog.close()
