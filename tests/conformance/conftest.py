"""Catalogs that whole syncs and document stores begin with, and the processes that race."""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

import pytest

from tests.drive_racers import racers
from tests.primer_resources.catalog.conftest import postgres_copy, sqlite_template
from tests.primer_resources.chunker.conftest import converted, counter, packed, paragraphs
from tests.store_stand import empty, make_stand, stand

__all__ = [
    "converted",
    "counter",
    "empty",
    "make_stand",
    "packed",
    "paragraphs",
    "pool",
    "postgres_copy",
    "sqlite_template",
    "stand",
]


@pytest.fixture(scope="session")
def pool() -> Iterator[ProcessPoolExecutor]:
    """Eight processes, which take a while to start."""
    with racers() as made:
        yield made
