import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primer_core.name_lists import split_names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", []),
        ("hr", ["hr"]),
        (" hr , ,board,", ["hr", "board"]),
        ('"eng, core", hr', ["eng, core", "hr"]),
        ('"the ""core""",hr', ['the "core"', "hr"]),
        ('O"Brien, müller-финанс', ['O"Brien', "müller-финанс"]),
        ('"open', ["open"]),
    ],
)
def test_names_are_parted_by_commas_that_stand_in_no_quotes(text: str, names: list[str]) -> None:
    assert split_names(text) == names


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\n\r\0"), min_size=1).map(str.strip).filter(bool)


@given(st.lists(NAMES))
def test_whatever_names_are_written_with_quotes_come_back(names: list[str]) -> None:
    written = io.StringIO()
    csv.writer(written, quoting=csv.QUOTE_ALL).writerow(names)
    assert split_names(written.getvalue()) == names


@given(st.text())
def test_no_text_is_an_error_and_no_name_is_empty(text: str) -> None:
    assert all(name == name.strip() != "" for name in split_names(text))


def test_a_name_without_end_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        split_names("x" * 1_000_000)
