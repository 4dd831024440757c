import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from primer_core.failures import PrimerError, SystemFault, Transient
from primer_core.recipe import EmbeddingSpec
from primer_resources.embedder.base import Vector
from primer_resources.index_base import IndexRow, Scope
from primer_resources.lance_tables import COMMIT_POLICY, KEEP_VERSIONS, StampedTable
from primer_resources.vector_index.lance_index import LISTED_IDS, MERGE_ROWS, LanceVectorIndex

PROJECT = Path(__file__).parents[3]
SPEC = EmbeddingSpec(model="m", revision="1", dims=2, prefix="", normalize=True, precision="f32", max_tokens=64)
OTHER = EmbeddingSpec(model="m", revision="2", dims=2, prefix="", normalize=True, precision="f32", max_tokens=64)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
ANYONE = Scope("t", frozenset({"a"}))
EAST = np.array([1, 0], dtype=np.float32)


def row(
    row_id: str, vector: Vector | None = EAST, acl_ids: tuple[str, ...] = ("a",), library: str = "main", page: int | None = 3
) -> IndexRow:
    return IndexRow(row_id, "c", 1, "t", library, "d", acl_ids, ("One", "Two"), page, 7, "text", vector)


def make(folder: Path, spec: EmbeddingSpec = SPEC, index_from_rows: int = 10**9) -> LanceVectorIndex:
    return LanceVectorIndex(str(folder), "v1", spec, key_index_from_rows=index_from_rows, filter_index_from_rows=index_from_rows)


def test_the_nearest_come_first_and_the_score_is_the_cosine_similarity(tmp_path: Path) -> None:
    index = make(tmp_path)
    angles = {"r:0": 0.0, "r:60": 60.0, "r:180": 180.0}
    vectors = {name: np.array([np.cos(np.radians(a)), np.sin(np.radians(a))], dtype=np.float32) * 3 for name, a in angles.items()}
    index.write([row(name, vector) for name, vector in vectors.items()])
    hits = index.search(EAST, ANYONE, 10)
    assert [hit.row_id for hit in hits] == ["r:0", "r:60", "r:180"]
    assert [hit.score for hit in hits] == pytest.approx([1.0, 0.5, -1.0], abs=1e-5)
    assert (hits[0].chunk_id, hits[0].added_gen, hits[0].doc_id) == ("c", 1, "d")


UNUSABLE = {
    "missing": None,
    "wrong dims": np.ones(3, dtype=np.float32),
    "a matrix": np.ones((1, 2), dtype=np.float32),
    "nan": np.array([1, np.nan], dtype=np.float32),
    "infinite": np.array([1, np.inf], dtype=np.float32),
    "too large for float32": np.array([1, 1e300]),
    "all zeros": np.zeros(2, dtype=np.float32),
}


@pytest.mark.parametrize("kind", UNUSABLE)
def test_a_vector_that_could_never_be_found_is_refused_with_its_whole_batch(tmp_path: Path, kind: str) -> None:
    index = make(tmp_path)
    with pytest.raises(PrimerError, match="row bad"):
        index.write([row("good"), row("bad", UNUSABLE[kind])])
    assert list(index.row_ids()) == []


def test_a_query_vector_of_another_shape_is_refused(tmp_path: Path) -> None:
    index = make(tmp_path)
    index.write([row("r:1")])
    with pytest.raises(PrimerError, match=r"\(3,\)"):
        index.search(np.ones(3, dtype=np.float32), ANYONE, 5)
    with pytest.raises(PrimerError, match="finite"):
        index.search(np.array([np.nan, 1], dtype=np.float32), ANYONE, 5)


def test_vectors_of_another_model_are_neither_written_nor_searched(tmp_path: Path) -> None:
    make(tmp_path).write([row("r:1")])
    other = make(tmp_path, OTHER)
    with pytest.raises(PrimerError, match=r"m@1.*not of m@2"):
        other.write([row("r:2")])
    with pytest.raises(PrimerError, match=r"m@1.*not of m@2"):
        other.search(EAST, ANYONE, 5)
    assert list(make(tmp_path).row_ids()) == ["r:1"]


