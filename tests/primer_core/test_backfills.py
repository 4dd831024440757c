"""Backfills: the reason is what the recipes say, the rate is kept whatever the clock does, and the figures add up."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primer_core.backfills import BURST, BackfillReason, Progress, allowance, check_reason, is_remade, reason_of, spent
from primer_core.failures import PrimerError
from primer_core.recipe import ChunkerSpec, EmbeddingSpec, ParserSpec, Recipe

LIVE = Recipe(ParserSpec("docling", "1"), ChunkerSpec("hybrid", "docling", 400, 15), EmbeddingSpec("m", "1", 4, "", True, "f32", 64))
NEW_MODEL = replace(LIVE, embedding=replace(LIVE.embedding, revision="2"))
NEW_CHUNKER = replace(NEW_MODEL, chunker=replace(LIVE.chunker, max_tokens=200))
NEW_PARSER = replace(NEW_CHUNKER, parser=ParserSpec("docling", "2"))
START = datetime(2026, 1, 1, tzinfo=UTC)


def test_the_reason_is_the_earliest_part_that_differs() -> None:
    assert [reason_of(LIVE, each) for each in (NEW_MODEL, NEW_CHUNKER, NEW_PARSER)] == [
        BackfillReason.EMBEDDING_MODEL,
        BackfillReason.CHUNKER,
        BackfillReason.PARSER,
    ]
    with pytest.raises(PrimerError, match="the two recipes are the same"):
        reason_of(LIVE, LIVE)
    with pytest.raises(PrimerError, match=r"chunker max_tokens 400.*say --reason chunker"):
        check_reason(BackfillReason.EMBEDDING_MODEL, LIVE, NEW_CHUNKER, "v2")


def test_what_failed_before_the_new_part_would_fail_again() -> None:
    stages = ("fetch", "parse", "chunk", "embed", "write")
    assert [is_remade(stage, LIVE, NEW_MODEL) for stage in stages] == [False, False, False, True, True]
    assert [is_remade(stage, LIVE, NEW_CHUNKER) for stage in stages] == [False, False, True, True, True]
    assert [is_remade(stage, LIVE, NEW_PARSER) for stage in stages] == [False, True, True, True, True]


@given(
    rate=st.floats(0.01, 1000),
    steps=st.lists(st.tuples(st.integers(0, 120_000), st.integers(1, 500)), min_size=1, max_size=30),
)
def test_no_more_is_taken_up_than_the_rate_earns_and_one_burst(rate: float, steps: list[tuple[int, int]]) -> None:
    now, since, taken = START, START, 0
    for passed_ms, limit in steps:
        now += timedelta(milliseconds=passed_ms)
        allowed = allowance(rate, since, now, limit)
        assert 0 <= allowed.documents <= min(limit, int(BURST.total_seconds() * rate) + 1)
        since = spent(rate, allowed.since, allowed.documents)
        taken += allowed.documents
        assert taken <= (now - START).total_seconds() * rate + 1e-3 * len(steps)


def test_without_a_rate_only_the_limit_counts() -> None:
    assert allowance(None, START, START, 200).documents == 200


def test_the_time_that_is_left_follows_the_pace_so_far() -> None:
    now = START + timedelta(minutes=10)
    assert Progress(100, 40, 10).eta(START, now) == timedelta(minutes=10)
    assert Progress(100, 0, 0).eta(START, now) is None
    assert Progress(100, 90, 10).eta(START, now) == timedelta(0)
