"""Lines become blocks: none is lost, and each reason to part two lines parts them."""

from hypothesis import given
from hypothesis import strategies as st

from primer_core.layout.blocks import build_blocks
from primer_core.layout.geometry import Box, Line
from tests.primer_core.layout.builders import line

WORDS = "words that fill the line to its end"


def texts(lines: list[Line], barriers: list[Box] | None = None) -> list[str]:
    return [block.text for block in build_blocks(lines, barriers or [])]


@given(
    st.lists(
        st.builds(
            line,
            text=st.sampled_from(["a", "• b", "Words here.", "1.", WORDS]),
            left=st.floats(0, 400),
            top=st.floats(0, 700),
            order=st.integers(0, 99),
        ),
        max_size=20,
    )
)
def test_no_word_is_lost_or_doubled(lines: list[Line]) -> None:
    before = sorted(word for member in lines for word in member.text.split())
    assert sorted(word for block in build_blocks(lines) for word in block.text.split()) == before


def test_lines_of_a_paragraph_join_and_a_wider_gap_parts() -> None:
    lines = [line(f"{WORDS} {n}", 0, top, order=n) for n, top in enumerate((0, 12, 24, 44, 56))]
    assert [block.count("\n") for block in texts(lines)] == [2, 1]


def test_columns_do_not_join() -> None:
    lines = [
        line(f"{side} {WORDS}", left, top, order=n)
        for n, (side, left, top) in enumerate((("L", 0, 0), ("L", 0, 12), ("R", 250, 0), ("R", 250, 12)))
    ]
    assert [block.split()[0] for block in texts(lines)] == ["L", "R"]


def test_a_larger_or_bold_line_is_a_block_of_its_own() -> None:
    assert len(texts([line("Heading", 0, 0, size=14), line(WORDS, 0, 16), line(WORDS, 0, 28)])) == 2
    assert len(texts([line("Heading", 0, 0, bold=True), line(WORDS.capitalize(), 0, 12), line(WORDS, 0, 24)])) == 2


def test_a_sentence_goes_on_through_a_line_of_other_type() -> None:
    assert len(texts([line("Table 1. Results of the same", 0, 0, bold=True), line("method on other data", 0, 12)])) == 1


def test_an_indented_first_line_and_a_short_last_one_part_paragraphs() -> None:
    body = [line(WORDS, 0, 0), line(WORDS, 0, 12), line("Begins here with words and words", 12, 24), line(WORDS, 0, 36)]
    assert len(texts(body)) == 2
    assert len(texts([line(WORDS, 0, 0), line("ends.", 0, 12), line(WORDS.capitalize(), 0, 24)])) == 2


def test_each_list_item_is_a_block_and_its_marker_may_stand_apart() -> None:
    lines = [line("•", 0, 0), line("first item", 20, 0), line("goes on", 20, 12), line("2.", 0, 24), line("second", 20, 24)]
    assert texts(lines) == ["• first item\ngoes on", "2. second"]


def test_a_table_between_two_lines_parts_them_and_a_picture_below_both_does_not() -> None:
    lines = [line(WORDS, 0, 0), line(WORDS, 0, 18)]
    assert len(texts(lines, [Box(0, 11, 200, 17)])) == 2
    assert len(texts(lines, [Box(-50, -50, 400, 400)])) == 1


def test_code_keeps_its_lines_whatever_their_indent() -> None:
    lines = [line("for x in y:", 0, 0, mono=True), line("print(x)", 20, 12, mono=True), line("done()", 0, 34, mono=True)]
    assert texts(lines) == ["for x in y:\nprint(x)\ndone()"]
