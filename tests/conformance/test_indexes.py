"""What both indexes must do alike: rows, scope and ids. One suite, run against each of them in each of its physical states."""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Protocol

import numpy as np
import pytest

from primer_core import upkeep
from primer_core.recipe import EmbeddingSpec
from primer_resources.index_base import IndexRow, Scope
from primer_resources.keyword_index.tantivy_index import TantivyKeywordIndex
from primer_resources.vector_index.lance_index import LanceVectorIndex

DIMS = 4
SPEC = EmbeddingSpec(model="m", revision="1", dims=DIMS, prefix="", normalize=True, precision="f32", max_tokens=64)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
EVERYTHING = 10_000
SMALL_FRAGMENTS = 12
"""How many commits make the flat table due for compaction here; the real threshold costs 200 commits a test."""
BUCKETS = ("00", "01", "02")
QUOTED = "o'brien\\\" OR ''=''--"
ACLS = ("a", "b", "ab", "a b", "a,b", "B", QUOTED, "ü")
TENANTS = ("acme", "acme2", QUOTED)
LIBRARIES = ("main", "hr", QUOTED)


def row(row_id: str, acl_ids: Sequence[str] = ("a",), tenant: str = "acme", library: str = "main", added_gen: int = 1) -> IndexRow:
    """A row that the suite's query matches."""
    vector = np.array([1.0, 0.1, 0.0, 0.0], dtype=np.float32)
    return IndexRow(
        row_id,
        f"chunk of {row_id}",
        added_gen,
        tenant,
        library,
        f"doc of {row_id}",
        tuple(acl_ids),
        ("Intro",),
        None,
        0,
        "common word",
        vector,
    )


class Index(Protocol):
    """An index under test."""

    def write(self, rows: Sequence[IndexRow]) -> None: ...
    def delete(self, row_ids: Sequence[str]) -> None: ...
    def found(self, scope: Scope, limit: int = EVERYTHING) -> list[str]: ...
    def row_ids(self) -> list[str]: ...

    def present(self, row_ids: Sequence[str]) -> set[str]: ...
    def compact(self) -> None: ...


class Vectors:
    """The vector index, with its scalar indexes or without."""

    def __init__(self, folder: Path, index_from_rows: int) -> None:
        self._index = LanceVectorIndex(str(folder), "v1", SPEC, key_index_from_rows=index_from_rows, filter_index_from_rows=index_from_rows)
        self._indexed = index_from_rows == 1
        self._compactions = 0

    def write(self, rows: Sequence[IndexRow]) -> None:
        self._index.write(rows)

    def delete(self, row_ids: Sequence[str]) -> None:
        self._index.delete(row_ids)

    def found(self, scope: Scope, limit: int = EVERYTHING) -> list[str]:
        return [hit.row_id for hit in self._index.search(np.array([1, 0, 0, 0], dtype=np.float32), scope, limit)]

    def row_ids(self) -> list[str]:
        return list(self._index.row_ids())

    def present(self, row_ids: Sequence[str]) -> set[str]:
        return self._index.present(row_ids)

    def compact(self) -> None:
        """Wear the table until upkeep is due, and let it run."""
        fill = [row(f"fill-{self._compactions}-{n}", ["fill"], tenant="fill") for n in range(1_000 if self._indexed else SMALL_FRAGMENTS)]
        self._compactions += 1
        if self._indexed:
            self._index.write(fill)
        else:
            for each in fill:
                self._index.write([each])
        result = self._index.upkeep(NOW)
        assert result.error is None
        assert result.decision.should
        self._index.delete([each.row_id for each in fill])


