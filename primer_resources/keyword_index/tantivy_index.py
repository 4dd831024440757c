"""The keyword index on Tantivy: one shard a bucket, searched together. Imports tantivy, so it is imported inside steps only."""

import heapq
import re
import shutil
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import cast

from tantivy import DocAddress, Index, IndexWriter, Query, Searcher

from primer_core.failures import PrimerError, SystemFault, Transient
from primer_resources.index_base import Hit, IndexRow, Scope
from primer_resources.keyword_index import ranking, shard

HEAP_BYTES = 128_000_000
"""Of one writer: 14,800 rows/s, against 7,300 at 30 MB."""
THREADS = 1
"""Two threads of the same memory in total were slower."""
MAX_OPEN_WRITERS = 4
"""Each holds HEAP_BYTES and its shard's lock."""
LISTED_ROWS = 10_000
"""Rows a page of `row_ids`."""
BUCKET = re.compile(r"[0-9a-f]{2}")


class TantivyKeywordIndex:
    """KeywordIndex over the shards `root`/<bucket>, each made with `recipe` (the chunker's version).

    Writers stay open from one `write` to the next, so that merges can finish; each holds its shard's lock. So `close(bucket)` comes
    before the bucket's lane is given back, and `close()` at the end of a run. One thread at a time writes.
    """

    def __init__(self, root: Path, recipe: str, heap_bytes: int = HEAP_BYTES, max_open_writers: int = MAX_OPEN_WRITERS) -> None:
        self._root = root
        self._stamp = f"schema={shard.SCHEMA_VERSION};{shard.TOKENIZER};{recipe}"
        self._heap_bytes = heap_bytes
        self._max_open_writers = max_open_writers
        self._schema = shard.make_schema()
        self._analyzers = ranking.make_query_analyzers()
        self._writers: OrderedDict[str, IndexWriter] = OrderedDict()
        self._readers: dict[str, Index] = {}
        self._tested = False

    def write(self, bucket: str, rows: Sequence[IndexRow]) -> None:
        """Replace rows by row_id, in one commit; of rows with one row_id the last counts.

        Raises Transient when another writer holds the shard, PrimerError for a shard of another recipe, SystemFault when the disk fails.
        """
        unique = {row.row_id: row for row in rows}
        if not unique:
            return
        try:
            documents = [shard.to_document(row, self._schema) for row in unique.values()]
        except ValueError as error:
            raise PrimerError(f"a row of bucket {bucket} has an id that is not valid text: {error}") from error

        def replace(writer: IndexWriter) -> None:
            # A delete reaches only what was added before it.
            for row_id in unique:
                writer.delete_documents_by_term("row_id", row_id)
            for document in documents:
                writer.add_document(document)

        self._commit(bucket, replace)

    def delete(self, bucket: str, row_ids: Sequence[str]) -> None:
        """Delete rows, one commit; ids that are not there are passed over. Raises as `write` does."""
        if not row_ids or not shard.exists(self._folder(bucket)):
            return

        def remove(writer: IndexWriter) -> None:
            for row_id in row_ids:
                writer.delete_documents_by_term("row_id", row_id)

        self._commit(bucket, remove)

    def search(self, text: str, scope: Scope, limit: int) -> list[Hit]:
        """Rows that hold any of the text's words, best first (BM25) over all shards, at each shard's newest commit. Function words count
        only where there are no others.

        A `score` of 1 is that of a passage of average length that holds every word once. Any string is a query. Raises SystemFault when a
        shard that is there cannot be read.
        """
        terms = ranking.query_terms(self._analyzers, text)
        if limit < 1 or not terms or not scope.acl_ids or (scope.libraries is not None and not scope.libraries):
            return []
        filters = ranking.scope_queries(self._schema, scope)
        searchers = [searcher for bucket in self.buckets() if (searcher := self._searcher(bucket)) and searcher.num_docs]
        counts = [ranking.count_terms(searcher, terms) for searcher in searchers]
        everywhere = ranking.add_counts(counts)
        found: list[tuple[float, int, DocAddress]] = []
        for number, (searcher, here) in enumerate(zip(searchers, counts, strict=True)):
            query = ranking.shard_query(self._schema, filters, here, everywhere)
            if query is not None:
                # Tantivy reserves memory for the whole limit.
                hits = searcher.search(query, min(limit, searcher.num_docs), count=False).hits
                found.extend((cast(float, score), number, address) for score, address in hits)
        if not found:
            return []
        best = heapq.nlargest(limit, found, key=lambda hit: hit[0])
        whole = ranking.query_weight(terms, everywhere)
        hits_found = [self._hit(searchers[number], address, score / whole) for score, number, address in best]
        return sorted(hits_found, key=lambda hit: (-hit.score, hit.row_id))

    @staticmethod
    def _hit(searcher: Searcher, address: DocAddress, score: float) -> Hit:
        stored = searcher.doc(address)
        return Hit(stored["row_id"][0], stored["chunk_id"][0], stored["added_gen"][0], stored["doc_id"][0], score)

    def present(self, bucket: str, row_ids: Sequence[str]) -> set[str]:
        """Those of these rows that are in the bucket's shard, at its newest commit."""
        searcher = self._searcher(bucket)
        if searcher is None:
            return set()
        return {row_id for row_id in row_ids if searcher.search(Query.term_query(self._schema, "row_id", row_id), 1, count=False).hits}

    def row_ids(self, buckets: Iterable[str] | None = None) -> Iterator[str]:
        """All row ids of the given buckets (all when None), streamed in pages, each shard as of one moment."""
        for bucket in self.buckets() if buckets is None else buckets:
            searcher = self._searcher(bucket)
            if searcher is None:
                continue
            for offset in range(0, searcher.num_docs, LISTED_ROWS):
                for _, address in searcher.search(Query.all_query(), LISTED_ROWS, count=False, offset=offset).hits:
                    yield searcher.doc(address)["row_id"][0]

    def buckets(self) -> list[str]:
        """Buckets that have a shard, in order."""
        try:
            folders = list(self._root.iterdir())
        except FileNotFoundError:
            return []
        return sorted(folder.name for folder in folders if BUCKET.fullmatch(folder.name) and shard.exists(folder))

    def size(self) -> int:
        """Bytes of all files of all shards; a file that a merge removes meanwhile counts for nothing."""
        total = 0
        for path in self._root.rglob("*"):
            try:
                total += path.stat().st_size if path.is_file() else 0
            except FileNotFoundError:
                continue
        return total

    def close(self, bucket: str | None = None) -> None:
        """End the bucket's writer, or all: wait for its merges, so that small segments do not pile up, and free the shard's lock."""
        for name in list(self._writers) if bucket is None else [bucket]:
            writer = self._writers.pop(name, None)
            if writer is not None:
                try:
                    writer.wait_merging_threads()
                except ValueError as error:
                    raise SystemFault(f"keyword shard {self._folder(name)} could not be merged: {error}") from error

    def drop(self) -> None:
        """Remove the whole index. A reader meanwhile finds the shards empty."""
        self.close()
        self._readers.clear()
        dropped = self._root.with_name(f"{self._root.name}.dropped")
        if self._root.is_dir():
            # Out of sight in one step, since a reader of a half removed shard could take it for one of another recipe.
            shutil.rmtree(dropped, ignore_errors=True)
            self._root.rename(dropped)
        if dropped.is_dir():
            shutil.rmtree(dropped)

    def _folder(self, bucket: str) -> Path:
        if not BUCKET.fullmatch(bucket):
            raise PrimerError(f"bucket {bucket!r} is not two hex digits; take it from bucket_names")
        return self._root / bucket

    def _commit(self, bucket: str, change: Callable[[IndexWriter], None]) -> None:
        writer = self._writer(bucket)
        try:
            change(writer)
            writer.commit()
        except ValueError as error:
            # A writer that failed may still hold half of the change: without it nothing of the change is kept.
            del self._writers[bucket]
            raise SystemFault(f"keyword shard {self._folder(bucket)} could not be written: {error}") from error

    def _writer(self, bucket: str) -> IndexWriter:
        writer = self._writers.get(bucket)
        if writer is None:
            if not self._tested:
                shard.self_test()
                self._tested = True
            while len(self._writers) >= self._max_open_writers:
                self.close(next(iter(self._writers)))
            folder = self._folder(bucket)
            index = shard.open_for_writing(folder, self._stamp)
            try:
                writer = index.writer(self._heap_bytes, THREADS)
            except ValueError as error:
                if "LockBusy" in str(error):
                    raise Transient(f"keyword shard {folder} is held by another writer; it is tried again") from error
                raise SystemFault(f"keyword shard {folder} could not be opened for writing: {error}") from error
            self._writers[bucket] = writer
        self._writers.move_to_end(bucket)
        return writer

    def _searcher(self, bucket: str) -> Searcher | None:
        """The shard at its newest commit; None where there is none, or where it goes or comes at this moment."""
        folder = self._folder(bucket)
        for last in (False, True):
            if not shard.exists(folder):
                self._readers.pop(bucket, None)
                return None
            try:
                index = self._readers.get(bucket)
                if index is None:
                    shard.check_stamp(folder, self._stamp)
                    index = Index.open(str(folder))
                    index.config_reader("manual")
                    self._readers[bucket] = index
                index.reload()
                return index.searcher()
            except (PrimerError, ValueError) as error:
                self._readers.pop(bucket, None)
                if last and shard.exists(folder):
                    if isinstance(error, PrimerError):
                        raise
                    raise SystemFault(f"keyword shard {folder} could not be read: {error}") from error
        return None
