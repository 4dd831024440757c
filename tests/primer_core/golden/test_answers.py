"""An answer is compared as the golden set promises: NFKC, folded space, no marks, and a tolerance for scans only."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primer_core.golden.answers import answers, comparable, gives_value
from primer_core.golden.questions import Question


def asked(answer: str, format_: str = "wiki", value: str | None = None) -> Question:
    return Question("q-1", "What?", "wiki/a.md", answer, format_, value)


@pytest.mark.parametrize(
    ("passage", "answer"),
    [
        ("Leave\n  of\u00a0absence is paid", "of absence is paid"),
        ("ﬁve days, ½ pay", "five days, 1⁄2 pay"),
        ("see the [travel *guide*](https://example.org/a_(b)) first", "travel guide first"),
        ("**Never** use `rm_all` or rm\\_all", "Never use rmall or rmall"),
        ("| Level | Pay |\n|---|---|\n| L1 | 29500 |", "| L1 | 29500 |"),
    ],
)
def test_space_marks_and_link_targets_do_not_count(passage: str, answer: str) -> None:
    assert answers(asked(answer), passage)


@pytest.mark.parametrize(
    ("passage", "answer"), [("paid leave", "Paid leave"), ("26 weeks", "16 weeks"), ("one two", "two one"), ("", "word")]
)
def test_letters_case_and_order_count(passage: str, answer: str) -> None:
    assert not answers(asked(answer), passage)


def test_a_scan_may_have_one_wrong_letter_in_ten_and_others_may_not() -> None:
    answer = "The committee met on Monday in the hall"
    assert answers(asked(answer, "scan"), "noise The cornmittee met on Monday in the hall noise")
    assert not answers(asked(answer, "scan"), "noise The cornrnittee rnet on Morday in tbe hail noise")
    assert not answers(asked(answer, "pdf"), "noise The cornmittee met on Monday in the hall noise")


def test_the_cell_beside_a_label_is_looked_for_apart() -> None:
    assert gives_value(asked("On-call duty", "xlsx", "280"), "| On-call duty | 280 |")
    assert not gives_value(asked("On-call duty", "xlsx", "280"), "| On-call duty |")
    assert gives_value(asked("On-call duty", "xlsx"), "| On-call duty |")


@given(st.text(max_size=40), st.text(max_size=40), st.text(max_size=40))
def test_what_stands_in_a_plain_passage_is_found_there(before: str, answer: str, after: str) -> None:
    once = comparable(answer)
    assert answers(asked(once), f"{comparable(before)} {once} {comparable(after)}") or "[" in once + comparable(before)
