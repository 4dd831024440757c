"""What one full listing of a large source costs where little changed: seconds, CPU seconds, and how much the peak of memory grew.

usage: listing_diff.py [--documents 200000] [--folder FOLDER] [--database URL]
A catalog with so many document rows and nothing else is made in one process; the listing is settled in another, whose memory is then only
that of the sync. The source shows all but 1 in 20,000 documents, has as many new ones, and re-shares one folder of 1,000.
"""

import argparse
import hashlib
import multiprocessing
import os
import resource
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from sqlalchemy import insert

from primer_assets.source_feed import FeedSync
from primer_core import ids
from primer_core.drives import DriveSpec
from primer_core.index_versions import VersionState
from primer_core.lanes import FastLane
from primer_core.recipe import ChunkerSpec, EmbeddingSpec, ParserSpec, Recipe
from primer_core.stored_states import DriveKind
from primer_resources.catalog.acls import AclRow
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.schema import documents
from primer_resources.catalog.sources import Source
from primer_resources.clock import SystemClock
from primer_resources.connectors.base import Access, ChangePage, Cursor, Fetched, ListedItem
from primer_resources.document_store import DocumentStore

SOURCE, TENANT, FOLDER_SIZE, ONE_IN = "bench", "default", 1_000, 20_000
MODIFIED_NS = 1_700_000_000_000_000_000
RECIPE = Recipe(ParserSpec("docling", "1"), ChunkerSpec("hybrid", "docling", 400, 15), EmbeddingSpec("m", "1", 4, "", True, "f32", 64))
ROWS_A_STATEMENT = 5_000


def _path(number: int) -> str:
    return f"folder-{number // FOLDER_SIZE:05}/a document of ordinary name {number}.pdf"


class _Source:
    """Listing and connector at once: `count` documents, some of them gone, as many new."""

    problems: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    skipped: Mapping[str, int] = {}
    cursor: Cursor | None = None

    def __init__(self, count: int) -> None:
        self.count = count

    def list(self, cursor: Cursor | None = None) -> "_Source":
        return self

    def __iter__(self) -> Iterator[ListedItem]:
        for number in range(self.count):
            if number % ONE_IN != 7:
                yield self._item(_path(number), number)
        for number in range(self.count // ONE_IN):
            yield self._item(f"new/{number}.txt", number)

    @staticmethod
    def _item(path: str, number: int) -> ListedItem:
        folder = path.rpartition("/")[0]
        groups = ("staff", "board") if number // FOLDER_SIZE == 3 else ("staff",)
        title = path.rpartition("/")[2]
        return ListedItem(path, path, f"file:///{path}", title, f"f{number}", MODIFIED_NS, 1, Access(folder, groups))

    def changes(self, cursor: Cursor) -> ChangePage | None:
        return None

    def fetch(self, item: ListedItem, target: Path) -> Fetched:
        data = item.path.encode()
        target.write_bytes(data)
        return Fetched(hashlib.sha256(data).hexdigest(), len(data), item.fingerprint, item.modified_ns)

    def decode(self, headers: Mapping[str, str], body: bytes) -> None:
        return None

    def close(self) -> None:
        """Nothing is held."""


def _make(url: str, count: int) -> None:
    catalog = Catalog(url, SystemClock(), Random(1))
    catalog.database.migrate()
    catalog.deployments.create(8)
    catalog.tenants.add(TENANT, {kind: DriveSpec(f"store/{kind}") for kind in DriveKind})
    catalog.deployments.add_version("v1", RECIPE, VersionState.LIVE, 8)
    source = Source(SOURCE, TENANT, "main", "drive", {}, "poll", 60)
    catalog.sources.add(source)
    if catalog.database.is_sqlite:
        with catalog.database.read() as connection:  # kept by the pool; the ids are in no order, so each insert touches other pages
            connection.exec_driver_sql("PRAGMA cache_size=-500000")
    now = datetime.now(UTC)
    for start in range(0, count, ROWS_A_STATEMENT):
        rows = []
        for number in range(start, min(start + ROWS_A_STATEMENT, count)):
            path = _path(number)
            doc_id = ids.doc_id(SOURCE, path)
            rows.append(
                {
                    "doc_id": doc_id,
                    "canonical_doc_id": doc_id,
                    "source_id": SOURCE,
                    "tenant_id": TENANT,
                    "library": "main",
                    "path": path,
                    "uri": f"file:///{path}",
                    "title": path.rpartition("/")[2],
                    "mime": "application/pdf",
                    "source_version": "1",
                    "version_order": MODIFIED_NS,
                    "fingerprint": f"f{number}",
                    "bucket": "00",
                    "content_hash": hashlib.sha256(doc_id.encode()).hexdigest(),
                    "status": "indexed",
                    "event_time": now,
                    "acl_id": ids.acl_id(TENANT, SOURCE, path.rpartition("/")[0]),
                }
            )
        with catalog.database.begin() as connection:
            connection.execute(insert(documents), rows)
            for folder in sorted({row["path"].rpartition("/")[0] for row in rows}):
                acl = AclRow(ids.acl_id(TENANT, SOURCE, folder), folder, ("staff",), readable=True, error="")
                catalog.acls.put(connection, source, acl, now)
    catalog.close()


def _measure(url: str, count: int, folder: str) -> None:
    catalog = Catalog(url, SystemClock(), Random(1))
    source = catalog.sources.get(SOURCE)
    taken = catalog.sources.acquire(SOURCE, "bench", timedelta(hours=6))
    assert taken is not None
    expander: Any = type("NoContainers", (), {"opens": lambda *_: False})()
    store, fast = DocumentStore.at_folder(Path(folder) / "store"), FastLane(25 << 20, 300)
    sync = FeedSync(catalog, store, _Source(count), expander, source, *taken, ["v1"], 8, True, fast)
    before, cpu, began = _peak_mb(), time.process_time(), time.monotonic()
    decision = sync.run()
    wall, used = time.monotonic() - began, time.process_time() - cpu
    report, grown = sync.report, _peak_mb() - before
    print(  # noqa: T201
        f"{count} documents: {wall:.1f} s, {used:.1f} CPU s ({used / count * 1e6:.1f} us a document), peak memory +{grown:.0f} MiB "
        f"({before:.0f} before); {report.unchanged} unchanged, {report.acl_only} acl-only, {report.new} new, {report.deleted} deleted, "
        f"verdict {decision.verdict}; {_written_mb():.0f} MiB written"
    )
    catalog.close()


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _written_mb() -> float:
    """What this process wrote to files, page cache included."""
    counts = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(counts["wchar"]) / 2**20


def main() -> None:
    """Make the catalog, then settle the listing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=200_000)
    parser.add_argument("--folder", type=Path, help="Where the catalog is made; a temporary folder when left out.")
    parser.add_argument("--database", help="SQLAlchemy URL of an empty database; SQLite in the folder when left out.")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="primer-bench-", dir=options.folder))
    url = options.database or f"sqlite:///{folder / 'catalog.sqlite'}"
    spawn = multiprocessing.get_context("spawn")
    try:
        for work, arguments in ((_make, (url, options.documents)), (_measure, (url, options.documents, str(folder)))):
            process = spawn.Process(target=work, args=arguments)
            process.start()
            process.join()
            if process.exitcode:
                raise SystemExit(process.exitcode)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
