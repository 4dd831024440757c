"""Identity: how every thing in Primer gets its key. Pure functions; the formats are stored and must never change.

All ids are lower-case hex, so that no tokenizer can split them. Composite keys are length-prefixed before they
are hashed, so that ("ab", "c") and ("a", "bc") never meet. The first part names the kind of thing, so that
two kinds never share a key.
"""

import hashlib
from collections.abc import Sequence

ID_HEX = 32
"""128 bits: among 1.2e8 chunks the chance of one collision is about 2e-23."""


def _digest(kind: str, parts: Sequence[str]) -> str:
    sha = hashlib.sha256()
    for part in (kind, *parts):
        raw = part.encode("utf-8", "surrogatepass")
        sha.update(len(raw).to_bytes(8, "big"))
        sha.update(raw)
    return sha.hexdigest()


def content_hash(data: bytes) -> str:
    """SHA-256 of a document's bytes, 64 hex digits."""
    return hashlib.sha256(data).hexdigest()


EMPTY_CONTENT = content_hash(b"")
"""The content of a file without bytes, of which no object is stored."""


def source_id(tenant_id: str, name: str) -> str:
    """Key of a source, from its tenant and the name that people gave it."""
    return _digest("source", (tenant_id, name))[:ID_HEX]


def doc_id(source: str, native_key: str) -> str:
    """Key of a document for life, from its source and the key under which the source first showed it.

    A rename keeps the doc_id. Where a second document appears under a key that a renamed one still owns,
    the connector passes a further native key (the path and a count).
    """
    return _digest("document", (source, native_key))[:ID_HEX]


def acl_id(tenant_id: str, source: str, scope: str) -> str:
    """Key of an ACL row. `scope` is the place that grants the access (a folder, a space), not the groups.

    So re-sharing a folder changes one row's groups and no id.
    """
    return _digest("acl", (tenant_id, source, scope))[:ID_HEX]


def event_id(source: str, fields: Sequence[str]) -> str:
    """Key of an event whose sender gave it none: all that it tells, so that the same event told again is the same event."""
    return _digest("event", (source, *fields))[:ID_HEX]


def recipe_key(version: str) -> str:
    """Short key of a parser's or chunker's version string, fit for an object key."""
    return _digest("recipe", (version,))[:ID_HEX]


def chunk_key(heading_path: Sequence[str], overlap: str, text: str) -> str:
    """What shapes a chunk, whatever document it stands in: heading path, overlap and text.

    Page and order are not in it, so an insert at the top of a document renames nobody.
    """
    return _digest("chunk", (str(len(heading_path)), *heading_path, overlap, text))[:ID_HEX]


def chunk_id(canonical_doc_id: str, key: str, occurrence: int) -> str:
    """Key of a chunk in a document. `occurrence` counts equal chunks in document order from 0."""
    return _digest("document chunk", (canonical_doc_id, key, str(occurrence)))[:ID_HEX]


def row_id(chunk: str, added_gen: int) -> str:
    """Key of an index row. Rows are immutable: a chunk that comes back is a new row under a newer generation."""
    return f"{chunk}:{added_gen}"


def chunk_of(row: str) -> str:
    """The chunk that an index row is of."""
    return row.partition(":")[0]


def embedding_key(model_key: str, text: str) -> str:
    """Key of a vector: everything about the model that shapes it (see EmbeddingSpec.version) and the exact string sent."""
    return _digest("embedding", (model_key, text))[:ID_HEX]
