"""Recall and MRR against their definitions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primer_core.golden.figures import ALL_FORMATS, Outcome, summarise

ranks = st.lists(st.none() | st.integers(1, 10), min_size=1, max_size=30)


def outcomes(*found: tuple[str, int | None]) -> list[Outcome]:
    return [Outcome(str(number), format_, rank) for number, (format_, rank) in enumerate(found)]


def test_figures_stand_by_format_and_over_all_questions() -> None:
    html, pdf, every = summarise(outcomes(("pdf", 1), ("html", 4), ("pdf", None), ("pdf", 2)))
    assert (html.format, html.questions, html.recall_at_1, html.recall_at_k, html.mrr) == ("html", 1, 0, 1, 0.25)
    assert (pdf.questions, pdf.recall_at_1, pdf.recall_at_k, pdf.mrr) == (3, pytest.approx(1 / 3), pytest.approx(2 / 3), 0.5)
    assert (every.format, every.questions, every.recall_at_k) == (ALL_FORMATS, 4, 0.75)


def test_no_questions_have_no_figures() -> None:
    assert summarise([]) == ()


@given(ranks)
def test_the_mean_reciprocal_rank_lies_between_the_recalls(found: list[int | None]) -> None:
    figures = summarise(outcomes(*(("pdf", rank) for rank in found)))[-1]
    assert 0 <= figures.recall_at_1 <= figures.mrr + 1e-9 <= figures.recall_at_k + 2e-9 <= 1 + 2e-9
