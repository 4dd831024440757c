"""LanceDB tables as the vector index and the embedding cache both keep them: opening, the stamp, retried commits, upkeep.

Imports lancedb, so it is imported inside steps only. Processes that use it are spawned, never forked: the library's own
threads do not survive a fork.
"""

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar, cast

import lancedb
import obstore
import pyarrow as pa
from lancedb.index import Bitmap, BTree, LabelList
from lancedb.table import Table
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import LocalStore, from_url

from primer_core.failures import PrimerError, SystemFault, Transient
from primer_core.retry import RetryPolicy, compute_backoff, is_exhausted
from primer_core.upkeep import TableStats, UpkeepDecision, UpkeepResult, decide_upkeep

if TYPE_CHECKING:
    from obstore.store import ObjectStore

T = TypeVar("T")

STAMP = b"primer.model"
"""Key of the table's schema metadata that holds the version of the model behind its vectors."""
COMMIT_POLICY = RetryPolicy(max_attempts=4, base=timedelta(milliseconds=200), cap=timedelta(seconds=2))
"""Lance itself rebases 20 times before it gives up, so a few more rounds are enough to outlast a compaction."""
KEEP_VERSIONS = timedelta(hours=1)
"""A reader pinned to a version fails when its files go; no query or streamed listing runs longer than this."""
DELETE_KEYS = 5_000
"""Keys of one DELETE: parsing its list is what grows."""
LANCE = "lance error"
"""LanceDB raises a bare RuntimeError for everything that fails in its engine; these are the words that tell what it was."""
CONFLICTS = ("commit conflict", "too many concurrent writers")
GONE = "not found"
UNREACHED = "failed to connect"
STORE_OPTIONS = ("aws_", "azure_", "google_")
"""How the names of a store's own options begin; what is left of a table's storage options is for the HTTP client."""


@dataclass(frozen=True, slots=True)
class ScalarIndex:
    """An index that a table is to have on a column once it holds `from_rows` rows."""

    column: str
    config: BTree | Bitmap | LabelList
    from_rows: int


def sql_text(value: str) -> str:
    """A string as a SQL literal."""
    return "'" + value.replace("'", "''") + "'"


def sql_list(values: Iterable[str]) -> str:
    """Strings as the inside of a SQL list, comma-separated."""
    return ", ".join(sql_text(value) for value in values)


def slices(values: Iterable[T], size: int) -> Iterable[Sequence[T]]:
    """Cut `values` into lists of at most `size`."""
    rest = iter(values)
    while part := list(islice(rest, size)):
        yield part


def short_name(key: str) -> str:
    """A table name for any string, 16 hex digits."""
    return hashlib.sha256(key.encode()).hexdigest()[:16]


def _says(error: Exception, *words: str) -> bool:
    text = str(error).lower()
    return any(word in text for word in words)


def _delete_where(condition: str, table: Table) -> None:
    table.delete(condition)


def _figures(table: Table) -> dict[str, Any]:
    """The table's statistics: LanceDB 0.40 declares a dataclass and returns a dict."""
    return cast(dict[str, Any], table.stats())


