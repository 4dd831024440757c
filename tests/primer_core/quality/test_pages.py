from collections import Counter
from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from primer_core.quality.pages import cut_truth

WORDS = st.lists(st.sampled_from("abcd"), max_size=8)


def shared(first: list[str], second: list[str]) -> int:
    return (Counter(first) & Counter(second)).total()


@given(st.lists(WORDS, min_size=1, max_size=4), WORDS)
def test_no_word_of_the_truth_is_lost_or_moved(pages: list[list[str]], truth: list[str]) -> None:
    pieces = cut_truth(pages, truth)
    assert len(pieces) == len(pages)
    assert list(chain(*pieces)) == truth


@given(WORDS, WORDS, WORDS)
def test_the_cut_is_where_both_sides_share_most_words_with_their_page(first: list[str], second: list[str], truth: list[str]) -> None:
    left, right = cut_truth([first, second], truth)
    best = max(shared(first, truth[:k]) + shared(second, truth[k:]) for k in range(len(truth) + 1))
    assert shared(first, list(left)) + shared(second, list(right)) == best


@given(
    st.lists(st.lists(st.integers(0, 10**6).map(str), max_size=8), min_size=1, max_size=5).filter(
        lambda p: len({*chain(*p)}) == sum(map(len, p))
    )
)
def test_pages_that_were_read_crosswise_keep_their_own_words(pages: list[list[str]]) -> None:
    assert cut_truth([page[::-1] for page in pages], list(chain(*pages))) == pages


def test_words_that_were_read_wrong_do_not_move_the_cut() -> None:
    pages = [["one", "two", "tree", "four"], [], ["sixx", "seven", "ate", "nine"]]
    truth = ["one", "two", "three", "four", "six", "seven", "eight", "nine"]
    assert cut_truth(pages, truth) == [truth[:4], [], truth[4:]]


def test_what_an_empty_page_lost_is_its_own() -> None:
    assert cut_truth([["one", "two"], [], ["five", "six"]], ["one", "two", "three", "four", "five", "six"])[1] == ["three", "four"]


def test_no_pages_no_pieces() -> None:
    assert cut_truth([], ["word"]) == []
