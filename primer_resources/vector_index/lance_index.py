"""The vector index on LanceDB: rows in, scoped nearest neighbours out. Imports lancedb, so it is imported inside steps only."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from random import Random
from typing import cast

import numpy as np
import pyarrow as pa
from lancedb.index import Bitmap, BTree, LabelList
from lancedb.query import LanceVectorQueryBuilder
from lancedb.table import Table

from primer_core.failures import PrimerError
from primer_core.recipe import EmbeddingSpec
from primer_core.upkeep import UpkeepResult
from primer_resources.embedder.base import Vector
from primer_resources.index_base import Hit, IndexFigures, IndexRow, Scope
from primer_resources.lance_tables import ScalarIndex, StampedTable, slices, sql_list, sql_text

MERGE_ROWS = 5_000
"""Rows a commit: 17,500 rows/s at 10,000, 12,900 at 1,000, 5,900 at 100; larger slices only hold more memory."""
LISTED_IDS = 10_000
"""Ids a batch of `row_ids`."""
LOOKED_UP_IDS = 1_000
"""Ids a look-up: the IN list of one query."""
KEY_INDEX_FROM_ROWS = 200_000
"""Where the BTREE on row_id begins to pay. Below it a merge that scans is as fast, and by the primary key it keeps two writers of
one row apart, which the indexed merge of Lance 13 does not (lance issues 4585 and 8949)."""
FILTER_INDEX_FROM_ROWS = 10_000
"""Where the indexes behind the scope filter begin to pay: at 50,000 rows they took a search from 64 to 28 ms."""
HIT_FIELDS = ["row_id", "chunk_id", "added_gen", "doc_id"]
MUTABLE_FIELDS = ("tenant_id", "library", "doc_id", "acl_ids")
"""What a second write of a row may change (a document that moves to another ACL). Everything else is in the row's identity,
and comparing it would rewrite rows, vectors and all, on each replay."""


def index_schema(dims: int) -> pa.Schema:
    """The table's columns. acl_ids is never null: no list and an empty list must not be mixed up."""
    return pa.schema(
        [
            pa.field("row_id", pa.string(), nullable=False, metadata={"lance-schema:unenforced-primary-key": "true"}),
            pa.field("chunk_id", pa.string(), nullable=False),
            pa.field("added_gen", pa.int64(), nullable=False),
            pa.field("tenant_id", pa.string(), nullable=False),
            pa.field("library", pa.string(), nullable=False),
            pa.field("doc_id", pa.string(), nullable=False),
            pa.field("acl_ids", pa.list_(pa.string()), nullable=False),
            pa.field("vector", pa.list_(pa.float32(), dims), nullable=False),
            pa.field("heading_path", pa.list_(pa.string()), nullable=False),
            pa.field("page", pa.int32()),
            pa.field("ordinal", pa.int32(), nullable=False),
            pa.field("near_dup_group", pa.string()),
        ]
    )


def _indexes(key_from: int, filter_from: int) -> tuple[ScalarIndex, ...]:
    # The place for the vector column's own index (IVF_RQ builds 13 times faster than IVF_PQ): wanted above about 200,000 rows, where a
    # flat scan passes 0.5 s, and only with a measured recall. `_nearest` then also wants a refine factor.
    return (
        ScalarIndex("row_id", BTree(), key_from),
        ScalarIndex("doc_id", BTree(), key_from),
        ScalarIndex("tenant_id", Bitmap(), filter_from),
        ScalarIndex("library", Bitmap(), filter_from),
        ScalarIndex("acl_ids", LabelList(), filter_from),
    )


def _matrix(rows: Sequence[IndexRow], dims: int) -> Vector:
    """The rows' vectors, shape (len(rows), dims). LanceDB takes a missing, misshapen or NaN vector without a word and never finds it."""
    for row in rows:
        if row.vector is None:
            raise PrimerError(f"row {row.row_id} has no vector; embed its text before it is written")
        if row.vector.shape != (dims,):
            raise PrimerError(f"row {row.row_id} has a vector of shape {row.vector.shape}; the index takes ({dims},)")
    with np.errstate(over="ignore"):
        matrix = np.stack([cast(Vector, row.vector) for row in rows]).astype(np.float32, copy=False)
    usable = np.isfinite(matrix).all(axis=1) & matrix.any(axis=1)
    if not usable.all():
        row = rows[int(np.argmin(usable))]
        raise PrimerError(f"row {row.row_id} has a vector that is all zeros or not finite; embed its text again")
    return matrix


def _well_formed(text: str) -> str:
    """Text that UTF-8 can hold: a lone surrogate becomes a question mark."""
    return text.encode("utf-8", "replace").decode()


def to_arrow(rows: Sequence[IndexRow], dims: int) -> pa.Table:
    """Rows as an Arrow table of `index_schema`. Raises PrimerError for a vector that could not be searched."""
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(_matrix(rows, dims).reshape(-1)), dims)
    return pa.table(
        {
            "row_id": [row.row_id for row in rows],
            "chunk_id": [row.chunk_id for row in rows],
            "added_gen": [row.added_gen for row in rows],
            "tenant_id": [row.tenant_id for row in rows],
            "library": [row.library for row in rows],
            "doc_id": [row.doc_id for row in rows],
            "acl_ids": [sorted(set(row.acl_ids)) for row in rows],
            "vector": vectors,
            "heading_path": [[_well_formed(heading) for heading in row.heading_path] for row in rows],
            "page": [row.page for row in rows],
            "ordinal": [row.ordinal for row in rows],
            "near_dup_group": [None] * len(rows),
        },
        schema=index_schema(dims),
    )


