"""Marked text: what is shown, what is plain, and that a cut loses nothing."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from primer_resources.chunker.marked import closing, cut_at, opening, page_note, pages_of, plain, shown, without_marks

WORDS = st.text(alphabet="ab .é漢", min_size=1, max_size=6)
PIECES = st.lists(
    st.one_of(
        WORDS,
        st.builds(lambda words: opening("**") + words + closing("**"), WORDS),
        st.builds(lambda words, url: opening("[") + words + closing(f"]({url})"), WORDS, st.text(alphabet="x/:.", max_size=8)),
        st.integers(1, 3).map(page_note),
    ),
    max_size=12,
).map("".join)


@given(PIECES, st.lists(st.integers(1, 60), max_size=6))
def test_cut_pieces_join_to_what_was_cut(marked: str, wanted: list[int]) -> None:
    words = plain(marked)
    starts = sorted({start for start in wanted if start < len(words)})
    pieces = cut_at(marked, starts)
    assert "".join(map(shown, pieces)) == shown(marked)
    edges = [0, *starts, len(words)]
    assert [plain(piece) for piece in pieces] == [words[a:b] for a, b in itertools.pairwise(edges)]


def test_links_and_emphasis_are_shown_and_not_plain() -> None:
    marked = "see " + opening("[") + "the " + opening("**") + "page" + closing("**") + closing("](http://x)")
    assert shown(marked) == "see [the **page**](http://x)"
    assert plain(marked) == "see the page"


def test_markup_stays_with_its_words_at_a_cut() -> None:
    marked = opening("**") + "One." + closing("**") + opening("[") + "Two" + closing("](http://x)")
    assert [shown(piece) for piece in cut_at(marked, [4])] == ["**One.**", "[Two](http://x)"]


def test_a_piece_knows_the_page_it_begins_on() -> None:
    marked = page_note(3) + "one two " + page_note(4) + "three four"
    assert [pages_of(piece) for piece in cut_at(marked, [4, 14])] == [(3,), (3, 4), (4,)]


def test_marks_from_outside_are_taken_out() -> None:
    assert without_marks("a\ufdd0b\ufdd5c") == "abc"
