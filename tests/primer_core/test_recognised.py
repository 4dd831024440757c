"""How sure a page is, and which words stand together."""

from hypothesis import given
from hypothesis import strategies as st

from primer_core.recognised import SURE_FROM, Word, as_text, even_out, group_lines, page_confidence


def word(
    text: str = "word", confidence: float = 95.0, left: int = 0, top: int = 0, width: int = 40, height: int = 10, line: int = 1
) -> Word:
    return Word(text, confidence, left, top, width, height, (1, 1, line))


words = st.builds(
    Word,
    text=st.text("abc", min_size=1, max_size=5),
    confidence=st.floats(0, 100),
    left=st.integers(0, 2000),
    top=st.integers(0, 2000),
    width=st.integers(1, 300),
    height=st.integers(1, 80),
    line=st.tuples(st.integers(1, 2), st.integers(1, 2), st.integers(1, 3)),
)


def test_the_area_decides_and_not_the_number_of_words() -> None:
    small_and_unsure = [word(confidence=10, width=5) for _ in range(10)]
    assert page_confidence([*small_and_unsure, word(width=450)], 0) == 0.9


def test_text_that_was_not_read_counts_as_unsure() -> None:
    assert page_confidence([word()], missed_area=400) == 0.5


def test_a_page_without_text_is_nothing_to_be_unsure_of() -> None:
    assert page_confidence([], 0) == 1.0


@given(st.lists(words), st.floats(0, 1e6))
def test_confidence_is_a_share_and_grows_with_sure_words(found: list[Word], missed: float) -> None:
    before = page_confidence(found, missed)
    assert 0.0 <= before <= 1.0
    assert page_confidence([*found, word(confidence=SURE_FROM)], missed) >= before - 1e-9
    assert page_confidence(found, missed + 1000) <= before


@given(st.lists(words, min_size=1))
def test_lines_hold_each_word_once_in_order(found: list[Word]) -> None:
    found.sort(key=lambda member: member.line)
    assert [member for line in group_lines(found) for member in line] == found
    assert as_text(found).split() == [member.text for member in found]


def test_a_line_is_cut_at_a_columns_edge() -> None:
    lines = group_lines([word("left", left=0), word("still", left=50), word("right", left=200)])
    assert [[member.text for member in line] for line in lines] == [["left", "still"], ["right"]]


def test_words_of_a_line_become_equally_high() -> None:
    evened = even_out(
        [word("one", top=14, height=20, left=0), word("height", top=0, height=44, left=50), word("axe", top=14, height=20, left=100)]
    )
    assert len({(member.top, member.height) for member in evened}) == 1


@given(st.lists(words))
def test_evening_out_moves_nothing_sideways(found: list[Word]) -> None:
    evened = even_out(found)
    assert [(w.text, w.left, w.width, w.confidence, w.line) for w in evened] == [
        (w.text, w.left, w.width, w.confidence, w.line) for w in found
    ]
    for line in {w.line for w in evened}:
        assert len({w.height for w in evened if w.line == line}) == 1
