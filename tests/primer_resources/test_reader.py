"""The reader through a real catalog and real indexes; only the model is a small one of the test's own."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Any, cast
from zlib import crc32

import numpy as np
import pytest

from primer_core import ids
from primer_core.chunks import Chunk, number_occurrences
from primer_core.failures import Transient
from primer_core.lanes import Lane
from primer_core.stages import Operation
from primer_core.write_plan import plan_write
from primer_resources.catalog.contents import NewContent
from primer_resources.catalog.generations import ChunkRecord, Flip, removed_rows
from primer_resources.embedder.base import Vector
from primer_resources.index_base import Hit, IndexRow, Scope
from primer_resources.keyword_index.tantivy_index import TantivyKeywordIndex
from primer_resources.reader import LEAST_CANDIDATES, TRIES, Reader, SearchResult
from primer_resources.toolkit import Tools
from primer_resources.vector_index.lance_index import LanceVectorIndex
from tests.primer_resources.catalog.world import BUCKETS, LEASE, RECIPE, TENANT, VERSION, World, facts, place
from tests.stores import folder_store

DIMS = RECIPE.embedding.dims
ALL = ("all",)


class Words:
    """An embedder whose vectors are sums of one fixed vector a word."""

    spec = RECIPE.embedding

    def embed(self, texts: Sequence[str]) -> Vector:
        """Vectors of passages."""
        return np.stack([self.embed_query(text) for text in texts])

    def embed_query(self, text: str) -> Vector:
        """Vector of a query."""
        words = text.lower().split() or [""]
        summed = np.sum([np.random.default_rng(crc32(word.encode())).standard_normal(DIMS) for word in words], axis=0)
        return cast(Vector, (summed / np.linalg.norm(summed)).astype(np.float32))


class Interrupted(LanceVectorIndex):
    """The vector index, where something else happens in the midst of a search."""

    meanwhile: Callable[[], None] | None = None

    def search(self, vector: Vector, scope: Scope, limit: int) -> list[Hit]:
        """Search, then let the other thing happen."""
        found = super().search(vector, scope, limit)
        if self.meanwhile is not None:
            self.meanwhile()
        return found


class Library:
    """Documents written all the way into both indexes."""

    def __init__(self, url: str, folder: Path) -> None:
        self.world = World(url)
        self.world.make()
        self.store = folder_store(self.world.catalog, folder / "store")
        self.vectors = Interrupted(str(folder / "vectors"), VERSION, RECIPE.embedding)
        self.keywords = TantivyKeywordIndex(folder / "keywords", RECIPE.chunker.version, heap_bytes=15_000_000)
        used: dict[str, Any] = {"embedder": Words(), "vectors": self.vectors, "keywords": self.keywords}
        self.tools = Tools(**{each.name: used.get(each.name) for each in fields(Tools)})
        self.reader = Reader(self.world.catalog, self.store, self.world.catalog.deployments.version(VERSION), self.tools)
        self.orders: dict[str, int] = {}
        self.world.acl("acl-all", *ALL)
        self.world.acl("acl-hr", "hr")

    def write(self, path: str, *texts: str, acl_id: str = "acl-all") -> Flip:
        """A document's next version, with its rows in both indexes, before its flip."""
        order = self.orders[path] = self.orders.get(path, 0) + 1
        content = ids.content_hash("\0".join(texts).encode())
        made = number_occurrences(Chunk(0, ("Guide",), "before ", text, f"Guide\nbefore {text}", (3,), 9) for text in texts)
        self.world.catalog.contents.add(NewContent(TENANT, content, 9, "text/plain", Lane.FAST, content))
        self.store.of(TENANT).put_chunks(content, RECIPE.parser.version, RECIPE.chunker.version, made, "run-a")
        if order == 1:
            doc_id = self.world.document(path, order, content, acl_id=acl_id)
        else:
            doc_id = ids.doc_id("handbook", path)
            with self.world.catalog.database.begin() as connection:
                assert self.world.catalog.documents.advance(connection, doc_id, place(path, acl_id), facts(order, content))
        self.world.job(doc_id, order, content=content)
        self.world.bring_to_write()
        ((job, state),) = self.world.catalog.generations.open([self.world.claim_write()], "run-a")
        plan = plan_write(doc_id, made, state.manifest, state.claimed_generation, rewrite=False)
        self.world.catalog.generations.intend(VERSION, [(job, plan.generation, [planned.row_id for planned in plan.added])])
        rows = [
            IndexRow(
                planned.row_id,
                planned.chunk_id,
                plan.generation,
                TENANT,
                "main",
                doc_id,
                (acl_id,),
                planned.chunk.heading_path,
                3,
                planned.chunk.ordinal,
                planned.chunk.text,
                self.tools.embedder.embed_query(planned.chunk.text),
            )
            for planned in plan.added
        ]
        self.vectors.write(rows)
        self.keywords.write(job.bucket, rows)
        listed = tuple(ChunkRecord(each.chunk_id, "", each.chunk.ordinal, ("Guide",), 3, 9) for each in plan.chunks)
        return Flip(job, plan.generation, plan.manifest, removed_rows(state.manifest, plan.manifest), listed, (acl_id,), {})

    def put(self, path: str, *texts: str, acl_id: str = "acl-all") -> str:
        """Write and flip. Returns the doc_id."""
        flip = self.write(path, *texts, acl_id=acl_id)
        self.flip(flip)
        return flip.job.doc_id

    def flip(self, flip: Flip) -> None:
        """Flip, at a moment of its own."""
        self.tick()
        assert self.world.flip(flip) == [flip.job]
        self.world.catalog.lanes.release("run-a")
        self.tick()

    def tick(self) -> None:
        """The hand clock moves; a server's does so by itself."""
        self.world.clock.moment += timedelta(seconds=1)

    def tombstone(self, doc_id: str) -> None:
        """Delete a document in the catalog; its rows stay until their purge."""
        with self.world.catalog.database.begin() as connection:
            known = self.world.catalog.documents.by_id([doc_id])[doc_id]
            assert self.world.catalog.documents.tombstone(connection, [known], self.world.catalog.now()) == [doc_id]

    def move(self, doc_id: str, path: str, acl_id: str, acl_error: str | None = None) -> None:
        """Put a document under another ACL, in the catalog only."""
        with self.world.catalog.database.begin() as connection:
            self.world.catalog.documents.move(connection, doc_id, place(path, acl_id, acl_error))

    def search(self, query: str, groups: Sequence[str] = ALL, k: int = 10) -> list[SearchResult]:
        """Search as a person of these groups."""
        return self.reader.search(query, TENANT, groups, k)

    def texts(self, query: str, groups: Sequence[str] = ALL, k: int = 10) -> set[str]:
        """The passages found."""
        return {result.text for result in self.search(query, groups, k)}

    def close(self) -> None:
        """End writers and connections."""
        self.keywords.close()
        self.world.catalog.close()


