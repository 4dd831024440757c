import os
import shutil
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from random import Random

import pytest
import tantivy
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from primer_core.failures import PrimerError, SystemFault, Transient
from primer_resources.index_base import IndexRow, Scope
from primer_resources.keyword_index import ranking, shard
from primer_resources.keyword_index.tantivy_index import LISTED_ROWS, TantivyKeywordIndex

PROJECT = Path(__file__).parents[3]
ANYONE = Scope("t", frozenset({"a"}))
HEAP = 15_000_000


def row(row_id: str, text: str = "", heading: tuple[str, ...] = (), added_gen: int = 1) -> IndexRow:
    return IndexRow(row_id, f"chunk of {row_id}", added_gen, "t", "main", f"doc of {row_id}", ("a",), heading, None, 0, text)


def make(root: Path, recipe: str = "chunker 1", max_open_writers: int = 4) -> TantivyKeywordIndex:
    return TantivyKeywordIndex(root, recipe, heap_bytes=HEAP, max_open_writers=max_open_writers)


def found(index: TantivyKeywordIndex, query: str) -> list[str]:
    return [hit.row_id for hit in index.search(query, ANYONE, 100)]


def test_any_of_the_words_matches_and_more_of_them_come_first(tmp_path: Path) -> None:
    index = make(tmp_path)
    index.write("00", [row("one", "red apples here"), row("both", "red pears here"), row("none", "nothing of it")])
    assert found(index, "red pear") == ["both", "one"]
    assert found(index, "unheard") == []


def test_function_words_count_only_where_there_are_no_others(tmp_path: Path) -> None:
    index = make(tmp_path)
    index.write("00", [row("what", "what it is and what it does"), row("pear", "pears")])
    assert found(index, "What does a pear do?") == ["pear"]
    assert found(index, "what does it?") == ["what"]


def test_a_score_is_the_share_of_the_querys_words_weighed_by_their_rarity(tmp_path: Path) -> None:
    index = make(tmp_path)
    index.write("00", [row(f"{n}", f"common filler{n}") for n in range(20)])
    index.write("01", [row("all", "common zebra"), row("rare", "zebra other")])
    scores = {hit.row_id: hit.score for hit in index.search("common zebra", ANYONE, 100)}
    assert scores["all"] == pytest.approx(1, rel=0.01)
    assert 0.5 < scores["rare"] < 1
    assert scores["0"] < 0.2
    assert scores["rare"] + scores["0"] == pytest.approx(1, rel=0.05)


def test_words_match_by_stem_and_without_regard_to_case(tmp_path: Path) -> None:
    index = make(tmp_path)
    index.write("00", [row("r:1", "Running DOGS"), row("r:2", "naïve cafés 日本語")])
    assert found(index, "dog RUNS") == ["r:1"]
    assert found(index, "日本語") == ["r:2"]


def test_a_word_of_the_heading_is_found_and_the_passage_that_says_it_comes_first(tmp_path: Path) -> None:
    index = make(tmp_path)
    text = " ".join(f"word{n}" for n in range(60))
    index.write("00", [row("heading", text, ("payroll",)), row("text", f"{text} payroll", ("other",)), row("none", text, ("other",))])
    assert found(index, "payroll") == ["text", "heading"]


def test_a_hit_names_its_row_chunk_generation_and_document(tmp_path: Path) -> None:
    index = make(tmp_path)
    index.write("00", [row("r:9", "word", added_gen=2**40)])
    (hit,) = index.search("word", ANYONE, 10)
    assert (hit.row_id, hit.chunk_id, hit.added_gen, hit.doc_id) == ("r:9", "chunk of r:9", 2**40, "doc of r:9")


def test_the_text_is_not_stored(tmp_path: Path) -> None:
    index = make(tmp_path)
    index.write("00", [row("r:1", "confidential words", ("secret heading",))])
    searcher = tantivy.Index.open(str(tmp_path / "00")).searcher()
    (stored,) = [searcher.doc(address).to_dict() for _, address in searcher.search(tantivy.Query.all_query(), 5).hits]
    assert stored.keys() == {"row_id", "chunk_id", "doc_id", "added_gen"}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> TantivyKeywordIndex:
    index = make(tmp_path_factory.mktemp("filled"))
    index.write("00", [row("r:1", "plain words or not and title")])
    index.close()
    return index


@given(st.text(alphabet=st.one_of(st.characters(), st.sampled_from('"()[]{}:^~*?\\+-!/ ORANDNOT')), max_size=60))
@example("")
@example("\ud800 words")
@example('title:"unclosed (words AND')
@example("[a TO b} OR IN [")
@example("words^-1 ~ * /re(/")
@example("-words")
@example("word " * 5_000)
@example("x" * 100_000)
@example("\x00")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_string_is_a_query_and_no_character_is_an_operator(filled: TantivyKeywordIndex, query: str) -> None:
    terms = set(ranking.query_terms(ranking.make_query_analyzers(), query))
    held = {"plain", "word", "or", "not", "and", "titl"}
    assert found(filled, query) == (["r:1"] if terms & held else [])


