"""Two lists of scored passages become one order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primer_core.fusion import VECTOR_WEIGHT, fuse_scores

Scored = list[tuple[str, float]]


def scored(low: int, high: int) -> st.SearchStrategy[Scored]:
    """A list of ids with scores of two decimals, best first."""
    scores = st.integers(100 * low, 100 * high).map(lambda score: score / 100)
    pairs = st.lists(st.tuples(st.sampled_from("abcdefgh"), scores), unique_by=lambda pair: pair[0])
    return pairs.map(lambda found: sorted(found, key=lambda pair: (-pair[1], pair[0])))


def order(by_vector: Scored, by_keyword: Scored) -> list[str]:
    return [key for key, _ in fuse_scores(by_vector, by_keyword)]


def test_a_score_is_the_weighed_sum_of_both() -> None:
    fused = dict(fuse_scores([("a", 0.9), ("b", 0.7), ("c", 0.5)], [("b", 0.5)], vector_weight=0.5))
    assert fused == {"a": pytest.approx(0.5), "b": pytest.approx(0.25 + 0.25), "c": pytest.approx(0)}


def test_a_passage_with_one_common_word_does_not_come_before_the_one_that_answers() -> None:
    assert order([("answer", 0.6), ("near", 0.5), ("far", 0.1)], [("word", 0.1), ("far", 0.08)])[0] == "answer"


def test_a_passage_that_holds_all_words_comes_before_the_nearest_vector() -> None:
    assert order([("near", 0.6), ("far", 0.1)], [("code", 1.0)])[0] == "code"
    assert order([("near", 0.6), ("far", 0.1)], [("often", 3.0), ("code", 1.0)]) == ["code", "often", "near", "far"]


@given(scored(-1, 1), scored(0, 3))
def test_every_id_comes_once_with_a_score_from_0_to_1(by_vector: Scored, by_keyword: Scored) -> None:
    fused = fuse_scores(by_vector, by_keyword)
    assert sorted(key for key, _ in fused) == sorted({key for key, _ in (*by_vector, *by_keyword)})
    assert fused == sorted(fused, key=lambda item: (-item[1], item[0]))
    assert all(0 <= score <= 1 + 1e-9 for _, score in fused)


@given(scored(-1, 1), st.floats(0.01, 10), st.floats(-5, 5), scored(0, 3))
def test_the_range_of_a_models_similarities_does_not_matter(by_vector: Scored, scale: float, shift: float, by_keyword: Scored) -> None:
    moved = [(key, score * scale + shift) for key, score in by_vector]
    before, after = dict(fuse_scores(by_vector, by_keyword)), dict(fuse_scores(moved, by_keyword))
    assert after == {key: pytest.approx(score, abs=1e-6) for key, score in before.items()}


@given(scored(-1, 1))
def test_one_list_keeps_its_order(by_vector: Scored) -> None:
    assert order(by_vector, []) == [key for key, _ in by_vector]
    assert 0 < VECTOR_WEIGHT < 1
