"""The embedding cache on LanceDB: one table a model. Imports lancedb, so it is imported inside steps only."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import partial

import numpy as np
import pyarrow as pa
from lancedb.index import BTree
from lancedb.table import Table

from primer_core.failures import PrimerError
from primer_core.upkeep import UpkeepResult
from primer_resources.embedder.base import CacheSize, Vector
from primer_resources.lance_tables import ScalarIndex, StampedTable, short_name, slices, sql_list

LOOKUP_KEYS = 1_000
"""Keys a look-up: the IN list of one query."""
INDEX_FROM_ROWS = 10_000
"""Where the BTREE on the key begins to pay: at 50,000 keys it took a look-up of 1,000 from 45 to 8 ms."""


def _schema(dims: int) -> pa.Schema:
    return pa.schema([pa.field("key", pa.string(), nullable=False), pa.field("vector", pa.list_(pa.float32(), dims), nullable=False)])


def _found(keys: Iterable[str], columns: list[str], table: Table) -> pa.Table:
    return table.search().where(f"key IN ({sql_list(keys)})").select(columns).to_arrow()


class LanceEmbeddingCache:
    """EmbeddingCache of one model, `model_key` (EmbeddingSpec.version), under `uri` (a folder or s3://…, then with `storage_options`)."""

    def __init__(
        self, uri: str, model_key: str, storage_options: Mapping[str, str] | None = None, index_from_rows: int = INDEX_FROM_ROWS
    ) -> None:
        indexes = (ScalarIndex("key", BTree(), index_from_rows),)
        self._table = StampedTable(uri, f"vectors-{short_name(model_key)}", model_key, indexes, storage_options)

    def get(self, keys: Iterable[str]) -> dict[str, Vector]:
        """The vectors that are there, shape (dims,) each; keys that are not there are left out."""
        vectors: dict[str, Vector] = {}
        for part in slices(dict.fromkeys(keys), LOOKUP_KEYS):
            found = self._table.read(partial(_found, part, ["key", "vector"]))
            if found is None:
                return {}
            if found.num_rows:
                matrix = found.column("vector").combine_chunks().flatten().to_numpy().reshape(found.num_rows, -1)
                vectors.update(zip(found.column("key").to_pylist(), matrix, strict=True))
        return vectors

    def known(self, keys: Iterable[str]) -> set[str]:
        """The keys that are there; no vector is read."""
        there: set[str] = set()
        for part in slices(dict.fromkeys(keys), LOOKUP_KEYS):
            found = self._table.read(partial(_found, part, ["key"]))
            if found is None:
                return set()
            there.update(found.column("key").to_pylist())
        return there

    def put(self, vectors: Mapping[str, Vector]) -> None:
        """Keep the vectors whose keys are new, in one commit. Two processes that keep a key at once leave it twice, which is harmless.

        Raises PrimerError for vectors of differing shapes or with values that are not finite, Transient and SystemFault as the index does.
        """
        if not vectors:
            return
        dims = len(next(iter(vectors.values())))
        for key, vector in vectors.items():
            if vector.shape != (dims,) or not np.isfinite(vector).all():
                raise PrimerError(f"vector {key} (shape {vector.shape}) must be finite and of shape ({dims},); embed its text again")
        table = self._table.open_or_create(_schema(dims))
        if (held := table.schema.field("vector").type.list_size) != dims:
            raise PrimerError(f"the cache of this model holds vectors of {held} dims, not {dims}; a change of dims is a new model version")
        there: set[str] = set()
        for part in slices(vectors, LOOKUP_KEYS):
            there.update(_found(part, ["key"], table).column("key").to_pylist())
        new = [key for key in vectors if key not in there]
        if new:
            matrix = np.stack([vectors[key] for key in new]).astype(np.float32, copy=False)
            column = pa.FixedSizeListArray.from_arrays(pa.array(matrix.reshape(-1)), dims)
            batch = pa.table({"key": new, "vector": column}, schema=_schema(dims))
            self._table.commit(table, lambda latest: latest.add(batch))

    def delete(self, keys: Iterable[str]) -> None:
        """Forget vectors, so that nothing of a purged text is left; keys that are not there are passed over."""
        self._table.delete("key", keys)

    def size(self) -> CacheSize:
        """How much is held."""
        return CacheSize(*self._table.size())

    def upkeep(self, now: datetime) -> UpkeepResult:
        """Compact, index and clean up if due at `now` (aware). A failure is in the result, never raised."""
        return self._table.upkeep(now)

    def drop(self) -> None:
        """Remove the model's cache."""
        self._table.drop()