def scope_filter(scope: Scope) -> str:
    """A scope as SQL. The caller has dealt with scopes that see nothing."""
    parts = [f"tenant_id = {sql_text(scope.tenant_id)}", f"array_has_any(acl_ids, [{sql_list(sorted(scope.acl_ids))}])"]
    if scope.libraries is not None:
        parts.append(f"library IN ({sql_list(sorted(scope.libraries))})")
    return " AND ".join(parts)


class LanceVectorIndex:
    """VectorIndex over one LanceDB table, `name`, under `uri` (a folder or s3://…, credentials in `storage_options`).

    Writers of different buckets may write at once; one bucket has one writer, by its lane lease.
    """

    def __init__(
        self,
        uri: str,
        name: str,
        spec: EmbeddingSpec,
        storage_options: Mapping[str, str] | None = None,
        key_index_from_rows: int = KEY_INDEX_FROM_ROWS,
        filter_index_from_rows: int = FILTER_INDEX_FROM_ROWS,
        sleep: Callable[[float], None] = time.sleep,
        random: Random | None = None,
    ) -> None:
        self._dims = spec.dims
        indexes = _indexes(key_index_from_rows, filter_index_from_rows)
        self._table = StampedTable(uri, name, spec.version, indexes, storage_options, sleep, random)

    def write(self, rows: Sequence[IndexRow]) -> None:
        """Add rows, at most MERGE_ROWS a commit; a row that is there already changes only in MUTABLE_FIELDS.

        Of rows with one row_id the last counts. Raises PrimerError for a vector that could not be searched or a table of another model,
        Transient when other writers' commits keep coming first, SystemFault when the store fails.
        """
        unique = list({row.row_id: row for row in rows}.values())
        if not unique:
            return
        batch = to_arrow(unique, self._dims)
        table = self._table.open_or_create(index_schema(self._dims))
        for start in range(0, len(unique), MERGE_ROWS):
            self._table.commit(table, partial(self._merge, batch.slice(start, MERGE_ROWS)))

    @staticmethod
    def _merge(part: pa.Table, table: Table) -> None:
        changed = " OR ".join(f"target.{field} != source.{field}" for field in MUTABLE_FIELDS)
        table.merge_insert("row_id").when_matched_update_all(where=changed).when_not_matched_insert_all().execute(part)

    def delete(self, row_ids: Sequence[str]) -> None:
        """Delete rows; ids that are not there are passed over. Raises Transient and SystemFault as `write` does."""
        self._table.delete("row_id", row_ids)

    def search(self, vector: Vector, scope: Scope, limit: int) -> list[Hit]:
        """Nearest rows within the scope, best first, at the newest version. `score` is the cosine similarity, −1 … 1.

        Raises PrimerError when the vector is not of shape (dims,) or not finite.
        """
        if vector.shape != (self._dims,) or not np.isfinite(vector).all():
            raise PrimerError(f"the query's vector of shape {vector.shape} must be finite and of shape ({self._dims},); embed it again")
        if limit < 1 or not scope.acl_ids or (scope.libraries is not None and not scope.libraries):
            return []
        return self._table.read(lambda table: self._nearest(table, vector, scope, limit)) or []

    @staticmethod
    def _nearest(table: Table, vector: Vector, scope: Scope, limit: int) -> list[Hit]:
        query = cast(LanceVectorQueryBuilder, table.search(vector, vector_column_name="vector", query_type="vector"))
        query = query.distance_type("cosine").where(scope_filter(scope), prefilter=True).select([*HIT_FIELDS, "_distance"]).limit(limit)
        found = query.to_arrow().to_pylist()
        hits = [Hit(row["row_id"], row["chunk_id"], row["added_gen"], row["doc_id"], 1.0 - row["_distance"]) for row in found]
        return sorted(hits, key=lambda hit: (-hit.score, hit.row_id))

    def present(self, row_ids: Sequence[str]) -> set[str]:
        """Those of these rows that are there, at the newest version."""
        found: set[str] = set()
        for part in slices(dict.fromkeys(row_ids), LOOKED_UP_IDS):
            found.update(self._table.read(partial(self._present, part)) or ())
        return found

    @staticmethod
    def _present(part: Sequence[str], table: Table) -> list[str]:
        ids = table.search().where(f"row_id IN ({sql_list(part)})").select(["row_id"]).to_arrow().column("row_id").to_pylist()
        return [str(row_id) for row_id in ids]

    def row_ids(self) -> Iterator[str]:
        """All row ids of one version of the table, streamed; the id column is all that is read."""
        batches = self._table.read(lambda table: table.search().select(["row_id"]).to_batches(LISTED_IDS))
        for batch in batches or ():
            yield from batch.column("row_id").to_pylist()

    def upkeep(self, now: datetime) -> UpkeepResult:
        """Compact, index and clean up if due at `now` (aware). Apart from the write path; a failure is in the result, never raised."""
        return self._table.upkeep(now)

    def figures(self, now: datetime) -> IndexFigures:
        """How large the table is at `now` (aware). Reads every version's manifest."""
        rows, size = self._table.size()
        stats = self._table.stats(now)
        return IndexFigures(rows, size, 0 if stats is None else stats.unindexed_rows)

    def drop(self) -> None:
        """Remove the whole index."""
        self._table.drop()
