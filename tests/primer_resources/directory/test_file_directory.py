"""A person's groups come from the file as it is now; what cannot be read is never "no groups"."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primer_resources.directory.base import DirectoryUnreadable, UnknownPerson
from primer_resources.directory.file import FileDirectory

TEXT = """
people:
  ana: [hr]
  ben: [board, staff]
  cleo: []
groups:
  hr: [staff]
  staff: [everyone]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "people.yaml"
    path.write_text(TEXT)
    return path


def test_a_person_has_his_groups_and_those_that_they_stand_in(file: Path) -> None:
    directory = FileDirectory(file)
    assert directory.groups_of("ana") == {"hr", "staff", "everyone"}
    assert directory.groups_of(" ben ") == {"board", "staff", "everyone"}
    assert directory.groups_of("cleo") == frozenset()
    assert directory.people_in(["staff"]) == ("ana", "ben")
    assert directory.people_in([]) == ()


def test_groups_that_stand_in_each_other_end(file: Path) -> None:
    file.write_text("people: {ana: [a]}\ngroups: {a: [b], b: [c], c: [a, d], d: [d]}\n")
    assert FileDirectory(file).groups_of("ana") == {"a", "b", "c", "d"}


def test_a_change_of_the_file_counts_at_once(file: Path) -> None:
    directory = FileDirectory(file)
    assert "hr" in directory.groups_of("ana")
    other = file.with_name("next.yaml")
    other.write_text(TEXT.replace("ana: [hr]", "ana: [it]"))
    other.replace(file)
    assert directory.groups_of("ana") == {"it"}


def test_an_unknown_person_and_an_unreadable_directory_are_two_things(file: Path) -> None:
    directory = FileDirectory(file)
    with pytest.raises(UnknownPerson, match="'dora' is not in the directory"):
        directory.groups_of("dora")
    file.unlink()
    with pytest.raises(DirectoryUnreadable, match="nobody's groups are known"):
        directory.groups_of("ana")
    file.write_text(TEXT)
    assert directory.groups_of("ana")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "write `people"),
        ("people: [ana]", "people is not valid"),
        ("people: {ana: hr}", "people.ana is not valid"),
        ("people: {ana: [hr]}\nteams: {}", "teams is not valid"),
        ("people: {ana: [hr], ana: [board]}", "stands twice"),
        ("people: {ana: [hr], ' ana': [board]}", "stands twice"),
        ("people: {ana: [hr", "no valid YAML"),
        ("people: {ana: [7]}", "people.ana.0 is not valid"),
    ],
)
def test_a_file_that_is_no_directory_opens_nothing_even_if_it_was_one_before(file: Path, text: str, says: str) -> None:
    directory = FileDirectory(file)
    directory.groups_of("ana")
    file.write_text(text)
    with pytest.raises(DirectoryUnreadable, match=says):
        directory.groups_of("ana")


def test_json_is_read_as_json_and_no_key_stands_twice(tmp_path: Path) -> None:
    path = tmp_path / "people.json"
    path.write_text(json.dumps({"people": {"ana": ["hr"]}, "groups": {"hr": ["staff"]}}, indent="\t"))
    assert FileDirectory(path).groups_of("ana") == {"hr", "staff"}
    path.write_text('{"people": {"ana": ["hr"], "ana": ["board"]}}')
    with pytest.raises(DirectoryUnreadable, match="'ana' stands twice"):
        FileDirectory(path).groups_of("ana")


NAMES = st.sampled_from(["a", "b", "c", "d", "e"])


@given(st.sets(NAMES, max_size=3), st.dictionaries(NAMES, st.lists(NAMES, max_size=3), max_size=5))
def test_the_groups_are_closed_under_what_they_stand_in(
    tmp_path_factory: pytest.TempPathFactory, own: set[str], above: dict[str, list[str]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "closure.json"
    path.write_text(json.dumps({"people": {"ana": sorted(own)}, "groups": above}))
    groups = FileDirectory(path).groups_of("ana")
    assert own <= groups
    assert all(set(above.get(group, ())) <= groups for group in groups)
    reached = own | {parent for group in groups for parent in above.get(group, ())}
    assert groups <= reached