def test_the_stamp_outlives_compaction(tmp_path: Path) -> None:
    index = make(tmp_path, index_from_rows=1)
    index.write([row("r:1")])
    assert index.upkeep(NOW).decision.should
    with pytest.raises(PrimerError, match="m@1"):
        make(tmp_path, OTHER).write([row("r:2")])


def test_a_replay_rewrites_no_row_so_indexed_rows_stay_indexed(tmp_path: Path) -> None:
    index = make(tmp_path, index_from_rows=1)
    rows = [row(f"r:{n}") for n in range(1_000)]
    index.write(rows)
    assert index.upkeep(NOW).decision.should
    index.write(rows)
    assert index.upkeep(NOW).decision.reasons == ()
    index.write([row(each.row_id, acl_ids=("b",)) for each in rows])
    assert "1000 of 1000 rows unindexed" in index.upkeep(NOW).decision.reasons[0]


def test_more_rows_than_a_commit_or_a_listing_page_all_arrive(tmp_path: Path) -> None:
    index = make(tmp_path)
    count = max(LISTED_IDS, 2 * MERGE_ROWS) + 1
    index.write([row(f"{n}:1") for n in range(count)])
    ids = list(index.row_ids())
    assert len(ids) == count
    assert set(ids) == {f"{n}:1" for n in range(count)}
    index.delete(ids[1:])
    assert list(index.row_ids()) == ids[:1]


def test_a_reader_opened_before_sees_what_another_handle_writes_and_deletes(tmp_path: Path) -> None:
    reader, writer = make(tmp_path), make(tmp_path)
    assert reader.search(EAST, ANYONE, 5) == []
    writer.write([row("r:1"), row("r:2")])
    assert {hit.row_id for hit in reader.search(EAST, ANYONE, 5)} == {"r:1", "r:2"}
    writer.delete(["r:1"])
    assert [hit.row_id for hit in reader.search(EAST, ANYONE, 5)] == ["r:2"]
    assert list(reader.row_ids()) == ["r:2"]


def test_a_dropped_index_is_empty_for_every_handle_and_can_be_made_anew(tmp_path: Path) -> None:
    reader, writer = make(tmp_path), make(tmp_path)
    writer.write([row("r:1")])
    assert len(reader.search(EAST, ANYONE, 5)) == 1
    writer.drop()
    writer.drop()
    assert reader.search(EAST, ANYONE, 5) == []
    assert list(reader.row_ids()) == []
    writer.write([row("r:2")])
    assert [hit.row_id for hit in reader.search(EAST, ANYONE, 5)] == ["r:2"]


def test_rows_merge_by_id_after_upkeep_has_run_twice_over_the_same_indexes(tmp_path: Path) -> None:
    index = make(tmp_path, index_from_rows=1)
    first = [row(f"r:{n}") for n in range(1_000)]
    index.write(first)
    assert index.upkeep(NOW).error is None
    index.write([row(each.row_id, acl_ids=("b",)) for each in first])
    second = index.upkeep(NOW)
    assert second.decision.should
    assert second.error is None
    index.write([*(row(each.row_id, acl_ids=("a",)) for each in first), row("new")])
    assert sorted(index.row_ids()) == sorted([*(each.row_id for each in first), "new"])


def test_upkeep_that_is_not_due_changes_nothing(tmp_path: Path) -> None:
    index = make(tmp_path)
    assert not index.upkeep(NOW).decision.should
    index.write([row("r:1")])
    before = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    result = index.upkeep(NOW)
    assert not result.decision.should
    assert result.error is None
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == before


def test_failed_maintenance_is_reported_and_writing_goes_on(tmp_path: Path) -> None:
    index = make(tmp_path, index_from_rows=10)
    index.write([row(f"r:{n}") for n in range(10)])
    (data,) = (tmp_path / "v1.lance" / "data").iterdir()
    hidden = data.rename(tmp_path / "hidden")
    result = index.upkeep(NOW)
    assert result.decision.should
    assert result.error is not None
    assert "not found" in result.error.lower()
    hidden.rename(data)
    index.write([row("new")])
    assert len(list(index.row_ids())) == 11
    assert index.upkeep(NOW).error is None


text = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=12)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(held=text, asked=st.one_of(text, st.sampled_from(["'", "''", "') OR 1=1 --", "%", "\\", 'a"b', "\x00"])))
def test_no_value_of_a_scope_widens_it(tmp_path: Path, held: str, asked: str) -> None:
    index = make(tmp_path)
    index.write([row("r:1", acl_ids=(held,), library=held), row("secret", acl_ids=("secret",), library="secret")])
    by_acl = index.search(EAST, Scope("t", frozenset({asked})), 5)
    assert [hit.row_id for hit in by_acl] == (["r:1"] if asked == held else [])
    by_library = index.search(EAST, Scope("t", frozenset({held}), frozenset({asked})), 5)
    assert [hit.row_id for hit in by_library] == (["r:1"] if asked == held else [])
    assert index.search(EAST, Scope(asked, frozenset({held})), 5) == ([] if asked != "t" else by_acl)


WRITER = """
import sys
import numpy as np
from pathlib import Path
from primer_core.recipe import EmbeddingSpec
from primer_resources.index_base import IndexRow
from primer_resources.vector_index.lance_index import LanceVectorIndex

folder, who = sys.argv[1], sys.argv[2]
index = LanceVectorIndex(folder, "v1", EmbeddingSpec("m", "1", 2, "", True, "f32", 64))
print("ready", flush=True)
sys.stdin.readline()
for batch in range(12):
    names = [f"both-{batch}-{n}" for n in range(20)] + [f"{who}-{batch}-{n}" for n in range(20)]
    index.write([IndexRow(name, "c", 1, "t", "main", "d", ("a",), (), None, 0, "", np.ones(2, dtype=np.float32)) for name in names])
"""


def test_processes_that_write_at_once_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    who = ["p0", "p1"]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        for name in who
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate(timeout=60)
    assert [writer.returncode for writer in writers] == [0, 0]
    ids = list(make(tmp_path).row_ids())
    assert len(ids) == len(set(ids))
    assert set(ids) == {f"{name}-{batch}-{n}" for name in ["both", *who] for batch in range(12) for n in range(20)}


def test_old_versions_count_only_once_they_may_be_removed(tmp_path: Path) -> None:
    make(tmp_path).write([row("r:1")])
    table = StampedTable(str(tmp_path), "v1", SPEC.version, ())
    now = datetime.now(UTC)
    soon, later = table.stats(now), table.stats(now + KEEP_VERSIONS + timedelta(minutes=1))
    assert soon is not None
    assert later is not None
    assert soon.old_versions == 0
    assert later.old_versions == 2


def test_a_conflict_is_tried_again_until_it_is_transient_and_a_full_disk_is_not(tmp_path: Path) -> None:
    make(tmp_path).write([row("r:1")])
    waits: list[float] = []
    table = StampedTable(str(tmp_path), "v1", SPEC.version, (), sleep=waits.append, random=Random(1))
    handle = table.open()
    assert handle is not None
    conflict = "lance error: Commit conflict for version 5: Failed to commit the transaction after 20 retries."
    outcomes = [RuntimeError(conflict), RuntimeError("lance error: Too many concurrent writers."), None]

    def change(_: object) -> str:
        error = outcomes.pop(0)
        if error is not None:
            raise error
        return "done"

    assert table.commit(handle, change) == "done"
    assert len(waits) == 2
    assert 0 < waits[0] < waits[1] <= COMMIT_POLICY.cap.total_seconds()

    outcomes[:] = [RuntimeError(conflict)] * COMMIT_POLICY.max_attempts
    with pytest.raises(Transient, match="conflicted"):
        table.commit(handle, change)
    assert len(waits) == 2 + COMMIT_POLICY.max_attempts - 1

    outcomes[:] = [RuntimeError("lance error: LanceError(IO): No space left on device")]
    with pytest.raises(SystemFault, match="No space left"):
        table.commit(handle, change)