@pytest.fixture
def library(database_url: str, tmp_path: Path) -> Iterator[Library]:
    made = Library(database_url, tmp_path)
    yield made
    made.close()


def test_a_result_quotes_the_documents_own_words_and_says_where_they_stand(library: Library) -> None:
    doc_id = library.put("a/leave.md", "parental leave lasts weeks", "meals are paid")
    best = library.search("parental leave")[0]
    assert (best.doc_id, best.source, best.path, best.uri) == (doc_id, "handbook", "a/leave.md", "file:///a/leave.md")
    assert (best.text, best.heading_path, best.page) == ("parental leave lasts weeks", ("Guide",), 3)
    assert [result.score for result in library.search("parental leave")] == sorted(
        (result.score for result in library.search("parental leave")), reverse=True
    )


def test_no_more_results_than_asked_and_none_for_no_question(library: Library) -> None:
    library.put("a.md", *(f"leave number {n}" for n in range(5)))
    assert len(library.search("leave", k=3)) == 3
    assert library.search("leave", k=0) == library.search("  ") == []


def test_nobody_sees_what_their_groups_do_not_open(library: Library) -> None:
    library.put("public.md", "salary rules")
    library.put("hr.md", "salary bands", acl_id="acl-hr")
    assert library.texts("salary") == {"salary rules"}
    assert library.texts("salary", ["hr"]) == {"salary bands"}
    assert library.texts("salary", ["hr", "all"]) == {"salary rules", "salary bands"}
    assert library.texts("salary", ["nobody"]) == library.texts("salary", []) == set()
    assert library.reader.search("salary", "another tenant", ALL, 10) == []


def test_a_deleted_document_is_gone_before_its_rows_are(library: Library) -> None:
    doc_id = library.put("a.md", "alpha words")
    library.tombstone(doc_id)
    assert list(library.vectors.row_ids())
    assert library.search("alpha") == []


def test_a_document_whose_permissions_could_not_be_read_is_hidden_and_comes_back(library: Library) -> None:
    doc_id = library.put("a.md", "alpha words")
    library.move(doc_id, "a.md", "acl-all", "the server said 503")
    assert library.search("alpha") == []
    library.move(doc_id, "a.md", "acl-all")
    assert library.texts("alpha") == {"alpha words"}


def test_an_acl_that_could_not_be_read_is_not_an_acl_that_is_open(library: Library) -> None:
    library.put("a.md", "alpha words")
    library.world.acl("acl-all", *ALL, readable=False)
    assert library.search("alpha") == []


def test_a_document_under_an_acl_that_nobody_has_recorded_is_hidden(library: Library) -> None:
    doc_id = library.put("a.md", "alpha words")
    library.move(doc_id, "a.md", "acl-unheard-of")
    assert library.search("alpha") == []


def test_a_right_that_is_taken_away_is_gone_before_the_rows_are_written_anew(library: Library) -> None:
    doc_id = library.put("a.md", "alpha words")
    library.move(doc_id, "a.md", "acl-hr")
    assert library.search("alpha") == []
    assert library.search("alpha", ["all", "hr"]) != []
    library.world.acl("acl-hr", "board")
    assert library.search("alpha", ["all", "hr"]) == []


