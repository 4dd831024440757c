"""Processes that keep the same contents in one store at the same moment."""

import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from primer_core.drives import DriveSpec
from primer_core.ids import content_hash
from primer_core.lanes import Lane
from primer_core.stored_states import DriveKind
from primer_resources.catalog.contents import Contents, NewContent
from primer_resources.document_store import Arrived
from tests.drive_racers import RACERS, start_together
from tests.primer_resources.catalog.world import TENANT, World
from tests.stores import store_on


def _keep(url: str, specs: Mapping[DriveKind, DriveSpec], bodies: Sequence[bytes]) -> list[str]:
    """The contents that this process was the first to make known."""
    world, won = World(url), []
    added = world.catalog.contents.add

    class Noting(Contents):
        def add(self, new: NewContent) -> bool:
            is_first = added(new)
            if is_first:
                won.append(new.content_hash)
            return is_first

    world.catalog.contents = Noting(world.catalog.database)
    store = store_on(world.catalog, specs).of(TENANT)
    with tempfile.NamedTemporaryFile() as file:
        start_together()
        for body in bodies:
            Path(file.name).write_bytes(body)
            store.keep(Arrived(Path(file.name), content_hash(body), len(body), "text/plain", Lane.FAST))
    world.catalog.close()
    return won


def race_to_keep(pool: ProcessPoolExecutor, url: str, specs: Mapping[DriveKind, DriveSpec], bodies: Sequence[bytes]) -> list[list[str]]:
    """For each racer, the contents that it was the first to make known."""
    return [each.result() for each in [pool.submit(_keep, url, specs, bodies) for _ in range(RACERS)]]
