"""What keeping and reading a document's bodies costs through manifests, against the same objects put and read with no catalog at all.

usage: document_store.py [--documents 300] [--database URL] [--drive s3://BUCKET/PREFIX --endpoint URL --credentials REF]
CPU seconds and seconds a document of this process, for source bytes, a parse and a chunk set: kept, found to be kept, and read. Drives are
in a temporary folder, or below a prefix of a bucket; the catalog is SQLite in that folder, or an empty database at a URL.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random, SystemRandom

from primer_core.chunks import Chunk
from primer_core.drives import DriveSpec
from primer_core.elements import Element, ElementKind, ParsedDocument
from primer_core.ids import content_hash
from primer_core.lanes import Lane
from primer_core.stored_states import DriveKind
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.tenants import Tenant
from primer_resources.clock import SystemClock
from primer_resources.document_store import Arrived, DocumentStore
from primer_resources.document_store.drives import TenantDrives
from primer_resources.document_store.opening import open_drive, set_up_drive
from primer_resources.document_store.parts import chunks_body, parsed_bodies, suffix, to_chunks

TENANT, PARSER, CHUNKER, RUN = "bench", "docling 2", "hybrid 1", "bench"
PASSAGES = 12
"""About what a document of five pages gives."""
WORDS = ["the", "harbour", "of", "district", "seven", "is", "looked", "after", "by", "crew", "twelve", "and", "inspected", "every", "week"]


def _document(number: int) -> tuple[bytes, ParsedDocument, tuple[Chunk, ...]]:
    """Source bytes (20 kB), a parse of 60 elements (15 kB compressed) and its passages."""
    random = Random(number)
    texts = [" ".join(random.choices(WORDS, k=150)) for _ in range(PASSAGES)]
    chunks = tuple(Chunk(n, ("Guide", f"Part {n}"), "", text, f"Guide > Part {n}\n{text}", (n,), 200) for n, text in enumerate(texts))
    elements = tuple(Element(n, ElementKind.PARAGRAPH, " ".join(random.choices(WORDS, k=30)), None, n // 12) for n in range(60))
    return random.randbytes(20_000), ParsedDocument(elements, 5, random.randbytes(15_000), {"title": f"Guide {number}"}), chunks


def _measure(name: str, count: int, work: Callable[[int], object]) -> None:
    """Do it for each document, and print what one costs."""
    cpu, began = time.process_time(), time.monotonic()
    for number in range(count):
        work(number)
    used, wall = (time.process_time() - cpu) / count, (time.monotonic() - began) / count
    print(f"{name:<44} {used * 1e3:7.2f} CPU ms {wall * 1e3:7.2f} ms a document")  # noqa: T201


def _run(count: int, database: str, specs: dict[DriveKind, DriveSpec], folder: Path) -> None:
    catalog = Catalog(database, SystemClock(), SystemRandom())
    catalog.database.migrate()
    catalog.deployments.create(8)
    catalog.tenants.add(TENANT, specs)
    for spec in specs.values():
        set_up_drive(spec, folder)
    drives = TenantDrives(lambda _: Tenant(TENANT, True, specs), SystemClock(), lambda spec: open_drive(spec, folder))
    store = DocumentStore(catalog.contents, catalog.states, drives, SystemClock(), SystemRandom()).of(TENANT)
    made = [_document(number) for number in range(count)]
    hashes = [content_hash(source) for source, _, _ in made]
    files: list[Arrived] = []
    for (source, _, _), sha256 in zip(made, hashes, strict=True):
        path = folder / "sources" / sha256
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(source)
        files.append(Arrived(path, sha256, len(source), "text/plain", Lane.FAST))

    def direct_parse(number: int) -> None:
        for key, body in parsed_bodies(made[number][1]).items():
            drive.create(f"direct/{hashes[number]}/{key[0]}{key[1]}.{suffix(key)}", body)

    drive = store.pipeline.drive
    figures: Sequence[tuple[str, Callable[[int], object]]] = (
        ("source bytes, put directly", lambda n: store.intake.create(f"direct/{hashes[n]}", files[n].path)),
        ("source bytes, kept", lambda n: store.keep(files[n])),
        ("source bytes, kept again", lambda n: store.keep(files[n])),
        ("parse (3 objects), put directly", direct_parse),
        ("parse (3 objects), kept", lambda n: store.put_parsed(hashes[n], PARSER, made[n][1], RUN)),
        ("parse (3 objects), kept again", lambda n: store.put_parsed(hashes[n], PARSER, made[n][1], RUN)),
        ("chunk set, put directly", lambda n: drive.create(f"direct/{hashes[n]}/chunks.parquet", chunks_body(made[n][2]))),
        ("chunk set, kept", lambda n: store.put_chunks(hashes[n], PARSER, CHUNKER, made[n][2], RUN)),
        ("chunk set, looked for", lambda n: store.has_chunks(hashes[n], PARSER, CHUNKER)),
        ("chunk set, read directly", lambda n: to_chunks(drive.get(f"direct/{hashes[n]}/chunks.parquet"))),
        ("chunk set, read", lambda n: store.get_chunks(hashes[n], PARSER, CHUNKER)),
        ("parse, read", lambda n: store.get_parsed(hashes[n], PARSER)),
    )
    for name, work in figures:
        _measure(name, count, work)
    catalog.close()


def main() -> None:
    """Keep and read documents of the bench's own making."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=300)
    parser.add_argument("--database", help="SQLAlchemy URL of an empty database; SQLite in the temporary folder when left out.")
    parser.add_argument("--drive", help="s3://BUCKET/PREFIX below which both drives lie; the temporary folder when left out.")
    parser.add_argument("--endpoint", default="", help="The address of a store that is not Amazon's.")
    parser.add_argument("--credentials", help="Where its keys are: env:NAME or file:/PATH.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="primer-bench-") as name:
        folder = Path(name)
        root = options.drive or str(folder)
        specs = {kind: DriveSpec(f"{root}/{kind}", "", options.endpoint, options.credentials) for kind in DriveKind}
        _run(options.documents, options.database or f"sqlite:///{folder / 'catalog.sqlite'}", specs, folder)


if __name__ == "__main__":
    main()
