"""The one reader: hybrid search through the scope filter and the gate. Every search and every check reads through it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from primer_core.chunks import Chunk
from primer_core.failures import Transient
from primer_core.fusion import fuse_scores
from primer_core.reviews import output_version
from primer_core.visibility import TwoFlips
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.deployments import IndexVersion
from primer_resources.catalog.gate import Gate, HitDocument
from primer_resources.document_store import DocumentStore, TenantStore
from primer_resources.embedder.base import Vector
from primer_resources.index_base import Hit, Scope
from primer_resources.toolkit import Tools

OVERFETCH = 4
"""Candidates an index for each result wanted: fusion needs depth, and documents in flight lose hits at the gate."""
LEAST_CANDIDATES = 400
"""Where a passage that only one list has among its first comes out about as if both were whole."""
MOST_CANDIDATES = 3_200
TRIES = 5
"""Searches started again because a document flipped twice meanwhile."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A passage that answers, with the document's own words. `score` is the fused score, 0 to 1; `page` counts from 1."""

    doc_id: str
    uri: str
    source: str
    path: str
    chunk_id: str
    score: float
    text: str
    heading_path: tuple[str, ...]
    page: int | None


class Reader:
    """Searches one index version."""

    def __init__(self, catalog: Catalog, store: DocumentStore, version: IndexVersion, tools: Tools) -> None:
        self._catalog = catalog
        self._stores = store
        self.version = version
        self._tools = tools

    def search(self, query: str, tenant_id: str, groups: Collection[str], k: int) -> list[SearchResult]:
        """The best `k` passages that the groups may see, best first. Groups that open nothing find nothing.

        Raises Transient where documents kept flipping during every try.
        """
        acl_ids = self._catalog.acls.open_to(tenant_id, groups)
        if not acl_ids or not query.strip() or k < 1:
            return []
        vector = self._tools.embedder.embed_query(query)
        scope = Scope(tenant_id, acl_ids)
        for _ in range(TRIES):
            try:
                return self._widen(query, vector, scope, groups, k)
            except TwoFlips:
                continue
        raise Transient(f"search {query!r}: documents changed during {TRIES} tries; search again")

    def _widen(self, query: str, vector: Vector, scope: Scope, groups: Collection[str], k: int) -> list[SearchResult]:
        """Ask for more candidates until enough pass the gate or the indexes have no more."""
        limit = max(LEAST_CANDIDATES, OVERFETCH * k)
        while True:
            started_at = self._catalog.now()
            by_vector = self._tools.vectors.search(vector, scope, limit)
            by_keyword = self._tools.keywords.search(query, scope, limit)
            every = (*by_vector, *by_keyword)
            gate = self._catalog.gate.look(self.version.name, {h.doc_id for h in every}, {h.row_id for h in every}, groups, started_at)
            shown = {h.row_id: gate.shown_as(h.doc_id, h.row_id, h.added_gen, started_at) for h in every}
            # Only what he may see shapes the order: the scores of other passages would tell of them.
            near, said = ([(h.row_id, h.score) for h in hits if shown[h.row_id] is not None] for hits in (by_vector, by_keyword))
            ranked = fuse_scores(near, said)
            exhausted = len(by_vector) < limit and len(by_keyword) < limit
            if len(ranked) >= k or exhausted or limit >= MOST_CANDIDATES:
                hits = {hit.row_id: hit for hit in every}
                best = [(hits[row], score) for row, score in ranked[:k]]
                return self._quote(best, gate, shown, self._stores.of(scope.tenant_id))
            limit = min(limit * OVERFETCH, MOST_CANDIDATES)

    def _quote(
        self, hits: Sequence[tuple[Hit, float]], gate: Gate, shown: Mapping[str, HitDocument | None], store: TenantStore
    ) -> list[SearchResult]:
        """The words of each hit, from the chunk set that its rows were written from, under the name of the document it is shown as."""
        passages: dict[str, dict[str, Chunk]] = {}
        wanted: dict[str, set[str]] = {}
        for hit, _ in hits:
            wanted.setdefault(hit.doc_id, set()).add(hit.chunk_id)
        for doc_id, chunk_ids in wanted.items():
            passages[doc_id] = self._passages(doc_id, chunk_ids, gate.owners[doc_id].outputs, store)
        results = []
        for hit, score in hits:
            document, chunk = shown[hit.row_id], passages[hit.doc_id].get(hit.chunk_id)
            if document is None or chunk is None:
                raise TwoFlips(hit.doc_id)
            page = chunk.pages[0] if chunk.pages else None
            results.append(
                SearchResult(
                    document.doc_id,
                    document.uri,
                    document.source_id,
                    document.path,
                    hit.chunk_id,
                    score,
                    chunk.text,
                    chunk.heading_path,
                    page,
                )
            )
        return results

    def _passages(
        self, doc_id: str, chunk_ids: Collection[str], outputs: Sequence[tuple[str, str]], store: TenantStore
    ) -> dict[str, Chunk]:
        """chunk_id → chunk, from the present chunk set, and from the one before where a hit is of the generation before."""
        recipe = self.version.recipe
        found: dict[str, Chunk] = {}
        for content_hash, accepted_pages in outputs:
            if found.keys() >= set(chunk_ids):
                break
            parsed = output_version(recipe.parser.version, accepted_pages)
            chunks = store.get_chunks(content_hash, parsed, recipe.chunker.version)
            found = {chunk.id_in(doc_id): chunk for chunk in chunks} | found
        return found
