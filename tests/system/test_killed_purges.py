"""Processes killed with SIGKILL at every step of a purge: the next run ends it, and there is no proof without a purge, nor the other way.

Once at each step by default; `--kill-repeats 20` kills ten times at each.
"""

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Select, Table, select

from primer_core.ids import doc_id
from primer_resources.catalog.schema import purges_due
from primer_resources.catalog.schema_bodies import contents, freed_objects, purge_proofs, purges, stored_states
from tests.system.crash_deployment import Deployment, deployed, eventually
from tests.system.crash_worker import Order, Stop, Worker

STEPS = ("released", "vectors gone", "bytes gone", "proved")

pytestmark = [pytest.mark.system, pytest.mark.timeout(0)]  # every wait has a deadline of its own


def owned(deployment: Deployment) -> set[str]:
    """The keys that rows of the catalog own."""
    with deployment.workspace.catalog.database.read() as connection:
        keys = set(connection.execute(select(contents.c.object)).scalars())
        for manifest in connection.execute(select(stored_states.c.manifest)).scalars():
            keys |= {entry["object_key"] for entry in manifest if entry["object_key"]}
    return keys


def objects(deployment: Deployment) -> set[str]:
    """The keys of all objects on the drives."""
    store = deployment.workspace.store.of(deployment.workspace.settings.tenant)
    return {stored.key for drive in (store.intake, store.pipeline.drive) for stored in drive.list()}


def rows(deployment: Deployment, of: Table | Select[Any]) -> int:
    """How many rows a table or a statement has."""
    with deployment.workspace.catalog.database.read() as connection:
        return len(connection.execute(of if isinstance(of, Select) else select(of)).all())


def delete(deployment: Deployment, worker: Worker, file: Path) -> None:
    """Delete a document, its rows, and let the graces of both pass: rows die a little after their document."""
    file.unlink()
    assert worker.do(Order()) is None
    catalog, grace = deployment.workspace.catalog, deployment.workspace.settings.purge_grace
    undone = purges_due.select().where(purges_due.c.done_at.is_(None))

    def is_due() -> bool:
        assert worker.do(Order(sync=False)) is None  # dead rows go from the indexes once their own grace is over
        return bool(catalog.purges.doomed(grace, "", 1)) and rows(deployment, undone) == 0

    eventually(is_due)


def test_a_purge_killed_at_any_step_is_ended_and_proved_once(crash_template: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    repeats = max(1, request.config.getoption("--kill-repeats") // 2)
    with deployed(crash_template, tmp_path) as deployment:
        with deployment.workspace.catalog.database.begin() as connection:
            connection.execute(stored_states.delete().where(stored_states.c.node == "intake"))  # nobody else owns the contents
        worker = deployment.start_worker()
        kills = list(product(range(repeats), STEPS))
        for number, _ in enumerate(kills):
            (deployment.folder / f"note-{number}.md").write_text(f"# Note {number}\n\nWhat only note {number} says.\n")
        assert worker.do(Order()) is None
        for number, (_, step) in enumerate(kills):
            delete(deployment, worker, deployment.folder / f"note-{number}.md")
            worker.start(Order(purge=True, stop=Stop(step)))
            worker.wait_for_kill()
            worker = deployment.start_worker()
            assert worker.do(Order(purge=True)) is None
            assert (rows(deployment, purges), rows(deployment, freed_objects)) == (0, 0)
            identity = doc_id(deployment.workspace.catalog.sources.all()[0].source_id, f"note-{number}.md")
            assert len(deployment.workspace.catalog.purges.proofs(identity)) == 1
            assert rows(deployment, purge_proofs) == number + 1
            assert objects(deployment) == owned(deployment)
