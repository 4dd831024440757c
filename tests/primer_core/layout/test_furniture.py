"""Running lines are found by where and how often they stand; text of the body never is one."""

from hypothesis import given
from hypothesis import strategies as st

from primer_core.layout.furniture import PageLine, is_page_number, running_lines
from primer_core.layout.geometry import Box

HEIGHT = 800.0


def at(page: int, text: str, top: float, left: float = 50.0) -> PageLine:
    return PageLine(page, text, Box(left, top, left + 100, top + 10))


def found(lines: list[PageLine], pages: int) -> list[str]:
    running = running_lines(lines, dict.fromkeys(range(1, pages + 1), HEIGHT))
    return [line.text for position, line in enumerate(lines) if position in running]


def body(page: int) -> list[PageLine]:
    return [at(page, f"Body {chr(96 + page)} line {n}", 200 + 14 * n) for n in range(10)]


def test_headers_footers_and_page_numbers_of_a_few_pages() -> None:
    lines = [line for page in (1, 2, 3) for line in (at(page, "Handbook", 30), *body(page), at(page, f"Page {page} of 3", 770))]
    assert found(lines, 3) == ["Handbook", "Page 1 of 3", "Handbook", "Page 2 of 3", "Handbook", "Page 3 of 3"]


def test_a_running_title_that_changes_with_the_chapter() -> None:
    lines = []
    for page in range(1, 31):
        lines += [at(page, f"{'Storage' if page < 16 else 'Care'} {page}", 30), *body(1 + page % 20)]
    lines[0] = at(1, "Front page words", 30)
    assert len(found(lines, 30)) == 29


def test_a_title_on_one_page_only_beside_its_number_at_the_very_top() -> None:
    assert found([at(1, "Optimized Tables", 40, 200), at(1, "9", 40, 450), *body(1)], 1) == ["Optimized Tables", "9"]
    assert found([at(1, "Invoice", 40, 200), *body(1)], 1) == []


def test_words_that_come_again_inside_the_page_stay() -> None:
    lines = [
        line
        for page in (1, 2, 3)
        for line in (
            at(page, "Opening words " + "xyz"[page - 1], 60),
            at(page, "Summary", 300),
            *body(page),
            at(page, "End " + "xyz"[page - 1], 600),
        )
    ]
    assert found(lines, 3) == []


def test_page_numbers() -> None:
    assert all(map(is_page_number, ("12", "- 3 -", "Page 3 of 9", "iv", "7-45", "B-1191")))
    assert not any(map(is_page_number, ("", "12 apples", "2023-06-20-PV", "section 4", "mix")))


@given(st.lists(st.floats(150, 640), min_size=1, max_size=20, unique=True), st.integers(1, 6))
def test_body_lines_with_words_of_their_own_are_never_taken(tops: list[float], pages: int) -> None:
    lines = [
        at(page, f"{'abcdefghijklmnopqrst'[n]} words of page {'uvwxyz'[page - 1]}", top)
        for page in range(1, pages + 1)
        for n, top in enumerate(tops)
    ]
    assert found(lines, pages) == []


def test_the_last_lines_of_a_clause_that_every_page_repeats_are_text() -> None:
    clause = ("This clause carries no weight and", "stands here so that each page", "has something to show.")
    lines = [line for page in (1, 2, 3) for line in (*body(page), *(at(page, text, 682 + 13 * n) for n, text in enumerate(clause)))]
    assert found(lines, 3) == []


def test_a_running_title_close_above_text_of_another_size_is_no_part_of_it() -> None:
    lines = []
    for page in (1, 2, 3):
        lines += [at(page, "The manual", 40), PageLine(page, f"Words of {chr(96 + page)}", Box(50, 54, 300, 68)), *body(page)]
    assert found(lines, 3) == ["The manual"] * 3


def test_a_clause_under_a_heading_at_the_top_of_each_page_is_text() -> None:
    lines = []
    for page in (1, 2, 3):
        heading = PageLine(page, f"Part {['one', 'two', 'three'][page - 1]}", Box(50, 50, 200, 64))
        lines += [at(page, "Agreement", 30), heading, at(page, "This clause is for show", 68), at(page, "and no more.", 81), *body(page)]
    assert found(lines, 3) == ["Agreement"] * 3


def test_numbered_titles_in_large_letters_are_text_and_a_large_title_on_every_page_is_not() -> None:
    lines = []
    for page in range(1, 6):
        lines += [PageLine(page, f"Chapter {page}", Box(50, 50, 200, 68)), *body(page)]
    assert found(lines, 5) == []
    lines = [line for page in range(1, 6) for line in (PageLine(page, "Annual report", Box(50, 30, 200, 48)), *body(page))]
    assert found(lines, 5) == ["Annual report"] * 5


def test_names_that_end_in_a_number_are_no_running_line() -> None:
    assert found([line for page in (1, 2) for line in (at(page, f"Memorandum Annex{page}", 40), *body(page))], 2) == []