class Keywords:
    """The keyword index, rows spread over shards."""

    def __init__(self, root: Path, buckets: Sequence[str]) -> None:
        self._index = TantivyKeywordIndex(root, "chunker 1", heap_bytes=15_000_000)
        self._buckets = buckets

    def _bucket(self, row_id: str) -> str:
        return self._buckets[sum(row_id.encode()) % len(self._buckets)]

    def write(self, rows: Sequence[IndexRow]) -> None:
        for bucket in self._buckets:
            self._index.write(bucket, [each for each in rows if self._bucket(each.row_id) == bucket])

    def delete(self, row_ids: Sequence[str]) -> None:
        for bucket in self._buckets:
            self._index.delete(bucket, [each for each in row_ids if self._bucket(each) == bucket])

    def found(self, scope: Scope, limit: int = EVERYTHING) -> list[str]:
        return [hit.row_id for hit in self._index.search("common", scope, limit)]

    def row_ids(self) -> list[str]:
        return list(self._index.row_ids())

    def present(self, row_ids: Sequence[str]) -> set[str]:
        return {
            found
            for bucket in self._buckets
            for found in self._index.present(bucket, [each for each in row_ids if self._bucket(each) == bucket])
        }

    def compact(self) -> None:
        """Write enough small segments for a merge, and wait for it."""
        for n in range(10):
            self._index.write(self._buckets[0], [row(f"fill-{n}", ["fill"], tenant="fill")])
        self._index.close()
        self._index.delete(self._buckets[0], [f"fill-{n}" for n in range(10)])

    def close(self) -> None:
        self._index.close()


MAKERS: dict[str, Callable[[Path], Index]] = {
    "vector, flat": lambda folder: Vectors(folder, 10**9),
    "vector, indexed": lambda folder: Vectors(folder, 1),
    "keyword, one shard": lambda folder: Keywords(folder / "keywords", BUCKETS[:1]),
    "keyword, three shards": lambda folder: Keywords(folder / "keywords", BUCKETS),
}


