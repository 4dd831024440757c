"""What a block is told to be, and what it must not be taken for."""

from primer_core.layout.geometry import Box
from primer_core.layout.headings import HeadingStyle, heading_levels
from primer_core.layout.kinds import BlockFacts, BlockKind, judge_kinds
from primer_core.layout.marks import is_caption, is_contents_line, is_list_item, is_sure_caption, section_depth, without_leaders

K = BlockKind
BODY = "Running text of the body that goes on for a good while and ends here."


def facts(text: str, top: float, size: float = 10.0, bold: bool = False, lines: int = 1, left: float = 0.0, **more: bool) -> BlockFacts:
    return BlockFacts(1, text, Box(left, top, left + 300, top + 12 * lines), size, bold, False, lines, **more)


def judged(*blocks: BlockFacts) -> list[BlockKind]:
    return judge_kinds(blocks)


def test_larger_and_bold_lines_that_lead_text_are_headings() -> None:
    blocks = [facts("Leave rules", 0, size=16), facts(BODY, 30, lines=5), facts("Sick leave", 100, bold=True), facts(BODY, 114, lines=5)]
    assert judged(*blocks) == [K.HEADING, K.TEXT, K.HEADING, K.TEXT]


def test_what_looks_like_a_heading_and_is_none() -> None:
    body = [facts(BODY, 500 + 70 * n, lines=5) for n in range(3)]
    for text in ("Important:", "Ends with a stop.", "in the middle of a sentence", "Preface . . . . . . . xi", "12,500.00"):
        assert judged(facts(text, 480, bold=True), *body)[0] is not K.HEADING, text
    assert judged(facts("A label with nothing below", 300, bold=True), *body)[0] is K.TEXT
    assert judged(facts("Axis", 480, bold=True, in_figure=True), *body)[0] is K.TEXT


def test_a_form_of_bold_labels_is_no_row_of_headings() -> None:
    labels = [facts(f"Label {name}", 20.0 * n, bold=True) for n, name in enumerate("ABCDEF")]
    assert set(judged(*labels, facts(BODY * 3, 140, lines=9))) == {K.TEXT}


def test_the_style_that_most_of_a_document_has_is_no_heading_style() -> None:
    blocks = [facts("Title", 0, bold=True), *(facts(BODY, 20 + 70 * n, bold=True, lines=5) for n in range(3))]
    assert K.HEADING not in judged(*blocks)


def test_footnotes_stand_at_the_foot_in_small_type() -> None:
    body = facts(BODY, 0, lines=40)
    assert judged(body, facts("1 See the annex.", 520, size=8))[1] is K.FOOTNOTE
    assert judged(facts("1 See the annex.", 0, size=8), facts(BODY, 30, lines=40))[0] is not K.FOOTNOTE


def test_captions_need_their_number_set_off_or_a_picture_beside() -> None:
    assert is_sure_caption("Table 2. Results")
    assert is_sure_caption("Figure 3-1: State machine")
    assert is_caption("Figure 3-1 CREATE statement")
    assert not is_sure_caption("Figure 3-1 CREATE statement")
    assert not is_caption("Table 2 shows the results")
    assert not is_caption("Tables are set")
    assert judged(facts("Figure 4 Overview", 0, beside_graphic=True), facts(BODY, 30, lines=5))[0] is K.CAPTION
    assert judged(facts("Figure 4 Overview", 0), facts(BODY, 30, lines=5))[0] is K.TEXT


def test_typewriter_text_is_code_unless_all_is_typewritten() -> None:
    assert judged(facts("x = 1", 0, mono=True), facts(BODY, 30, lines=5))[0] is K.CODE
    assert judged(facts("x = 1", 0, mono=True), facts(BODY, 30, lines=5, mono=True))[0] is K.TEXT


def test_marks() -> None:
    assert all(map(is_list_item, ("• a", "1. a", "(iv) a", "[3] a", "\uf0b7 a", "- a")))
    assert not any(map(is_list_item, ("a bird", "1.5 mm", "-5 degrees", "2023 was")))
    assert [section_depth(text) for text in ("2 Roles", "2.1.6 Change", "Chapter 3. Rows", "Roles")] == [1, 3, 1, 0]
    assert is_contents_line("Preface . . . . . . xi")
    assert is_contents_line(without_leaders("Preface ....... xi"))
    assert without_leaders("Name ________ Date") == "Name ____ Date"


def test_numbers_say_how_deep_headings_are_and_type_says_the_rest() -> None:
    headings = [
        HeadingStyle("Handbook", 20, True),
        HeadingStyle("Preface", 14, True),
        HeadingStyle("1 Storage", 14, True),
        HeadingStyle("1.1 Short term", 14, True),
        HeadingStyle("2 Care", 14.3, True),
        HeadingStyle("Note", 11, True),
    ]
    assert heading_levels(headings) == [1, 2, 2, 3, 2, 3]
    assert heading_levels([]) == []
    assert heading_levels([HeadingStyle("Only", 9, True)]) == [1]
