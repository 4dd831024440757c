"""Where prose may be cut, and how white space is folded."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primer_core.sentences import fold_space, joins_tightly, sentence_starts, split_sentences

PROSE = st.text(alphabet="abcXYZ .!?\n\t,;:()\"'。！1é", max_size=200)


@given(PROSE)
def test_slices_between_sentence_starts_are_the_text_itself(text: str) -> None:
    starts = sentence_starts(text)
    assert starts == sorted(set(starts))
    assert all(0 < start < len(text) for start in starts)
    edges = [0, *starts, len(text)]
    assert "".join(text[first:last] for first, last in itertools.pairwise(edges)) == text


@given(PROSE)
def test_a_sentence_begins_with_its_first_letter_not_with_white_space(text: str) -> None:
    assert all(not text[start].isspace() for start in sentence_starts(text))


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One ends. Two ends! Three?", ["One ends.", "Two ends!", "Three?"]),
        ("Ask Dr. Smith, e.g. Monday. Then go.", ["Ask Dr. Smith, e.g. Monday.", "Then go."]),
        ("It was J. Doe. He left.", ["It was J. Doe.", "He left."]),
        ("version 1.2 is out. and stays", ["version 1.2 is out. and stays"]),
        ("He said (in 1999.) It was so.", ["He said (in 1999.)", "It was so."]),
        ("一つ目。二つ目！三つ目", ["一つ目。", "二つ目！", "三つ目"]),
        ("first line\n\n  second line", ["first line", "second line"]),
        ("Das gilt z.B. Montags. Danach nicht.", ["Das gilt z.B. Montags.", "Danach nicht."]),
        ("", []),
        (" \n ", []),
    ],
)
def test_sentences_end_where_a_reader_ends_them(text: str, sentences: list[str]) -> None:
    assert split_sentences(text) == sentences


@given(st.text(max_size=200))
def test_folding_white_space_keeps_every_word_and_is_done_after_once(text: str) -> None:
    folded = fold_space(text)
    assert folded.split() == text.split()
    assert fold_space(folded) == folded


def test_folding_keeps_rows_on_lines_of_their_own() -> None:
    assert fold_space(" | a |  b |  \n\n\n | 1 |\t2 | ") == "| a | b |\n| 1 | 2 |"


@pytest.mark.parametrize(
    ("before", "after", "tight"),
    [
        ("MUST", ": read", True),
        ("page", ". Then", True),
        ("page", ".", True),
        ("(the", "rules", False),
        ("see (", "rules", True),
        ("rules", ") and", True),
        ("the", ".bashrc", False),
        ("word", "word", False),
        ("Anna", "’s cat", True),
        ("wait", "…", True),
        ("", "word", True),
    ],
)
def test_punctuation_binds_to_the_word_before_it(before: str, after: str, tight: bool) -> None:
    assert joins_tightly(before, after) is tight