@pytest.fixture(params=MAKERS)
def index(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    monkeypatch.setattr(upkeep, "MAX_SMALL_FRAGMENTS", SMALL_FRAGMENTS)
    made = MAKERS[request.param](tmp_path)
    yield made
    if isinstance(made, Keywords):
        made.close()


def scope(*acl_ids: str, tenant: str = "acme", libraries: Sequence[str] | None = None) -> Scope:
    return Scope(tenant, frozenset(acl_ids), None if libraries is None else frozenset(libraries))


def test_an_index_that_was_never_written_is_empty(index: Index) -> None:
    index.delete(["nothing"])
    assert index.found(scope("a")) == []
    assert index.row_ids() == []


def test_a_row_is_found_as_soon_as_it_is_written(index: Index) -> None:
    index.write([row("r:1")])
    assert index.found(scope("a")) == ["r:1"]
    index.write([row("r:2")])
    assert sorted(index.found(scope("a"))) == ["r:1", "r:2"]


def test_a_replayed_write_leaves_one_row(index: Index) -> None:
    rows = [row(f"c{n}:1") for n in range(7)]
    for _ in range(3):
        index.write(rows)
    assert sorted(index.row_ids()) == sorted(each.row_id for each in rows)
    assert sorted(index.found(scope("a"))) == sorted(each.row_id for each in rows)


def test_a_replay_after_compaction_leaves_one_row(index: Index) -> None:
    rows = [row(f"c{n}:1") for n in range(7)]
    index.write(rows)
    index.compact()
    index.write(rows)
    index.compact()
    index.write(rows)
    assert sorted(index.row_ids()) == sorted(each.row_id for each in rows)


def test_equal_ids_in_one_batch_are_one_row_and_the_last_counts(index: Index) -> None:
    index.write([row("r:1", ["a"]), row("r:1", ["b"])])
    assert index.row_ids() == ["r:1"]
    assert index.found(scope("a")) == []
    assert index.found(scope("b")) == ["r:1"]


def test_a_row_written_again_under_another_acl_leaves_the_old_one(index: Index) -> None:
    index.write([row("r:1", ["a"]), row("r:2", ["a"])])
    index.write([row("r:1", ["b"])])
    assert index.found(scope("a")) == ["r:2"]
    assert index.found(scope("b")) == ["r:1"]
    index.write([row("r:1", [])])
    assert index.found(scope("a", "b")) == ["r:2"]
    assert sorted(index.row_ids()) == ["r:1", "r:2"]


def test_deleted_rows_are_gone_and_only_they(index: Index) -> None:
    ids = ["0f3a:1", "0f3a:11", "0f3a-b:1", "0f3a_b:1", "0F3A:1", QUOTED]
    index.write([row(each) for each in ids])
    index.delete(["0f3a:1", "0f3a_b:1", QUOTED, "unknown"])
    assert sorted(index.row_ids()) == ["0F3A:1", "0f3a-b:1", "0f3a:11"]
    assert sorted(index.found(scope("a"))) == ["0F3A:1", "0f3a-b:1", "0f3a:11"]


def test_rows_are_looked_up_by_id_and_a_deleted_one_is_not_found(index: Index) -> None:
    assert index.present(["1", "2"]) == set()
    index.write([row("1", ["a"]), row("2", ["b"]), row("0f3a-b_c:1", ["a"])])
    assert index.present(["1", "0f3a-b_c:1", "0f3a", "nothing", "1"]) == {"1", "0f3a-b_c:1"}
    index.delete(["1"])
    assert index.present(["1", "2"]) == {"2"}
    assert index.present([]) == set()


def test_a_deleted_row_can_come_back(index: Index) -> None:
    index.write([row("r:1")])
    index.delete(["r:1"])
    index.compact()
    assert index.found(scope("a")) == []
    index.write([row("r:1")])
    assert index.found(scope("a")) == ["r:1"]


def test_who_opens_no_acl_sees_nothing(index: Index) -> None:
    index.write([row("r:1", ["a"]), row("open to no one", [])])
    assert index.found(scope()) == []


def test_no_library_sees_nothing_and_none_named_sees_all(index: Index) -> None:
    index.write([row("r:1", library="main"), row("r:2", library="hr")])
    assert index.found(scope("a", libraries=[])) == []
    assert sorted(index.found(scope("a"))) == ["r:1", "r:2"]
    assert index.found(scope("a", libraries=["hr"])) == ["r:2"]


def test_a_limit_is_kept_and_none_is_too_large_or_small(index: Index) -> None:
    index.write([row(f"c{n}:1") for n in range(9)])
    assert len(index.found(scope("a"), 4)) == 4
    assert len(set(index.found(scope("a"), 10**9))) == 9
    assert index.found(scope("a"), 0) == []


def test_rows_out_of_scope_take_no_place_among_the_best(index: Index) -> None:
    index.write([row(f"hidden-{n:02}", ["b"]) for n in range(50)])
    index.write([row(f"shown-{n}", ["a"]) for n in range(3)])
    index.write([row(f"other-{n:02}", ["a"], library="hr") for n in range(50)])
    assert sorted(index.found(scope("a", libraries=["main"]), 3)) == ["shown-0", "shown-1", "shown-2"]


def allowed(rows: dict[str, IndexRow], wanted: Scope) -> list[str]:
    """The rows a scope may see, by the words of the rule."""
    return sorted(
        each.row_id
        for each in rows.values()
        if each.tenant_id == wanted.tenant_id
        and not wanted.acl_ids.isdisjoint(each.acl_ids)
        and (wanted.libraries is None or each.library in wanted.libraries)
    )


def test_the_list_filter_lets_through_the_allowed_set_before_and_after_compaction_and_delete(index: Index) -> None:
    random = Random(8)
    rows = {
        each.row_id: each
        for each in (
            row(f"{n:04x}:1", random.sample(ACLS, random.randrange(4)), random.choice(TENANTS), random.choice(LIBRARIES))
            for n in range(300)
        )
    }
    scopes = [
        Scope(
            random.choice(TENANTS),
            frozenset(random.sample((*ACLS, "unknown", "a' , 'b"), random.randrange(1, 5))),
            random.choice([None, frozenset(random.sample(LIBRARIES, 2)), frozenset({"unknown"})]),
        )
        for _ in range(25)
    ]

    def check() -> None:
        for wanted in scopes:
            assert sorted(index.found(wanted)) == allowed(rows, wanted)
        assert sorted(index.row_ids()) == sorted(rows)

    index.write(list(rows.values()))
    check()
    index.compact()
    check()
    gone = random.sample(sorted(rows), 60)
    index.delete(gone)
    for each in gone:
        del rows[each]
    check()
    late = [row(f"late-{n}", random.sample(ACLS, 2), random.choice(TENANTS)) for n in range(40)]
    index.write(late)
    rows.update({each.row_id: each for each in late})
    check()
    index.compact()
    check()


def test_a_scope_of_thousands_of_acls_is_one_query(index: Index) -> None:
    index.write([row("r:1", ["acl-4999"]), row("r:2", ["acl-5000"])])
    assert index.found(scope(*(f"acl-{n}" for n in range(5_000)))) == ["r:1"]
