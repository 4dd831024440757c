"""Spans become lines: none is lost, columns stay apart, order follows the script."""

from hypothesis import given
from hypothesis import strategies as st

from primer_core.layout.geometry import Span
from primer_core.layout.lines import join_spans, settle_sizes
from tests.primer_core.layout.builders import span

spans = st.lists(
    st.builds(
        span,
        text=st.text(alphabet="abc שלא1.", min_size=1, max_size=8).filter(str.strip),
        left=st.floats(0, 500),
        top=st.floats(0, 700),
        size=st.sampled_from([6.0, 10.0, 18.0]),
    ),
    max_size=25,
)


@given(spans)
def test_every_span_is_in_exactly_one_line(given_spans: list[Span]) -> None:
    lines = join_spans(given_spans)
    assert sorted(id(member) for line in lines for member in line.spans) == sorted(map(id, given_spans))
    for line in lines:
        assert line.box.left <= min(member.box.left for member in line.spans)
        assert line.box.right >= max(member.box.right for member in line.spans)


def test_words_of_a_sentence_join_and_columns_do_not() -> None:
    lines = join_spans([span("left", 0, 0), span("column", 23, 0), span("right", 80, 0), span("below", 0, 12)])
    assert sorted(line.text for line in lines) == ["below", "left column", "right"]


def test_a_change_of_font_inside_a_word_makes_no_space() -> None:
    (line,) = join_spans([span("O", 0, 0), span("(n)", 5, 0, bold=True)])
    assert line.text == "O(n)"
    assert not line.bold


def test_a_raised_figure_is_of_the_line_and_does_not_make_it_higher() -> None:
    (line,) = join_spans([span("Center", 0, 10), span("1", 30, 7, size=5.5), span("reports", 36, 10)])
    assert line.text == "Center1 reports"
    assert (line.box.top, line.box.bottom) == (10, 20)


def test_code_keeps_its_wide_gaps_in_one_line() -> None:
    (line,) = join_spans([span("RETURN", 0, 0, mono=True), span("CASE", 200, 0, mono=True)])
    assert line.text == "RETURN CASE"


def test_a_line_from_the_right_begins_at_the_right_but_its_numbers_do_not() -> None:
    (line,) = join_spans([span("אחת", 100, 0), span("1403", 60, 0), span("/", 80.5, 0), span("09", 86, 0), span("שתים", 36, 0)])
    assert line.text == "אחת 1403/09 שתים"


def test_boxes_of_one_font_that_vary_with_the_glyphs_are_of_one_size() -> None:
    heights = [9.2, 9.2, 9.6, 14.0]
    settled = settle_sizes([span("words", 0, 20 * n, size=height) for n, height in enumerate(heights)], ["F"] * 4)
    assert [member.size for member in settled] == [9.2, 9.2, 9.2, 14.0]
