"""The document store: source bytes, parsed documents, chunk sets and pictures of pages to review, each under the hash of what made it.

Objects are written by create-only put and never changed. Formats are what the ecosystem reads: bytes as they came,
DoclingDocument JSON (zstd), elements and chunk sets as Parquet.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import LocalStore

from primer_core.chunks import Chunk
from primer_core.elements import Element, ElementKind, ParsedDocument
from primer_core.failures import SystemFault
from primer_core.ids import recipe_key

if TYPE_CHECKING:
    from obstore.store import ObjectStore

READ_BYTES = 1 << 20
_PAGES = b"primer.pages"
_REVIEWS = "reviews"
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


class DocumentStore:
    """Bodies by key. Raises SystemFault where the store itself fails: no document is to blame for that."""

    def __init__(self, store: "ObjectStore", place: str) -> None:
        self._store = store
        self._place = place

    @staticmethod
    def at_folder(folder: Path) -> "DocumentStore":
        """A store in a local folder, made where it is missing."""
        folder.mkdir(parents=True, exist_ok=True)
        return DocumentStore(LocalStore(prefix=folder), str(folder))

    @staticmethod
    def content_key(content_hash: str) -> str:
        """The key of a content's source bytes."""
        return _content_key(content_hash)

    def put_content(self, path: Path, content_hash: str) -> str:
        """Store a file's bytes. Returns the object's key; bytes that are there already are left."""
        key = _content_key(content_hash)
        if not self._exists(key):
            self._create(key, path)
        return key

    def fetch_content(self, content_hash: str, target: Path) -> None:
        """Copy source bytes to a private file, checking the hash on the way. Raises SystemFault where they are gone or differ."""
        key = _content_key(content_hash)
        sha = hashlib.sha256()
        try:
            with target.open("wb") as out:
                for part in obstore.get(self._store, key).stream(min_chunk_size=READ_BYTES):
                    sha.update(part)
                    out.write(part)
        except (FileNotFoundError, BaseError) as error:
            raise SystemFault(f"object {key} in store {self._place} cannot be read: {_first_line(error)}") from error
        if sha.hexdigest() != content_hash:
            raise SystemFault(f"object {key} in store {self._place} holds other bytes than its name says; restore it from a backup")

    def put_parsed(self, content_hash: str, parser_version: str, parsed: ParsedDocument) -> None:
        """Store a parsed document: the elements last, so that they prove the document beside them."""
        folder = _parsed_key(content_hash, parser_version)
        rows = [asdict(element) for element in parsed.elements]
        schema = _ELEMENTS.with_metadata({_PAGES: b"" if parsed.pages is None else str(parsed.pages).encode()})
        self._create(f"{folder}/document.json.zst", parsed.docling_json_zst)
        if parsed.metadata:
            self._create(f"{folder}/metadata.json", json.dumps(dict(parsed.metadata), ensure_ascii=False).encode())
        self._create(f"{folder}/elements.parquet", _to_parquet(rows, schema))

    def has_parsed(self, content_hash: str, parser_version: str) -> bool:
        """Whether the content was parsed by this parser version, whole."""
        return self._exists(f"{_parsed_key(content_hash, parser_version)}/elements.parquet")

    def get_parsed(self, content_hash: str, parser_version: str) -> ParsedDocument:
        """A parsed document. Raises SystemFault where it is gone or damaged."""
        folder = _parsed_key(content_hash, parser_version)
        table = self._table(f"{folder}/elements.parquet")
        pages = table.schema.metadata[_PAGES].decode()
        elements = tuple(Element(**(row | {"kind": ElementKind(row["kind"])})) for row in table.to_pylist())
        described = f"{folder}/metadata.json"
        metadata = json.loads(self._get(described)) if self._exists(described) else {}
        return ParsedDocument(elements, int(pages) if pages else None, self._get(f"{folder}/document.json.zst"), metadata)

    def get_document(self, content_hash: str, parser_version: str) -> bytes:
        """A parsed content's DoclingDocument, zstd-compressed JSON, without its elements. Raises SystemFault where it is gone."""
        return self._get(f"{_parsed_key(content_hash, parser_version)}/document.json.zst")

    def put_chunks(self, content_hash: str, parser_version: str, chunker_version: str, chunks: Iterable[Chunk]) -> None:
        """Store a chunk set."""
        self._create(_chunks_key(content_hash, parser_version, chunker_version), _to_parquet([asdict(c) for c in chunks], _CHUNKS))

    def has_chunks(self, content_hash: str, parser_version: str, chunker_version: str) -> bool:
        """Whether the chunk set is there."""
        return self._exists(_chunks_key(content_hash, parser_version, chunker_version))

    def get_chunks(self, content_hash: str, parser_version: str, chunker_version: str) -> tuple[Chunk, ...]:
        """A chunk set, in order. Raises SystemFault where it is gone or damaged."""
        table = self._table(_chunks_key(content_hash, parser_version, chunker_version))
        lists = ("heading_path", "pages")
        return tuple(Chunk(**(row | {name: tuple(row[name]) for name in lists})) for row in table.to_pylist())

    def put_picture(self, content_hash: str, parser_version: str, page: int, region: int, png: bytes) -> str:
        """Store the picture of a page to review, or of a region of it. Returns the object's key."""
        key = f"{_REVIEWS}/{content_hash[:2]}/{content_hash}/{recipe_key(parser_version)}/{page}-{region}.png"
        self._create(key, png)
        return key

    def get_picture(self, key: str) -> bytes:
        """A picture by its key. Raises SystemFault where it is gone."""
        return self._get(key)

    def locate(self, key: str) -> str:
        """Where an object is, for people: a path in a local store."""
        return f"{self._place}/{key}"

    def _exists(self, key: str) -> bool:
        try:
            obstore.head(self._store, key)
        except FileNotFoundError:
            return False
        except BaseError as error:
            raise SystemFault(f"store {self._place}: {_first_line(error)}") from error
        return True

    def _get(self, key: str) -> bytes:
        try:
            return bytes(obstore.get(self._store, key).bytes())
        except (FileNotFoundError, BaseError) as error:
            raise SystemFault(f"object {key} in store {self._place} cannot be read: {_first_line(error)}") from error

    def _table(self, key: str) -> pa.Table:
        try:
            return pq.read_table(pa.BufferReader(self._get(key)))
        except (pa.ArrowInvalid, OSError) as error:
            raise SystemFault(f"object {key} in store {self._place} is damaged ({_first_line(error)}); restore it from a backup") from error

    def _create(self, key: str, body: bytes | Path) -> None:
        try:
            obstore.put(self._store, key, body, mode="create")
        except AlreadyExistsError:
            return
        except (OSError, BaseError) as error:
            raise SystemFault(f"store {self._place} cannot keep {key}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    """The library's message without its dump of internals."""
    return str(error).partition("\n")[0]


def _content_key(content_hash: str) -> str:
    return f"blobs/{content_hash[:2]}/{content_hash}"


def _parsed_key(content_hash: str, parser_version: str) -> str:
    return f"parsed/{content_hash[:2]}/{content_hash}/{recipe_key(parser_version)}"


def _chunks_key(content_hash: str, parser_version: str, chunker_version: str) -> str:
    return f"chunks/{content_hash[:2]}/{content_hash}/{recipe_key(parser_version)}/{recipe_key(chunker_version)}.parquet"


def _to_parquet(rows: list[dict[str, Any]], schema: pa.Schema) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), sink, compression="zstd")
    return bytes(sink.getvalue())
