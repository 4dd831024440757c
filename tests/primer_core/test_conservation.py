"""Words are counted alike however they are set, and what is missing is told from what was left out on purpose."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primer_core.conservation import FLAGGED_BELOW, count_words, weigh

WORDS = st.lists(st.sampled_from(["one", "two", "three", "four", "five", "6", "7", "été", "語"]), max_size=40).map(Counter)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("H2O and 10kg", "H 2 O and 10 kg"),
        ("configure를 실행", "configure 를 실행"),
        ("python ولغة", "pythonولغة"),
        ("東京 都", "東京都"),
        ("ﬁne  Straße", "FINE STRASSE"),
        ("co\u00adoperate zero\u200bwidth", "cooperate zerowidth"),
        ("snake_case | *bold*", "snake case bold"),
    ],
)
def test_words_are_the_same_however_they_are_set(one: str, other: str) -> None:
    assert count_words(one) == count_words(other)


def test_words_that_stand_twice_must_be_kept_twice() -> None:
    found = weigh(count_words("to be or not to be"), count_words("to be or not"), {}, {})
    assert (round(found.share, 3), found.words, found.missing) == (0.667, 6, ("be", "to"))
    assert found.is_flagged


def test_what_was_put_apart_is_a_loss_with_a_name_and_no_fault() -> None:
    source = count_words("Page 1 of the annual report. Rain fell.")
    apart = {"furniture": count_words("Page 1"), "comments": count_words("page of the annual report rain")}
    found = weigh(source, count_words("rain fell"), apart, {"scripts": 12, "nothing": 0})
    assert found.share == 1.0
    assert found.losses == (("comments", 4), ("furniture", 2), ("scripts", 12))


def test_a_source_without_words_keeps_them_all() -> None:
    assert weigh(Counter(), count_words("words"), {}, {}).share == 1.0


@given(WORDS, WORDS, WORDS)
def test_the_share_is_what_is_kept_or_accounted_for(source: Counter[str], kept: Counter[str], apart: Counter[str]) -> None:
    found = weigh(source, kept, {"apart": apart}, {})
    assert 0.0 <= found.share <= 1.0
    assert found.is_flagged == (found.share < FLAGGED_BELOW)
    # Keeping more, or putting more apart, never makes it worse; keeping the source itself makes it whole.
    assert weigh(source, kept + apart, {"apart": apart}, {}).share >= found.share
    assert weigh(source, source, {}, {}).share == 1.0
    assert weigh(source, kept, {}, {}).share <= found.share