class StampedTable:
    """One LanceDB table whose schema metadata says which model's vectors it holds.

    `uri` is a folder or an s3:// prefix. `storage_options` are the store's, aws_…, and its HTTP client's, such as allow_http.
    `sleep` and `random` space the retries of a commit. Raises SystemFault where the store does not answer, or refuses.
    """

    def __init__(
        self,
        uri: str,
        name: str,
        stamp: str,
        indexes: Sequence[ScalarIndex],
        storage_options: Mapping[str, str] | None = None,
        sleep: Callable[[float], None] = time.sleep,
        random: Random | None = None,
    ) -> None:
        self.name = name
        self._stamp = stamp
        self._indexes = tuple(indexes)
        self._sleep = sleep
        self._random = random or Random()
        self._uri = uri
        self._options = dict(storage_options or {})
        try:
            # An interval of zero makes every read follow other processes' commits.
            self._connection = lancedb.connect(uri, read_consistency_interval=timedelta(0), storage_options=self._options or None)
        except ValueError as error:
            if not _says(error, UNREACHED):
                raise
            raise SystemFault(
                f"the tables at {uri} cannot be reached; check the address, the bucket and its credentials: {error}"
            ) from error
        self._table: Table | None = None

    def open(self) -> Table | None:
        """The table, or None where it does not exist. Raises PrimerError when it holds another model's vectors."""
        if self._table is None:
            try:
                table = self._connection.open_table(self.name)
            except ValueError as error:
                if _says(error, GONE):
                    return None
                raise
            self._check_stamp(table)
            self._table = table
        return self._table

    def open_or_create(self, schema: pa.Schema) -> Table:
        """The table, made with `schema` and the stamp where it does not exist. Raises PrimerError when it holds another model's vectors,
        SystemFault when the store fails."""
        table = self.open()
        if table is not None:
            return table
        self._make(schema.with_metadata({STAMP: self._stamp.encode()}))
        table = self.open()
        if table is None:
            raise SystemFault(f"table {self.name} was removed while it was made; try again")
        return table

    def _make(self, schema: pa.Schema) -> None:
        """Puts an empty table in its place, unless another process has put one there meanwhile.

        Of two processes that find no table, LanceDB's own create lets the second write over the first one's, rows included. An empty
        table is one manifest, which knows no path: it is made apart, and a create-only put gives the place to one of them.
        """
        with TemporaryDirectory(prefix="primer-table-") as apart:
            lancedb.connect(apart).create_table(self.name, schema=schema)
            folder = Path(apart) / f"{self.name}.lance"
            # The manifest last: it names the transaction, and whoever sees it sees the table.
            files = [*folder.glob("_transactions/*"), *folder.glob("_versions/*.manifest")]
            try:
                store = self._open_store()
                for file in files:
                    obstore.put(store, file.relative_to(apart).as_posix(), file.read_bytes(), mode="create")
            except AlreadyExistsError:
                return
            except BaseError as error:
                raise SystemFault(f"table {self.name} could not be made: {error}") from error

    def _open_store(self) -> "ObjectStore":
        if "://" not in self._uri:
            return LocalStore(self._uri, mkdir=True)
        config = {key: value for key, value in self._options.items() if key.startswith(STORE_OPTIONS)}
        client = {key: value for key, value in self._options.items() if key not in config}
        return from_url(self._uri, config=cast(Any, config), client_options=cast(Any, client))

    def _check_stamp(self, table: Table) -> None:
        found = (table.schema.metadata or {}).get(STAMP, b"").decode()
        if found != self._stamp:
            raise PrimerError(
                f"table {self.name} holds vectors of {found or 'no known model'}, not of {self._stamp}; "
                "make a new index version for a new model"
            )

    def read(self, query: Callable[[Table], T]) -> T | None:
        """Run a query on the latest version; None where there is no table. A table dropped or cleaned meanwhile is opened afresh once."""
        for last in (False, True):
            table = self.open()
            if table is None:
                return None
            try:
                return query(table)
            except RuntimeError as error:
                if last or not _says(error, GONE):
                    raise
                self._table = None
        return None

    def commit(self, table: Table, change: Callable[[Table], T]) -> T:
        """Make one commit from the latest version, again when it conflicts with another's.

        Raises Transient when conflicts outlast COMMIT_POLICY, SystemFault when the store fails.
        """
        failed = 0
        while True:
            try:
                cast(Any, table).checkout_latest()
                return change(table)
            except RuntimeError as error:
                if not _says(error, LANCE):
                    raise
                if not _says(error, *CONFLICTS):
                    raise SystemFault(f"table {self.name} could not be written: {error}") from error
                failed += 1
                if is_exhausted(COMMIT_POLICY, failed):
                    raise Transient(f"table {self.name}: {failed} commits in a row conflicted with other writers: {error}") from error
                self._sleep(compute_backoff(COMMIT_POLICY, failed, self._random).total_seconds())

    def delete(self, column: str, keys: Iterable[str]) -> None:
        """Delete the rows whose `column` is among `keys`, DELETE_KEYS a commit; keys that are not there are passed over."""
        table = self.open()
        if table is None:
            return
        for part in slices(dict.fromkeys(keys), DELETE_KEYS):
            self.commit(table, partial(_delete_where, f"{column} IN ({sql_list(part)})"))

    def size(self) -> tuple[int, int]:
        """Rows, and bytes of data and index files; (0, 0) where there is no table."""
        figures = self.read(_figures)
        return (int(figures["num_rows"]), int(figures["total_bytes"])) if figures else (0, 0)

    def stats(self, now: datetime) -> TableStats | None:
        """What the table looks like at `now` (aware); None where there is no table. Reads every version's manifest."""
        return self.read(lambda table: self._stats(table, now))

    def _stats(self, table: Table, now: datetime) -> TableStats:
        figures = _figures(table)
        rows = int(figures["num_rows"])
        versions = table.list_versions()
        indexes = list(table.list_indices())
        covered = {column for index in indexes for column in index.columns}
        newest = max(versions, key=lambda version: int(version["version"]))
        return TableStats(
            rows=rows,
            small_fragments=int(figures["fragment_stats"]["num_small_fragments"]),
            deletion_files=int(newest["metadata"].get("total_deletion_files", 0)),
            unindexed_rows=max((index.num_unindexed_rows or 0 for index in indexes), default=0),
            # The timestamps come naive, in local time; astimezone takes them so.
            old_versions=sum(version["timestamp"].astimezone(UTC) < now - KEEP_VERSIONS for version in versions),
            missing_indexes=tuple(w.column for w in self._indexes if w.column not in covered and rows >= w.from_rows),
        )

    def upkeep(self, now: datetime) -> UpkeepResult:
        """Build missing indexes, compact, index new rows and drop old versions, if due. The one place where that is done.

        Apart from the write path, and safe beside it; it reads and rewrites whole fragments, so a large table deserves a process
        with a memory limit of its own. A failure of LanceDB is in the result, never raised.
        """
        try:
            stats = self.stats(now)
            if stats is None:
                return UpkeepResult(UpkeepDecision(should=False, reasons=()))
            decision = decide_upkeep(stats)
            if not decision.should:
                return UpkeepResult(decision)
        except RuntimeError as error:
            if not _says(error, LANCE):
                raise
            return UpkeepResult(UpkeepDecision(should=False, reasons=()), str(error))
        try:
            self.read(lambda table: self._maintain(table, stats.missing_indexes))
        except RuntimeError as error:
            if not _says(error, LANCE):
                raise
            return UpkeepResult(decision, str(error))
        return UpkeepResult(decision)

    def _maintain(self, table: Table, missing: Sequence[str]) -> None:
        for wanted in self._indexes:
            if wanted.column in missing:
                # replace=False: an index built again under merge_insert has failed later merges (lancedb issue 3280).
                table.create_index(wanted.column, config=wanted.config, replace=False)
        table.optimize(cleanup_older_than=KEEP_VERSIONS)

    def drop(self) -> None:
        """Remove the table and its files. A table that is not there is passed over."""
        self._table = None
        try:
            self._connection.drop_table(self.name)
        except ValueError as error:
            if not _says(error, GONE):
                raise
