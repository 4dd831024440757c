"""Members of a container get paths that are safe, tell what they are, and hide no other member."""

from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primer_core.members import MOST_NAME, is_litter, member_path, unique_paths

NAMES = st.text(st.characters() | st.sampled_from("./\\:\0"), max_size=300)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("report.pdf", "report.pdf"),
        ("a/b/report.pdf", "a/b/report.pdf"),
        ("../../etc/passwd", "etc/passwd"),
        ("/etc/passwd", "etc/passwd"),
        ("C:\\Users\\me\\plan.docx", "Users/me/plan.docx"),
        ("two\nlines.txt", "two_lines.txt"),
        ("..", "unnamed"),
        ("", "unnamed"),
    ],
)
def test_a_name_becomes_a_path_below_the_container(name: str, path: str) -> None:
    assert member_path(name) == path


@given(NAMES)
def test_no_name_leads_out_of_its_container_or_is_too_long(name: str) -> None:
    path = PurePosixPath(member_path(name))
    assert not path.is_absolute()
    assert path.parts
    assert ".." not in path.parts
    assert max(map(len, path.parts)) <= MOST_NAME
    str(path).encode("utf-8")
    assert "\0" not in str(path)


@given(st.lists(st.sampled_from(["a.pdf", "A.pdf", "x/a.pdf", "a (2).pdf", "/a.pdf", "a", ""]), max_size=12))
def test_every_member_has_a_path_of_its_own(names: list[str]) -> None:
    paths = list(unique_paths(names))
    assert len(paths) == len(names)
    assert len(set(paths)) == len(names)


def test_a_long_name_keeps_its_suffix() -> None:
    assert member_path("x" * 500 + ".pdf").endswith("x.pdf")


@pytest.mark.parametrize("name", ["__MACOSX/._a.pdf", "a/._b.docx", ".DS_Store", "deep/Thumbs.db"])
def test_what_an_operating_system_left_is_litter(name: str) -> None:
    assert is_litter(name)
    assert not is_litter("a/report.pdf")
