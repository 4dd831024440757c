from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from primer_core.failures import PrimerError
from primer_resources.embedder.base import CacheSize, Vector
from primer_resources.embedder.cache import LOOKUP_KEYS, LanceEmbeddingCache

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def vectors(count: int, start: int = 0) -> dict[str, Vector]:
    made = np.random.default_rng(start).standard_normal((count, 3)).astype(np.float32)
    return {f"{start + n:032x}": made[n] for n in range(count)}


def test_a_cache_never_written_to_knows_nothing(tmp_path: Path) -> None:
    cache = LanceEmbeddingCache(str(tmp_path), "m@1")
    assert cache.get(["k"]) == {}
    cache.delete(["k"])
    cache.put({})
    assert cache.size() == CacheSize(0, 0)
    assert not cache.upkeep(NOW).decision.should


def test_vectors_come_back_bit_for_bit_under_their_own_keys(tmp_path: Path) -> None:
    kept = vectors(2 * LOOKUP_KEYS + 5)
    LanceEmbeddingCache(str(tmp_path), "m@1").put(kept)
    found = LanceEmbeddingCache(str(tmp_path), "m@1").get([*reversed(kept), "unknown"])
    assert found.keys() == kept.keys()
    assert all(found[key].dtype == np.float32 and found[key].tobytes() == kept[key].tobytes() for key in kept)


def test_a_key_put_again_is_kept_once_and_keeps_its_first_vector(tmp_path: Path) -> None:
    cache = LanceEmbeddingCache(str(tmp_path), "m@1")
    kept = vectors(10)
    cache.put(kept)
    cache.put({**vectors(5, start=10), **{key: vector + 1 for key, vector in kept.items()}})
    assert cache.size().vectors == 15
    found = cache.get(kept)
    assert all(np.array_equal(found[key], kept[key]) for key in kept)


def test_a_put_of_known_keys_makes_no_commit(tmp_path: Path) -> None:
    cache = LanceEmbeddingCache(str(tmp_path), "m@1")
    cache.put(vectors(10))
    before = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    cache.put(vectors(10))
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == before


def test_models_do_not_share_vectors(tmp_path: Path) -> None:
    first, second = LanceEmbeddingCache(str(tmp_path), "m@1;dims=3"), LanceEmbeddingCache(str(tmp_path), "m@2;dims=5")
    first.put({"k": np.ones(3, dtype=np.float32)})
    assert second.get(["k"]) == {}
    second.put({"k": np.zeros(5, dtype=np.float32)})
    assert first.get(["k"])["k"].tolist() == [1, 1, 1]
    second.drop()
    assert first.size().vectors == 1
    assert second.get(["k"]) == {}


def test_a_handle_sees_what_another_put(tmp_path: Path) -> None:
    reader, writer = LanceEmbeddingCache(str(tmp_path), "m@1"), LanceEmbeddingCache(str(tmp_path), "m@1")
    writer.put(vectors(1))
    assert len(reader.get(vectors(1))) == 1
    writer.put(vectors(1, start=9))
    assert len(reader.get(vectors(1, start=9))) == 1


BAD = {
    "dims of their own": {"a": np.ones(3, dtype=np.float32), "b": np.ones(4, dtype=np.float32)},
    "not finite": {"a": np.array([1, np.nan, 1], dtype=np.float32)},
    "dims of another table": {"a": np.ones(4, dtype=np.float32)},
}


@pytest.mark.parametrize("kind", BAD)
def test_vectors_that_cannot_be_the_models_are_refused_whole(tmp_path: Path, kind: str) -> None:
    cache = LanceEmbeddingCache(str(tmp_path), "m@1")
    cache.put({"k": np.ones(3, dtype=np.float32)})
    with pytest.raises(PrimerError, match=r"dims|shape"):
        cache.put(BAD[kind])
    assert cache.size().vectors == 1


def test_the_index_on_keys_changes_no_answer(tmp_path: Path) -> None:
    cache = LanceEmbeddingCache(str(tmp_path), "m@1", index_from_rows=1_000)
    kept = vectors(1_500)
    cache.put(kept)
    result = cache.upkeep(NOW)
    assert "no index yet on key" in result.decision.reasons[0]
    assert result.error is None
    late = vectors(20, start=5_000)
    cache.put(late)
    found = cache.get([*kept, *late, "unknown"])
    assert found.keys() == {*kept, *late}
    assert all(np.array_equal(found[key], vector) for key, vector in {**kept, **late}.items())
    cache.put(kept)
    assert cache.size().vectors == 1_520


def test_a_forgotten_vector_is_gone_and_only_it(tmp_path: Path) -> None:
    cache = LanceEmbeddingCache(str(tmp_path), "m@1")
    kept = vectors(4)
    cache.put(kept)
    gone, *rest = kept
    cache.delete([gone, "unknown"])
    assert cache.get(kept).keys() == set(rest)
    cache.put({gone: kept[gone]})
    assert cache.get(kept).keys() == kept.keys()
