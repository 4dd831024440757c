import pytest
from hypothesis import given
from hypothesis import strategies as st

from primer_core.fusion import RRF_K, reciprocal_rank_fusion

ranking = st.lists(st.sampled_from("abcdefgh"), unique=True)


def test_scores_are_the_sum_of_reciprocal_ranks() -> None:
    fused = dict(reciprocal_rank_fusion([["a", "b"], ["b"]]))
    assert RRF_K == 60
    assert fused["a"] == pytest.approx(1 / 61)
    assert fused["b"] == pytest.approx(1 / 62 + 1 / 61)


def test_what_both_lists_hold_comes_before_what_one_holds_first() -> None:
    assert next(key for key, _ in reciprocal_rank_fusion([["only", "both"], ["other", "both"]])) == "both"


@given(ranking, ranking)
def test_every_id_comes_once_in_a_stable_order_whichever_list_is_first(one: list[str], two: list[str]) -> None:
    fused = reciprocal_rank_fusion([one, two])
    assert sorted(key for key, _ in fused) == sorted(set(one) | set(two))
    assert fused == sorted(fused, key=lambda item: (-item[1], item[0]))
    assert [key for key, _ in fused] == [key for key, _ in reciprocal_rank_fusion([two, one])]


@given(ranking)
def test_one_list_keeps_its_order(one: list[str]) -> None:
    assert [key for key, _ in reciprocal_rank_fusion([one, []])] == one
    assert [key for key, _ in reciprocal_rank_fusion([one, one])] == one


def test_nothing_fuses_to_nothing() -> None:
    assert reciprocal_rank_fusion([]) == reciprocal_rank_fusion([[], []]) == []
