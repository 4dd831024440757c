"""What a body looks like on a drive. Formats are what the ecosystem reads: DoclingDocument JSON (zstd), JSON, and Parquet for elements and
chunk sets, so that `polars.scan_parquet` works on the drive itself."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from primer_core.chunks import Chunk
from primer_core.elements import Element, ElementKind, ParsedDocument
from primer_core.failures import SystemFault
from primer_core.part_keys import CORE, DOCUMENT, ELEMENTS
from primer_core.stored_states import Part, PartKey

PARSED = (CORE, DOCUMENT, ELEMENTS)
"""All that makes a parsed document."""
_PAGES = b"primer.pages"
_SUFFIXES = {Part.CORE: "json", Part.BLOBS: "bin", Part.CHUNKS: "parquet"}
_ELEMENTS = pa.schema(
    [
        ("order", pa.int32()),
        ("kind", pa.string()),
        ("text", pa.string()),
        ("level", pa.int32()),
        ("page", pa.int32()),
    ]
)
_CHUNKS = pa.schema(
    [
        ("ordinal", pa.int32()),
        ("heading_path", pa.list_(pa.string())),
        ("overlap", pa.string()),
        ("text", pa.string()),
        ("embed_text", pa.string()),
        ("pages", pa.list_(pa.int32())),
        ("token_count", pa.int32()),
        ("occurrence", pa.int32()),
    ]
)


class BodyDamaged(SystemFault):
    """A body is not in the format that its part has."""


def suffix(key: PartKey) -> str:
    """How the name of a part's object ends, without the dot."""
    if key[0] is Part.PARSED:
        return "json.zst" if key == DOCUMENT else "parquet"
    return "png" if key[0] is Part.BLOBS and key[1] else _SUFFIXES[key[0]]


def parsed_bodies(parsed: ParsedDocument) -> dict[PartKey, bytes]:
    """The bodies of a parsed document; b"" where there is nothing to keep: no elements on no pages, a file that tells nothing of itself."""
    rows = [asdict(element) for element in parsed.elements]
    schema = _ELEMENTS.with_metadata({_PAGES: b"" if parsed.pages is None else str(parsed.pages).encode()})
    elements = b"" if not rows and parsed.pages is None else _to_parquet(rows, schema)
    metadata = json.dumps(dict(parsed.metadata), ensure_ascii=False, sort_keys=True).encode() if parsed.metadata else b""
    return {DOCUMENT: parsed.docling_json_zst, ELEMENTS: elements, CORE: metadata}


def to_parsed(bodies: Mapping[PartKey, bytes]) -> ParsedDocument:
    """The parsed document of its bodies."""
    metadata = json.loads(bodies[CORE]) if bodies.get(CORE) else {}
    if not bodies[ELEMENTS]:
        return ParsedDocument((), None, bodies[DOCUMENT], metadata)
    table = pq.read_table(pa.BufferReader(bodies[ELEMENTS]))
    pages = table.schema.metadata[_PAGES].decode()
    elements = tuple(Element(**(row | {"kind": ElementKind(row["kind"])})) for row in table.to_pylist())
    return ParsedDocument(elements, int(pages) if pages else None, bodies[DOCUMENT], metadata)


def chunks_body(chunks: Iterable[Chunk]) -> bytes:
    """The body of a chunk set; b"" of one without chunks."""
    rows = [asdict(chunk) for chunk in chunks]
    return _to_parquet(rows, _CHUNKS) if rows else b""


def to_chunks(body: bytes) -> tuple[Chunk, ...]:
    """The chunk set of a body, in order. Raises BodyDamaged for one that is no Parquet."""
    if not body:
        return ()
    lists = ("heading_path", "pages")
    try:
        rows = pq.read_table(pa.BufferReader(body)).to_pylist()
    except pa.ArrowInvalid as error:
        raise BodyDamaged(f"a chunk set of {len(body)} bytes is no Parquet file; restore it from a backup") from error
    return tuple(Chunk(**(row | {name: tuple(row[name]) for name in lists})) for row in rows)


def _to_parquet(rows: list[dict[str, Any]], schema: pa.Schema) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), sink, compression="zstd")
    return bytes(sink.getvalue())
