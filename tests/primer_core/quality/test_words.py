import pytest

from primer_core.quality.words import plain_text, word_list


@pytest.mark.parametrize(
    ("markdown", "words"),
    [
        ("## A *bold* `word`", "a bold word"),
        ("see [the page](/start.html) and ![a cat](cat.png)", "see the page and a cat"),
        ("[[1]](#cite_note-1) [Bank (river)](https://en.wikipedia.org/wiki/Bank_(river))", "1 bank river"),
        ("a [b] (c) stays", "a b c stays"),
        ("- [x] done\n- [ ] open", "done open"),
        ("fish &amp; chips &lt;hot&gt; &#x2764; caf&eacute;", "fish chips hot café"),
        ("one <!-- image --> two", "one two"),
        ("| a | b |\n| --- | :-: |\n| c | d |", "a b c d"),
        ("snake\\_case 1. no list", "snake case 1 no list"),
    ],
)
def test_marks_and_link_targets_are_no_words(markdown: str, words: str) -> None:
    assert " ".join(word_list(plain_text(markdown))) == words


def test_words_are_folded() -> None:
    assert word_list("\uff21BC \ufb01sh STRASSE") == ["abc", "fish", "strasse"]