@settings(max_examples=50)
@given(st.text(max_size=80))
@example("Don't RUN, naïve_café 3.14 İstanbul ﬁne 日本語 " + "long" * 11)
def test_a_query_is_analysed_as_the_rows_are(text: str) -> None:
    index = tantivy.Index(shard.make_schema())
    writer = index.writer(HEAP, 1)
    writer.add_document(shard.to_document(row("r:1", text), shard.make_schema()))
    writer.commit()
    index.reload()
    indexed = {term for term, _ in index.searcher().terms_with_prefix("text", "")}
    assert indexed == set(shard.make_analyzer().analyze(shard.well_formed(text)))


def words(random: Random, skew: int) -> str:
    return " ".join(f"w{min(int(random.expovariate(0.2)) + skew, 60)}" for _ in range(20))


def test_rows_spread_over_shards_rank_as_in_one(tmp_path: Path) -> None:
    random = Random(5)
    # Each third of the rows has a vocabulary of its own, so that rare words of one shard are common in another.
    rows = [row(f"{n:03d}", words(random, 12 * (n % 3))) for n in range(150)]
    one, three = make(tmp_path / "one"), make(tmp_path / "three")
    one.write("00", rows)
    for n in range(3):
        three.write(f"{n:02x}", rows[n::3])
    for _ in range(20):
        query = words(random, random.randrange(30))
        whole, spread = one.search(query, ANYONE, 200), three.search(query, ANYONE, 200)
        assert {hit.row_id for hit in spread} == {hit.row_id for hit in whole}
        scores = {hit.row_id: hit.score for hit in whole}
        for hit in spread:
            assert hit.score == pytest.approx(scores[hit.row_id], rel=1e-3)


def test_a_commit_is_seen_by_a_reader_opened_before(tmp_path: Path) -> None:
    reader, writer = make(tmp_path), make(tmp_path)
    assert found(reader, "word") == []
    writer.write("00", [row("r:1", "word")])
    assert found(reader, "word") == ["r:1"]
    writer.write("00", [row("r:1", "other"), row("r:2", "word")])
    writer.write("01", [row("r:3", "word")])
    assert sorted(found(reader, "word")) == ["r:2", "r:3"]
    writer.delete("00", ["r:2"])
    assert found(reader, "word") == ["r:3"]


def test_row_ids_are_listed_by_bucket_and_beyond_a_page(tmp_path: Path) -> None:
    index = make(tmp_path)
    index.write("00", [row(f"{n}:1") for n in range(LISTED_ROWS + 3)])
    index.write("01", [row("other:1")])
    index.delete("00", ["0:1"])
    assert list(index.row_ids(["01"])) == ["other:1"]
    assert list(index.row_ids(["02"])) == []
    ids = list(index.row_ids())
    assert len(ids) == LISTED_ROWS + 3
    assert set(ids) == {"other:1", *(f"{n}:1" for n in range(1, LISTED_ROWS + 3))}


def test_a_held_shard_is_transient_and_free_after_close(tmp_path: Path) -> None:
    holder, other = make(tmp_path), make(tmp_path)
    holder.write("00", [row("r:1", "word")])
    holder.write("01", [row("r:2", "word")])
    with pytest.raises(Transient, match="another writer"):
        other.write("00", [row("r:3", "word")])
    with pytest.raises(Transient, match="another writer"):
        other.delete("00", ["r:1"])
    assert sorted(found(other, "word")) == ["r:1", "r:2"]
    holder.close("00")
    other.write("00", [row("r:3", "word")])
    with pytest.raises(Transient):
        other.write("01", [row("r:4", "word")])
    holder.close()
    other.write("01", [row("r:4", "word")])
    assert sorted(found(holder, "word")) == ["r:1", "r:2", "r:3", "r:4"]


def test_no_more_writers_than_allowed_stay_open(tmp_path: Path) -> None:
    holder, other = make(tmp_path, max_open_writers=2), make(tmp_path)
    for bucket in ("00", "01", "00", "02"):
        holder.write(bucket, [row(f"in {bucket}")])
    other.write("01", [row("free again")])
    for bucket in ("00", "02"):
        with pytest.raises(Transient):
            other.write(bucket, [row("held")])


def test_many_small_commits_by_one_writer_end_as_few_segments(tmp_path: Path) -> None:
    index = make(tmp_path)
    for n in range(20):
        index.write("00", [row(f"{n}:1", "word")])
    index.close()
    searcher = tantivy.Index.open(str(tmp_path / "00")).searcher()
    assert searcher.num_docs == 20
    assert searcher.num_segments <= 12


def test_a_shard_of_another_recipe_is_neither_written_nor_read(tmp_path: Path) -> None:
    index = make(tmp_path)
    index.write("00", [row("r:1", "word")])
    index.close()
    other = make(tmp_path, recipe="chunker 2")
    with pytest.raises(PrimerError, match=r"'.*chunker 1', not '.*chunker 2'"):
        other.write("00", [row("r:2", "word")])
    with pytest.raises(PrimerError, match="new index version"):
        other.search("word", ANYONE, 5)
    assert found(make(tmp_path), "word") == ["r:1"]


