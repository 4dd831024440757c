"""A page that is nested beyond reason keeps its words and loses its depth; an ordinary one is not touched."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primer_resources.parser.nesting import MAX_DEPTH, depth_of, flatten


def words(page: str) -> list[str]:
    return re.sub(r"<[^>]*>", " ", page).split()


@pytest.mark.parametrize(
    "page",
    [
        "<html><body>" + "".join(f"<div>w{n} " for n in range(5_000)) + "end" + "</div>" * 5_000 + "<h1>after</h1>",
        "<ul><li>" + "<ul><li>".join(f"w{n}" for n in range(2_000)),
        "<table><tr><td>" + "<table><tr><td>".join(f"w{n}" for n in range(2_000)),
        "<b>" * 3_000 + "bold" + "</i>" * 5_000,
    ],
    ids=["divisions", "lists", "tables", "unmatched"],
)
def test_no_word_is_lost(page: str) -> None:
    flat = flatten(page)
    assert words(flat) == words(page)
    assert depth_of(flat) <= MAX_DEPTH + 2


def test_unclosed_paragraphs_become_closed_ones() -> None:
    assert flatten("<body>" + "<p>one" * 500) == "<html><body>" + "<p>one</p>" * 500 + "</body></html>"


@given(st.lists(st.sampled_from(["<p>", "</p>", "<div>", "</div>", "<br>", "word ", "<img/>", "<", "&amp;"]), max_size=90).map("".join))
def test_an_ordinary_page_is_not_touched(page: str) -> None:
    assert flatten(page) == page
