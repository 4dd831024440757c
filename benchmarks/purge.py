"""What it costs to delete documents for good: their rows, vectors, catalog rows and bytes, each looked for and proved.

usage, from the project's folder: python -m benchmarks.purge [--documents 10000] [--revived 200] [--s3]

Small documents of one passage each, with vectors of four numbers, in real indexes, a real cache and on real drives: folders, or with --s3 a
Ceph gateway that is started for it (`deploy/setup/system.sh s3`). Some come back between their delete and the purge. Prints what is left,
what of those that came back is lost, seconds and CPU seconds a document.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from random import Random

from sqlalchemy import func, select

from primer_core.drives import DriveSpec
from primer_core.ids import content_hash
from primer_core.stored_states import DriveKind
from primer_resources.catalog.schema_bodies import contents, freed_objects, purge_proofs, purges, stored_states
from primer_resources.catalog.tenants import Tenant
from primer_resources.document_store import DocumentStore
from primer_resources.document_store.drives import TenantDrives
from primer_resources.document_store.opening import set_up_drive
from primer_resources.embedder.cache import LanceEmbeddingCache
from primer_resources.keyword_index.tantivy_index import TantivyKeywordIndex
from primer_resources.toolkit import Tools
from primer_resources.vector_index.lance_index import LanceVectorIndex
from tests.copies_bench import CopiesBench, Ones
from tests.primer_resources.catalog.world import RECIPE, TENANT
from tests.radosgw import radosgw
from tests.scripted_source import ScriptedSource

A_SWEEP = 80
"""Documents a sweep of the bench: its clock ticks once a document, and a lease has 90 ticks."""
SOURCE = "north"
KEYS = "PRIMER_BENCHMARK_KEYS"


@contextmanager
def drives(home: Path, on_s3: bool) -> Iterator[dict[DriveKind, DriveSpec]]:
    """Two drives to work on."""
    if not on_s3:
        yield {kind: DriveSpec(str(home / "store" / kind)) for kind in DriveKind}
        return
    with radosgw() as gateway:
        server = gateway.s3
        os.environ[KEYS] = f"{server.key_id}:{server.secret}"
        yield {kind: DriveSpec(f"s3://{server.make_bucket()}/{kind}", "", server.url, f"env:{KEYS}") for kind in DriveKind}


def made(home: Path, specs: dict[DriveKind, DriveSpec]) -> CopiesBench:
    """The bench with real indexes and drives."""
    bench = CopiesBench(f"sqlite:///{home}/catalog.sqlite", home, names=(SOURCE,))
    bench.make()
    bench.sources[SOURCE] = ScriptedSource(page_size=A_SWEEP)
    bench.share(SOURCE, "d", "everyone")
    clock = bench.catalog.database.clock
    known = TenantDrives(lambda _name: Tenant(TENANT, True, specs), clock, lambda spec: set_up_drive(spec, home))
    bench.store = DocumentStore(bench.catalog.contents, bench.catalog.states, known, clock, Random())
    used = {
        "embedder": Ones(),
        "cache": LanceEmbeddingCache(str(home / "embeddings"), RECIPE.embedding.version),
        "vectors": LanceVectorIndex(str(home / "vectors"), "v1", RECIPE.embedding),
        "keywords": TantivyKeywordIndex(home / "keywords", RECIPE.chunker.version, heap_bytes=15_000_000),
    }
    bench.tools["v1"] = Tools(**{each.name: used.get(each.name) for each in fields(Tools)})  # type: ignore[arg-type] # a bench has no parser
    return bench


def main() -> None:
    """Index, delete, purge, look."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--revived", type=int, default=0, help="documents that come back before the purge")
    parser.add_argument("--s3", action="store_true")
    options = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="primer-purge-"))
    with drives(home, options.s3) as specs:
        bench = made(home, specs)
        paths = [f"d/{number}.md" for number in range(options.documents)]
        _put(bench, paths)
        print(f"{len(paths)} documents: {len(bench.objects())} objects, {_rows(bench)}", flush=True)  # noqa: T201
        for start in range(0, len(paths), A_SWEEP):
            for path in paths[start : start + A_SWEEP]:
                bench.sources[SOURCE].remove(path)
            bench.sync(SOURCE)
            bench.drain()
        revived = paths[:: max(1, len(paths) // options.revived)][: options.revived] if options.revived else []
        _put(bench, revived)
        began, cpu = time.monotonic(), time.process_time()
        figures = bench.purge()
        took, spent = time.monotonic() - began, time.process_time() - cpu
        tools = bench.tools["v1"]
        left = {
            "hits": len(bench.search("everyone")),
            "vector rows": sum(1 for _ in tools.vectors.row_ids()),
            "keyword rows": sum(1 for _ in tools.keywords.row_ids()),
            "cached vectors": tools.cache.size().vectors,
            "objects": len(bench.objects()),
            **_rows(bench),
        }
        print(f"purged in {took:.0f} s, {spent * 1000 / len(paths):.2f} CPU ms a document: {dict(figures)}")  # noqa: T201
        print(f"left: {left}")  # noqa: T201
        if revived:
            print(f"of {len(revived)} revived, not whole: {_not_whole(bench, revived)}")  # noqa: T201


def _words(path: str) -> str:
    return f"What only {path} says."


def _put(bench: CopiesBench, paths: Sequence[str]) -> None:
    """Let documents be in the source, and index them."""
    for start in range(0, len(paths), A_SWEEP):
        for path in paths[start : start + A_SWEEP]:
            bench.put(SOURCE, path, _words(path))
        bench.sync(SOURCE)
        bench.drain()


def _not_whole(bench: CopiesBench, paths: Sequence[str]) -> list[str]:
    """Those that no search finds, or whose bytes or passages are not there."""
    found = {result.path for result in bench.search("everyone")}
    store, target = bench.store.of(TENANT), bench.home / "fetched"
    missing = []
    for path in paths:
        data = _words(path).encode()
        store.fetch_content(content_hash(data), target)
        passages = store.get_chunks(content_hash(data), RECIPE.parser.version, RECIPE.chunker.version)
        if path not in found or target.read_bytes() != data or [chunk.text for chunk in passages] != [data.decode()]:
            missing.append(path)
        target.unlink()
    return missing


def _rows(bench: CopiesBench) -> dict[str, int]:
    with bench.catalog.database.read() as connection:
        return {
            table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
            for table in (contents, stored_states, freed_objects, purges, purge_proofs)
        }


if __name__ == "__main__":
    main()
