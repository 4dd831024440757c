"""Cutting one block that is too long."""

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primer_resources.chunker.marked import closing, opening, plain, shown
from primer_resources.chunker.pieces import separator, split_prose, split_table


def words(marked: str) -> int:
    """Stands in for a tokenizer: one token a letter run or sign."""
    return len(plain(marked).replace("|", " | ").split())


def letters(marked: str) -> int:
    """A tokenizer whose every letter is a token."""
    return len(plain(marked))


def table(header: list[str], rows: list[list[str]], caption: str = "") -> str:
    lines = ["| " + " | ".join(row) + " |" for row in [header, *rows]]
    return caption + lines[0] + "\n" + separator(len(header)) + "\n".join(lines[1:])


PROSE = st.text(alphabet="abc. \nX!é", max_size=300)


@given(PROSE, st.integers(1, 40), st.sampled_from([words, letters]))
def test_prose_pieces_join_to_the_prose_and_fit(text: str, budget: int, count: Callable[[str], int]) -> None:
    pieces = split_prose(text, budget, count)
    assert "".join(pieces) == text
    assert all(count(piece.strip()) <= budget for piece in pieces)


def test_a_link_survives_the_cut_of_its_paragraph() -> None:
    link = opening("[") + "The link" + closing("](http://example.org/a.b?c=d e)")
    pieces = split_prose("One two three. " + link + " four five six.", 5, words)
    assert "".join(map(shown, pieces)) == "One two three. [The link](http://example.org/a.b?c=d e) four five six."
    assert any(shown(piece).startswith("[The link](http://example.org/a.b?c=d e)") for piece in pieces)


def test_every_piece_of_a_table_has_caption_header_and_whole_rows() -> None:
    rows = [[f"r{n}", f"value {n}"] for n in range(100)]
    pieces = split_table(table(["name", "value"], rows, "Table 1\n\n"), 60, words)
    assert len(pieces) > 3
    seen: list[str] = []
    for piece in pieces:
        lines = shown(piece).split("\n")
        assert lines[:4] == ["Table 1", "", "| name | value |", "| - | - |"]
        assert words(piece) <= 60
        seen += lines[4:]
    assert seen == [f"| r{n} | value {n} |" for n in range(100)]


def test_a_row_put_in_at_the_top_makes_few_new_pieces() -> None:
    rows = [[f"r{n * 37 % 1000}", f"value {n}"] for n in range(400)]
    before = set(split_table(table(["name", "value"], rows), 60, words))
    after = split_table(table(["name", "value"], [["new", "row"], *rows]), 60, words)
    assert sum(piece not in before for piece in after) <= 3


@pytest.mark.parametrize("count", [words, letters])
def test_a_table_of_300_columns_loses_no_cell_and_fits(count: Callable[[str], int]) -> None:
    header = [f"head{n}" for n in range(300)]
    rows = [[f"c{row}x{n}" for n in range(300)] for row in range(3)]
    pieces = split_table(table(header, rows), 100, count)
    assert all(count(piece) <= 100 for piece in pieces)
    cells = Counter(word for piece in pieces for word in plain(piece).split() if word.startswith("c"))
    assert cells == Counter(cell for row in rows for cell in row)
    assert set(header) <= {word for piece in pieces for word in plain(piece).split()}
    # A cell stands under its own name.
    first = shown(pieces[0]).split("\n")
    assert first[0].count("|") == first[2].count("|")


@pytest.mark.parametrize("count", [words, letters])
def test_a_cell_longer_than_a_piece_is_cut_under_its_name(count: Callable[[str], int]) -> None:
    long = " ".join(f"w{n}" for n in range(200))
    pieces = split_table(table(["id", "note"], [["1", "short"], ["2", long], ["3", "last"]]), 50, count)
    assert all(count(piece) <= 50 for piece in pieces)
    got = Counter(word for piece in pieces for word in plain(piece).split() if word.startswith("w"))
    assert got == Counter(long.split())
    assert any("| note |" in shown(piece) and "w100" in piece for piece in pieces)


def test_a_header_cell_longer_than_a_piece_is_kept_once() -> None:
    long = " ".join(f"h{n}" for n in range(200))
    pieces = split_table(table([long, "b"], [["1", "2"]]), 50, words)
    assert all(words(piece) <= 50 for piece in pieces)
    assert Counter(word for piece in pieces for word in plain(piece).split() if word[0] == "h") == Counter(long.split())


def test_a_table_without_rows_keeps_its_header() -> None:
    assert "a | b" in shown("".join(split_table(table(["a", "b"], []), 50, words)))
