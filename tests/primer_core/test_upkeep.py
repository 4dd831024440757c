from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primer_core.upkeep import TableStats, decide_upkeep

HEALTHY = TableStats(rows=1_000_000, small_fragments=0, deletion_files=0, unindexed_rows=0, old_versions=0)


def test_a_healthy_table_is_left_alone() -> None:
    decision = decide_upkeep(HEALTHY)
    assert not decision.should
    assert decision.reasons == ()


@pytest.mark.parametrize(
    ("figure", "limit"),
    [("small_fragments", 200), ("deletion_files", 64), ("unindexed_rows", 20_000), ("old_versions", 1_000)],
)
def test_each_threshold_alone_makes_upkeep_due_and_is_named(figure: str, limit: int) -> None:
    due = decide_upkeep(replace(HEALTHY, **{figure: limit}))
    assert due.should
    assert len(due.reasons) == 1
    assert str(limit) in due.reasons[0]
    assert not decide_upkeep(replace(HEALTHY, **{figure: limit - 1})).should


def test_a_small_table_is_due_at_five_percent_unindexed_rows() -> None:
    assert decide_upkeep(replace(HEALTHY, rows=100_000, unindexed_rows=5_000)).should
    assert not decide_upkeep(replace(HEALTHY, rows=100_000, unindexed_rows=4_999)).should


def test_a_handful_of_unindexed_rows_is_no_reason_however_small_the_table() -> None:
    assert not decide_upkeep(replace(HEALTHY, rows=10, unindexed_rows=10)).should


def test_an_index_that_the_table_has_grown_to_need_is_a_reason() -> None:
    decision = decide_upkeep(replace(HEALTHY, missing_indexes=("row_id", "acl_ids")))
    assert decision.should
    assert "row_id, acl_ids" in decision.reasons[0]


figures = st.integers(min_value=0, max_value=50_000)


@given(
    figures, figures, figures, figures, st.sampled_from(["small_fragments", "deletion_files", "unindexed_rows", "old_versions"]), figures
)
def test_more_wear_never_makes_upkeep_less_due(
    fragments: int, deletions: int, unindexed: int, versions: int, which: str, more: int
) -> None:
    stats = TableStats(100_000, fragments, deletions, unindexed, versions)
    worse = replace(stats, **{which: getattr(stats, which) + more})
    assert decide_upkeep(worse).should >= decide_upkeep(stats).should
    assert len(decide_upkeep(worse).reasons) >= len(decide_upkeep(stats).reasons)


@given(figures, figures, figures, figures)
def test_upkeep_is_due_exactly_when_there_is_a_reason(fragments: int, deletions: int, unindexed: int, versions: int) -> None:
    decision = decide_upkeep(TableStats(100_000, fragments, deletions, unindexed, versions))
    assert decision.should == bool(decision.reasons)
