"""The verdict over two runs: by format, by counts, with an interval that is the bootstrap's."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primer_core.failures import PrimerError
from primer_core.golden.comparison import Comparison, Difference, compare
from primer_core.golden.figures import Outcome

runs = st.lists(st.tuples(st.sampled_from(["pdf", "html"]), st.booleans(), st.booleans()), min_size=1, max_size=20)


def compared(*pairs: tuple[str, bool, bool], resamples: int = 400) -> Comparison:
    """Compare runs of (format, answered by the candidate, answered by the live version)."""
    ours = [Outcome(str(n), format_, 1 if mine else None) for n, (format_, mine, _) in enumerate(pairs)]
    theirs = [Outcome(str(n), format_, 1 if other else None) for n, (format_, _, other) in enumerate(pairs)]
    return compare(ours, theirs, Random(7), resamples)


def by_format(comparison: Comparison) -> dict[str, Difference]:
    return {difference.format: difference for difference in comparison.differences}


def test_a_gain_in_one_format_does_not_pay_for_a_loss_in_another() -> None:
    comparison = compared(("pdf", True, False), ("pdf", True, False), ("html", False, True), ("html", True, True))
    assert not comparison.passes
    assert by_format(comparison)["all"].candidate > by_format(comparison)["all"].live
    assert [reason.split(":")[0] for reason in comparison.reasons] == ["html"]
    assert comparison.reasons[0].endswith("lost 2")


def test_a_question_gained_pays_for_one_lost_in_the_same_format() -> None:
    comparison = compared(("pdf", True, False), ("pdf", False, True))
    assert comparison.passes
    assert (by_format(comparison)["pdf"].lost, by_format(comparison)["pdf"].gained) == (("1",), ("0",))


def test_the_interval_narrows_with_the_questions_and_holds_the_truth() -> None:
    few = by_format(compared(*[("pdf", True, n % 2 == 0) for n in range(10)], resamples=2000))["pdf"]
    many = by_format(compared(*[("pdf", True, n % 2 == 0) for n in range(1000)], resamples=2000))["pdf"]
    assert few.low < 0.5 < few.high
    # Half of the steps are 1, the others 0: the standard error of their mean is 0.5 / sqrt(n).
    assert many.high - many.low == pytest.approx(2 * 1.96 * 0.5 / 1000**0.5, rel=0.1)
    assert few.high - few.low > 5 * (many.high - many.low)


def test_runs_over_other_questions_are_refused() -> None:
    with pytest.raises(PrimerError, match="different questions"):
        compare([Outcome("a", "pdf", 1)], [Outcome("b", "pdf", 1)], Random(1))


@given(runs)
def test_a_version_is_never_worse_than_itself(pairs: list[tuple[str, bool, bool]]) -> None:
    same = compared(*((format_, mine, mine) for format_, mine, _ in pairs), resamples=50)
    assert same.passes
    assert all((each.low, each.high, each.lost, each.gained) == (0, 0, (), ()) for each in same.differences)


@given(runs)
def test_it_passes_where_no_format_answers_fewer(pairs: list[tuple[str, bool, bool]]) -> None:
    comparison = compared(*pairs, resamples=50)
    worse = [
        name
        for name in ("pdf", "html")
        if sum(mine for format_, mine, _ in pairs if format_ == name) < sum(other for format_, _, other in pairs if format_ == name)
    ]
    assert comparison.passes == (not worse)
    for each in comparison.differences:
        assert -1 <= each.low <= each.high <= 1