def test_rows_in_flight_do_not_count_and_the_flip_changes_all_of_a_document_at_once(library: Library) -> None:
    library.put("a.md", "alpha one", "alpha two")
    flip = library.write("a.md", "alpha two", "alpha three")
    assert len(list(library.vectors.row_ids())) == 3
    assert library.texts("alpha") == {"alpha one", "alpha two"}
    library.flip(flip)
    assert len(list(library.vectors.row_ids())) == 3
    assert library.texts("alpha") == {"alpha two", "alpha three"}


def test_rows_that_a_crash_left_behind_are_never_uncovered_by_a_later_version(library: Library) -> None:
    library.put("a.md", "alpha one")
    left = library.write("a.md", "alpha left behind")
    library.world.catalog.jobs.release("run-a")
    assert left.generation == 2
    library.put("a.md", "alpha three")
    assert "alpha left behind" not in library.texts("alpha")
    assert library.texts("alpha") == {"alpha three"}


def test_a_search_that_a_flip_overtakes_answers_from_the_version_it_began_with(library: Library) -> None:
    library.put("a.md", "alpha one", "alpha two")
    flips = [library.write("a.md", "alpha two", "alpha three")]

    def meanwhile() -> None:
        while flips:
            library.flip(flips.pop())

    library.vectors.meanwhile = meanwhile
    assert library.texts("alpha") == {"alpha one", "alpha two"}
    assert library.texts("alpha") == {"alpha two", "alpha three"}


def test_a_search_that_two_flips_overtake_starts_again_and_answers_whole(library: Library) -> None:
    library.put("a.md", "alpha 1")
    versions = iter((("alpha 2",), ("alpha 3", "alpha 4")))

    def meanwhile() -> None:
        for texts in versions:
            library.tick()
            library.put("a.md", *texts)

    library.vectors.meanwhile = meanwhile
    assert library.texts("alpha") == {"alpha 3", "alpha 4"}


def test_a_search_whose_documents_never_stand_still_says_so(library: Library) -> None:
    library.put("a.md", "alpha 0")
    counts = iter(range(1, 100))

    def meanwhile() -> None:
        for _ in range(2):
            library.tick()
            library.put("a.md", f"alpha {next(counts)}")

    library.vectors.meanwhile = meanwhile
    with pytest.raises(Transient, match=f"search 'alpha': documents changed during {TRIES} tries"):
        library.search("alpha")


def test_widening_finds_the_few_that_count_behind_many_that_do_not(library: Library) -> None:
    many = 3 * LEAST_CANDIDATES
    gone = library.put("gone.md", *(f"alpha beta {n}" for n in range(many)))
    library.put("here.md", "some words that hold alpha as well", "and others with alpha too")
    library.tombstone(gone)
    assert library.texts("alpha beta", k=2) == {"some words that hold alpha as well", "and others with alpha too"}


def test_all_three_ways_of_searching_see_the_same_set(library: Library) -> None:
    library.world.acl("acl-both", "all", "hr")
    library.world.acl("acl-nobody")
    documents = {acl: library.put(f"{acl}.md", f"alpha in {acl}", acl_id=acl) for acl in ("acl-all", "acl-hr", "acl-both", "acl-nobody")}

    def seen(groups: Sequence[str]) -> list[set[str]]:
        acl_ids = library.world.catalog.acls.open_to(TENANT, groups)
        scope = Scope(TENANT, acl_ids)
        vector = library.tools.embedder.embed_query("alpha")
        return [
            {hit.doc_id for hit in library.vectors.search(vector, scope, 100)},
            {hit.doc_id for hit in library.keywords.search("alpha", scope, 100)},
            {result.doc_id for result in library.search("alpha", groups)},
        ]

    expected = {
        (): set(),
        ("all",): {documents["acl-all"], documents["acl-both"]},
        ("hr",): {documents["acl-hr"], documents["acl-both"]},
        ("hr", "all"): {documents["acl-all"], documents["acl-hr"], documents["acl-both"]},
        ("hr' OR '1'='1",): set(),
    }
    for groups, allowed in expected.items():
        assert seen(groups) == [allowed] * 3, groups
    rows = list(library.vectors.row_ids())
    library.vectors.delete(rows[:1])
    library.keywords.delete("00", rows[:1])
    for groups in expected:
        one, two, three = seen(groups)
        assert one == two == three


def test_a_delete_that_is_flipped_and_purged_leaves_nothing_in_either_index(library: Library) -> None:
    doc_id = library.put("a.md", "alpha one", "alpha two")
    library.tombstone(doc_id)
    library.world.job(doc_id, 1, Operation.DELETE, None)
    library.flip(library.world.flip_of(library.world.claim_write(), []))
    grace = timedelta(seconds=60)
    library.world.pass_time(grace + LEASE)
    due = library.world.catalog.generations.due(VERSION, BUCKETS, grace, 100)
    library.vectors.delete([purge.row_id for purge in due])
    library.keywords.delete("00", [purge.row_id for purge in due])
    assert len(due) == 2
    assert list(library.vectors.row_ids()) == list(library.keywords.row_ids()) == []
    assert library.search("alpha") == []
