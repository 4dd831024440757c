"""What one look at a drive costs by the number of its objects: CPU, catalog statements, memory. Every object is owned; the drive is made
up, so that the reconciler's own work is measured and no disk. A home that is there is looked at once more, by a process that filled
nothing.

    PYTHONPATH=. python benchmarks/reconciler.py --contents 50000 --home /tmp/look
"""

import argparse
import resource
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

from sqlalchemy import event, insert

from primer_core.drives import DriveSpec
from primer_core.ids import content_hash
from primer_core.part_keys import DOCUMENT, ELEMENTS, SOURCE, chunk_set
from primer_core.stored_states import DriveKind, Manifest, Part, PartEntry, PartState, WrittenBy, content_node, pipeline_state
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.schema_bodies import LIVE, contents, stored_states
from primer_resources.clock import SystemClock
from primer_resources.document_store.drive import Drive, Stored
from primer_resources.document_store.drives import TenantDrives
from primer_resources.document_store.reconciler import Reconciler
from primer_resources.document_store.states import new_key

TENANT, ROWS = "acme", 5_000
BEGAN = datetime.now(UTC)
BY = WrittenBy("parse", "run", "p1")
KEYS = (DOCUMENT, ELEMENTS, chunk_set("c1"), (Part.CORE, ""))


class MadeUp(Drive):
    """A drive that shows what the catalog owns."""

    def __init__(self, keys: Iterator[str]) -> None:
        self.place, self._keys = "made up", keys

    def list(self, prefix: str = "") -> Iterator[Stored]:
        """All objects."""
        return (Stored(key, 1000, BEGAN) for key in self._keys)

    def _refuse(self, *_given: Any) -> Any:
        raise NotImplementedError

    replace = delete = _copy_within = _check_stands = _refuse


def fill(catalog: Catalog, count: int) -> None:
    """Contents with a source object each and a pipeline state of four."""
    random = Random(1)
    catalog.tenants.add(TENANT, {kind: DriveSpec(f"/made-up/{kind}") for kind in DriveKind})
    for start in range(0, count, ROWS):
        sources, states = [], []
        for number in range(start, min(start + ROWS, count)):
            content = content_hash(b"%d" % number)
            key = new_key(content_node(TENANT, content), SOURCE, random)
            sources.append({"tenant_id": TENANT, "content_hash": content, "size": 1, "mime": "x", "lane": "fast", "object": key})
            identity = pipeline_state(TENANT, content, "p1")
            entries = [
                PartEntry(*part, PartState.PRESENT, 1000, content, BEGAN, new_key(identity.node_id, part, random), BY) for part in KEYS
            ]
            named = {"node_id": identity.node_id, "doc_id": content, "node": identity.node, "tenant_id": TENANT, "graph": identity.graph}
            kept = {"content_hash": content, "manifest": Manifest.of(entries).to_json(), "revision": 1, "state": LIVE}
            states.append({**named, **kept, "created_at": BEGAN, "updated_at": BEGAN})
        with catalog.database.begin() as connection:
            connection.execute(insert(contents), sources)
            connection.execute(insert(stored_states), states)


def main() -> None:
    """Fill a catalog and look at both drives."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--contents", type=int, default=50_000)
    parser.add_argument("--home", type=Path, required=True)
    asked = parser.parse_args()
    is_new = not asked.home.exists()
    asked.home.mkdir(parents=True, exist_ok=True)
    catalog = Catalog(f"sqlite:///{asked.home / 'catalog.sqlite'}", SystemClock(), Random(1))
    if is_new:
        catalog.database.migrate()
        catalog.deployments.create(4)
        fill(catalog, asked.contents)
    statements = 0

    def note(*_given: Any) -> None:
        nonlocal statements
        statements += 1

    event.listen(catalog.database.engine, "before_cursor_execute", note)
    reconciler = Reconciler(
        catalog.object_owners, TenantDrives(catalog.tenants.find, SystemClock(), lambda _spec: MadeUp(iter(()))), SystemClock()
    )
    for kind in DriveKind:
        keys = (each.key for page in catalog.object_owners.pages(TENANT, kind) for each in page)
        listed = list(keys)
        Random(2).shuffle(listed)  # a folder lists in no order
        statements, before, cpu = 0, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
        look = reconciler.look(MadeUp(iter(listed)), TENANT, kind)
        cpu = time.process_time() - cpu
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        assert look.is_coherent
        assert look.checked == look.objects == len(listed)
        sys.stdout.write(
            f"{kind}: {look.objects} objects, {cpu:.1f} CPU s, {1e6 * cpu / look.objects:.0f} µs an object, "
            f"{1000 * statements / look.objects:.1f} statements per 1,000, {grown:.0f} MiB more at the peak\n"
        )
    catalog.close()


if __name__ == "__main__":
    main()
