"""Scores agree with the plain definitions, and say what they claim to say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primer_core.quality.characters import character_error_rate, edit_distance, nearest_distance
from primer_core.quality.order import common_subsequence, order_score, word_recall
from primer_core.quality.tables import markdown_tables, table_f1, tables_f1
from primer_core.quality.words import plain_text

short = st.text(alphabet="abc", max_size=12)
rows = st.lists(st.lists(st.sampled_from(["", "a", "b", "1", "2"]), min_size=1, max_size=4), max_size=4)


def slow_subsequence(first: str, second: str) -> int:
    best = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i, one in enumerate(first):
        for j, other in enumerate(second):
            best[i + 1][j + 1] = best[i][j] + 1 if one == other else max(best[i][j + 1], best[i + 1][j])
    return best[-1][-1]


def slow_distance(first: str, second: str) -> int:
    row = list(range(len(second) + 1))
    for i, one in enumerate(first, start=1):
        before, row = row, [i]
        for j, other in enumerate(second, start=1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (one != other)))
    return row[-1]


@given(short, short)
def test_the_bit_parallel_forms_agree_with_the_tables(first: str, second: str) -> None:
    assert common_subsequence(first, second) == slow_subsequence(first, second)
    assert edit_distance(first, second) == slow_distance(first, second)


@given(st.text(alphabet="abc", max_size=6), st.text(alphabet="abc", max_size=8))
def test_the_nearest_part_of_a_text_is_the_best_of_all_parts(pattern: str, text: str) -> None:
    parts = [text[start:end] for start in range(len(text) + 1) for end in range(start, len(text) + 1)]
    assert nearest_distance(pattern, text) == min(slow_distance(pattern, part) for part in parts)


@given(st.text(max_size=60))
def test_a_text_agrees_with_itself(text: str) -> None:
    assert order_score(text, text) == word_recall(text, text) == 1.0
    assert character_error_rate(text, text) == 0.0


def test_order_falls_with_words_out_of_place_missing_and_too_many() -> None:
    truth = "one two three four"
    assert order_score("One, two; three four!", truth) == 1.0
    assert order_score("three four one two", truth) == 0.5
    assert order_score("one two", truth) == pytest.approx(2 / 3)
    assert order_score("one two three four five six seven eight", truth) == pytest.approx(2 / 3)
    assert word_recall("four three two one", truth) == 1.0


def test_character_errors_fold_white_space_only() -> None:
    assert character_error_rate("a  b\nc", "a b c") == 0.0
    assert character_error_rate("abX", "abc") == pytest.approx(1 / 3)
    assert character_error_rate("", "abc") == 1.0
    assert character_error_rate("abc", "") == 1.0


@given(rows)
def test_a_table_agrees_with_itself(table: list[list[str]]) -> None:
    assert table_f1(table, table) == 1.0
    assert tables_f1([table], [table]) == 1.0


def test_a_cell_in_the_wrong_row_is_wrong() -> None:
    truth = [["part", "qty"], ["bolt", "7"], ["nut", "9"]]
    assert table_f1([["part", "qty"], ["bolt", "9"], ["nut", "7"]], truth) == pytest.approx(8 / 12)
    assert table_f1([["part", "qty"], ["nut", "9"], ["bolt", "7"]], truth) == pytest.approx(8 / 12)
    assert table_f1([["part qty"], ["bolt 7"]], truth) == 0.0


def test_tables_are_paired_with_what_is_most_like_them_and_false_ones_count() -> None:
    one, other = [["a", "b"], ["1", "2"]], [["c", "d"], ["3", "4"]]
    assert tables_f1([other, one], [one, other]) == 1.0
    assert tables_f1([one, other], [one]) == pytest.approx(2 / 3)
    assert tables_f1([], [one]) == 0.0


def test_markdown_is_read_as_it_is_written() -> None:
    text = "# Head\n\n| a | b \\| c |\n| --- | - |\n| 1 |  |\n\n- item\n"
    assert markdown_tables(text) == [[["a", "b | c"], ["1", ""]]]
    assert plain_text(text).split() == ["Head", "a", "b", "c", "1", "item"]
