"""The delete guard: no listing deletes much without a second word."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primer_core.delete_guard import DeleteDecision, Verdict, decide_deletes, delete_allowance, vanishing_digest

counts = st.integers(0, 10_000).flatmap(lambda known: st.tuples(st.just(known), st.integers(0, known)))
digests = st.sampled_from(["digest a", "digest b"])
maybe_digests = st.none() | digests


def decide(known: int, vanishing: int, *, digest: str = "now", held: str | None = None, complete: bool = True) -> DeleteDecision:
    return decide_deletes(known=known, vanishing=vanishing, digest=digest, complete=complete, previously_held=held)


@given(counts, digests, maybe_digests, maybe_digests)
def test_an_incomplete_listing_deletes_nothing_and_leaves_a_hold_as_it_was(
    of: tuple[int, int], digest: str, held: str | None, approved: str | None
) -> None:
    decision = decide_deletes(known=of[0], vanishing=of[1], digest=digest, complete=False, previously_held=held, approved=approved)
    assert decision.verdict is Verdict.REFUSE
    assert decision.held == held
    assert decision.reasons


@given(counts, digests, maybe_digests, maybe_digests)
def test_more_than_the_allowance_goes_only_with_a_second_word_on_the_very_set(
    of: tuple[int, int], digest: str, held: str | None, approved: str | None
) -> None:
    known, vanishing = of
    decision = decide_deletes(known=known, vanishing=vanishing, digest=digest, complete=True, previously_held=held, approved=approved)
    confirmed = digest in (held, approved)
    much = vanishing > 10 and vanishing / known > 0.05
    if much and vanishing > int(known * 0.05) and not confirmed:
        assert decision == DeleteDecision(Verdict.HOLD, decision.reasons, digest)
        assert any(str(vanishing) in reason for reason in decision.reasons)
    else:
        assert (decision.verdict, decision.held) == (Verdict.APPLY, None)


@pytest.mark.parametrize(
    ("known", "vanishing", "verdict"),
    [
        (0, 0, Verdict.APPLY),
        (10, 10, Verdict.APPLY),
        (11, 11, Verdict.HOLD),
        (100, 10, Verdict.APPLY),
        (100, 11, Verdict.HOLD),
        (1_000, 50, Verdict.APPLY),
        (1_000, 51, Verdict.HOLD),
        (1_019, 51, Verdict.HOLD),
        (1_020, 51, Verdict.APPLY),
    ],
)
def test_the_allowance_is_the_greater_of_ten_documents_and_five_percent(known: int, vanishing: int, verdict: Verdict) -> None:
    assert decide(known, vanishing).verdict is verdict
    assert (vanishing <= delete_allowance(known)) is (verdict is Verdict.APPLY)


def test_a_broken_source_is_held_through_errors_until_a_second_listing_agrees() -> None:
    # A listing that breaks off, an empty one, one that shows 2 %, and the same 2 % again.
    broken = decide(1_000, 700, digest="rest of the pages", complete=False)
    empty = decide(1_000, 1_000, digest="all", held=broken.held)
    few = decide(1_000, 980, digest="all but twenty", held=empty.held)
    broken_again = decide(1_000, 990, digest="whatever", held=few.held, complete=False)
    agreed = decide(1_000, 980, digest="all but twenty", held=broken_again.held)
    assert [d.verdict for d in (broken, empty, few, broken_again, agreed)] == [
        Verdict.REFUSE,
        Verdict.HOLD,
        Verdict.HOLD,
        Verdict.REFUSE,
        Verdict.APPLY,
    ]
    assert agreed.held is None


def test_a_source_that_came_back_forgets_what_was_held() -> None:
    held = decide(1_000, 1_000, digest="all")
    back = decide(1_000, 0, digest="none", held=held.held)
    assert (back.verdict, back.held) == (Verdict.APPLY, None)
    assert decide(1_000, 1_000, digest="all", held=back.held).verdict is Verdict.HOLD


@pytest.mark.parametrize("counts", [(5, 6), (5, -1)])
def test_counts_that_contradict_each_other_are_refused(counts: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="count them in one transaction"):
        decide(*counts)


@given(st.sets(st.text(max_size=4), max_size=8), st.sets(st.text(max_size=4), max_size=8))
def test_digests_are_equal_exactly_when_the_sets_are(one: set[str], other: set[str]) -> None:
    assert (vanishing_digest(iter(sorted(one))) == vanishing_digest(iter(sorted(other)))) is (one == other)


def test_the_digest_format_is_stored_and_stays() -> None:
    assert vanishing_digest([]) == "d6f87108a5fc3e70229ec27c640bcea12d04beb215a5d3da1ede277972f5ff11"
    assert vanishing_digest(["00ab", "00ac"]) == "17a83a8a76c3124f2e8cabed3bba95df17caaf1fa8402930027bdd7f02a611d7"


@pytest.mark.parametrize("ids", [["b", "a"], ["a", "a"]])
def test_ids_out_of_order_or_repeated_are_refused(ids: list[str]) -> None:
    with pytest.raises(ValueError, match="sort them"):
        vanishing_digest(ids)