@pytest.mark.parametrize("bucket", ["", "0", "000", "0G", "..", "a/", "A0"])
def test_a_bucket_is_never_a_path(tmp_path: Path, bucket: str) -> None:
    index = make(tmp_path / "index")
    for call in (lambda: index.write(bucket, [row("r:1")]), lambda: index.delete(bucket, ["r:1"]), lambda: list(index.row_ids([bucket]))):
        with pytest.raises(PrimerError, match="bucket"):
            call()
    assert not (tmp_path / "index").exists()


def test_a_row_that_the_index_cannot_hold_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    index = make(tmp_path)
    index.write("00", [row("r:1", "word")])
    for bad in (row("r:2", "word", added_gen=-1), row("r:2", "word", added_gen=2**64), row("\ud800", "word")):
        with pytest.raises(PrimerError):
            index.write("00", [row("r:1", "other"), bad])
    index.write("00", [row("r:3", "word")])
    assert sorted(found(index, "word")) == ["r:1", "r:3"]


def test_text_that_is_not_valid_unicode_is_indexed_as_far_as_it_goes(tmp_path: Path) -> None:
    index = make(tmp_path)
    index.write("00", [row("r:1", "before \ud800 after", ("he\udfffading",))])
    assert found(index, "after") == ["r:1"]


def test_after_a_failed_commit_nothing_of_it_is_kept_and_the_next_write_works(tmp_path: Path) -> None:
    index = make(tmp_path)
    index.write("00", [row("r:1", "word")])
    shutil.rmtree(tmp_path / "00")
    with pytest.raises(SystemFault, match="00"):
        index.write("00", [row("r:2", "word")])
    assert found(index, "word") == []
    index.write("00", [row("r:3", "word")])
    assert found(index, "word") == ["r:3"]


def test_a_shard_with_a_lost_file_is_a_fault_and_not_an_empty_shard(tmp_path: Path) -> None:
    index = make(tmp_path)
    index.write("00", [row("r:1", "word")])
    index.close()
    for file in (tmp_path / "00").glob("*.store"):
        file.unlink()
    with pytest.raises(SystemFault, match="could not be read"):
        make(tmp_path).search("word", ANYONE, 5)


def test_a_reader_lives_through_shards_that_come_and_go(tmp_path: Path) -> None:
    reader, writer = make(tmp_path / "index"), make(tmp_path / "index")
    rows = [row(f"{n}:1", "word") for n in range(5)]
    reads: Counter[int] = Counter()
    failures: list[Exception] = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            try:
                reads[len(found(reader, "word"))] += 1
            except (PrimerError, ValueError, OSError) as error:
                failures.append(error)
                return

    thread = threading.Thread(target=read)
    thread.start()
    for _ in range(8):
        writer.write("00", rows)
        seen = sum(reads.values())
        while thread.is_alive() and sum(reads.values()) < seen + 2:
            thread.join(0.005)
        writer.drop()
    stop.set()
    thread.join()
    assert failures == []
    assert set(reads) <= {0, 5}
    assert reads[5]
    writer.drop()
    assert list(tmp_path.iterdir()) == []


KILLED = """
import sys
from pathlib import Path
from primer_resources.index_base import IndexRow
from primer_resources.keyword_index.tantivy_index import TantivyKeywordIndex

root, first = Path(sys.argv[1]), int(sys.argv[2])
index = TantivyKeywordIndex(root, "chunker 1", heap_bytes=15_000_000)
for batch in range(first, first + 100_000):
    rows = [IndexRow(f"{batch}-{n}", "c", batch, "t", "main", "d", ("a",), (), None, 0, "word " * 50) for n in range(20)]
    index.write("00", rows)
    print(batch, flush=True)
"""


def test_a_writer_killed_at_any_moment_leaves_whole_batches_and_no_lock(tmp_path: Path) -> None:
    random = Random(3)
    acknowledged: set[int] = set()
    for repeat in range(4):
        first = repeat * 1_000_000
        writer = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(tmp_path), str(first)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(PROJECT)},
        )
        assert writer.stdout is not None
        for _ in range(random.randrange(1, 15)):
            acknowledged.add(int(writer.stdout.readline()))
        # The moment within a write is the scheduler's: a spin of random length is finer than a sleep.
        for _ in range(random.randrange(200_000)):
            pass
        writer.kill()
        acknowledged.update(int(line) for line in writer.stdout.read().splitlines())
        writer.wait()
        writer.stdout.close()

        index = make(tmp_path)
        batches = Counter(row_id.split("-")[0] for row_id in index.row_ids())
        assert set(batches.values()) == {20}
        assert {str(batch) for batch in acknowledged} <= set(batches)
        index.write("00", [row("after", "phoenix")])
        assert found(index, "phoenix") == ["after"]
        index.delete("00", ["after"])
        index.close()
