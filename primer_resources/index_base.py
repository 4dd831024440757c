"""What the two indexes share: the row, the scope filter, the hit, and the ports."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from primer_core.upkeep import UpkeepResult
from primer_resources.embedder.base import Vector


@dataclass(frozen=True, slots=True)
class IndexRow:
    """One immutable row, for both indexes. `vector` has shape (dims,); `text` is what the keyword index searches and does not store."""

    row_id: str
    chunk_id: str
    added_gen: int
    tenant_id: str
    library: str
    doc_id: str
    acl_ids: tuple[str, ...]
    heading_path: tuple[str, ...]
    page: int | None
    ordinal: int
    text: str
    vector: Vector | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """What a search may see: one tenant, and the ACL ids that the person's groups open. No ids means nothing is seen.
    `libraries` narrows further; None is all of them."""

    tenant_id: str
    acl_ids: frozenset[str]
    libraries: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """A row that matched, before the gate. `score` grows with relevance: the cosine similarity in the vector index; in the keyword index
    the share of the query's words that the row holds, each weighed by its rarity, which repeated words may lift above 1."""

    row_id: str
    chunk_id: str
    added_gen: int
    doc_id: str
    score: float


@dataclass(frozen=True, slots=True)
class IndexFigures:
    """Rows, the bytes of data and index files, and the rows that stand outside an index which the table has."""

    rows: int
    bytes: int
    unindexed_rows: int


class VectorIndex(Protocol):
    """The vector index of one index version. One writer a lane; `write` and `delete` are one commit each."""

    def write(self, rows: Sequence[IndexRow]) -> None:
        """Add rows (upsert by row_id, so a replay is a no-op). Every row needs its vector."""
        ...

    def delete(self, row_ids: Sequence[str]) -> None:
        """Delete rows; ids that are not there are passed over."""
        ...

    def search(self, vector: Vector, scope: Scope, limit: int) -> list[Hit]:
        """Best hits first, on a handle refreshed in this call."""
        ...

    def present(self, row_ids: Sequence[str]) -> set[str]:
        """Those of these rows that are there, looked for on a handle refreshed in this call."""
        ...

    def row_ids(self) -> Iterator[str]:
        """All row ids, streamed, unordered."""
        ...

    def figures(self, now: datetime) -> IndexFigures:
        """How large it is now."""
        ...

    def drop(self) -> None:
        """Remove the whole index, files and all; one that is not there is passed over."""
        ...

    def upkeep(self, now: datetime) -> UpkeepResult:
        """Compact, index and clean up if due. Apart from the write path; a failure is in the result, never raised."""
        ...


class KeywordIndex(Protocol):
    """The keyword index of one index version, all its shards."""

    def write(self, bucket: str, rows: Sequence[IndexRow]) -> None:
        """Delete-by-term and add, one commit on the bucket's shard. Raises Transient when another writer holds the shard."""
        ...

    def delete(self, bucket: str, row_ids: Sequence[str]) -> None:
        """Delete rows, one commit; ids that are not there are passed over."""
        ...

    def search(self, text: str, scope: Scope, limit: int) -> list[Hit]:
        """Best hits first over all shards, on searchers reloaded in this call. Any string is a query; none raises."""
        ...

    def present(self, bucket: str, row_ids: Sequence[str]) -> set[str]:
        """Those of these rows that are in the bucket's shard, looked for on a searcher reloaded in this call."""
        ...

    def row_ids(self, buckets: Iterable[str] | None = None) -> Iterator[str]:
        """All row ids of the given buckets' shards (all shards when None), streamed, unordered."""
        ...

    def size(self) -> int:
        """Bytes of all shards."""
        ...

    def drop(self) -> None:
        """Remove the whole index, files and all; one that is not there is passed over."""
        ...

    def close(self) -> None:
        """End the writers and let their merges finish."""
        ...
