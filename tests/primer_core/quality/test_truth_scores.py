import pytest

from primer_core.elements import Element, ElementKind
from primer_core.quality.scores import Truth, read_text, score, score_pages

TABLE = "| Part | Qty |\n| --- | --- |\n| Bolt | 37 |"


def element(text: str, kind: ElementKind = ElementKind.PARAGRAPH, page: int = 1) -> Element:
    return Element(0, kind, text, None, page)


def test_the_same_words_without_marks_are_a_perfect_reading_of_markdown() -> None:
    read = [element("Stores", ElementKind.HEADING), element("Bolts and nuts."), element(TABLE, ElementKind.TABLE)]
    scores = score(read, Truth(f"## Stores\n\n**Bolts** and nuts.\n\n{TABLE}", is_markdown=True))
    assert (scores.order, scores.recall, scores.tables, scores.cer) == (1, 1, 1, None)


def test_where_a_link_of_the_truth_leads_is_no_text_in_paragraphs_and_in_cells() -> None:
    link = "[Bolt](https://example.org/a_(b)?c=1)"
    truth = Truth(f"See {link}.\n\n| Part |\n| --- |\n| {link} |", is_markdown=True)
    scores = score([element("See Bolt."), element("| Part |\n| --- |\n| Bolt |", ElementKind.TABLE)], truth)
    assert (scores.order, scores.tables) == (1, 1)


def test_paragraphs_out_of_order_lower_the_order_and_not_the_recall() -> None:
    scores = score([element("three four"), element("one two")], Truth("one two three four", is_markdown=False))
    assert scores.order == 0.5
    assert scores.recall == 1


def test_a_table_that_the_truth_has_not_is_a_fault_and_no_table_on_either_side_is_none() -> None:
    assert score([element(TABLE, ElementKind.TABLE)], Truth("Part Qty Bolt 37", is_markdown=True)).tables == 0
    assert score([element("words")], Truth("words", is_markdown=True)).tables is None


def test_plain_truth_counts_letters_and_leaves_out_the_bars_of_a_table() -> None:
    scores = score([element("Stock:"), element(TABLE, ElementKind.TABLE)], Truth("Stock: Part Qty Bolt 31", is_markdown=False))
    assert scores.cer == pytest.approx(1 / 23)
    assert scores.tables is None


def test_bars_and_stars_of_the_document_itself_count_where_the_truth_is_plain() -> None:
    assert score([element("a | b * c")], Truth("a | b * c", is_markdown=False)).cer == 0


def test_each_page_is_held_against_its_own_part_of_the_truth() -> None:
    pages = {1: [element("one two three four")], 2: [element("eight seven six five")], 3: [element("nine ten")]}
    scored = score_pages(pages, Truth("one two three four five six seven eight nine ten", is_markdown=False))
    assert [page.page for page in scored] == [1, 2, 3]
    assert scored[0].order == scored[2].order == 1
    assert scored[1].order < 0.5
    assert scored[1].truth == "five six seven eight"


def test_the_truth_of_the_only_page_is_shown_as_it_stands() -> None:
    (page,) = score_pages({3: [element("Title body")]}, Truth("# Title\n\nbody", is_markdown=True))
    assert (page.page, page.order, page.truth) == (3, 1, "# Title\n\nbody")


def test_what_was_read_keeps_its_paragraphs() -> None:
    assert read_text([element("one"), element("two")]) == "one\n\ntwo"
