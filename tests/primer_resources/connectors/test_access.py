"""The access file: the nearest folder decides, and a file that cannot be used opens nothing."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primer_resources.connectors.access import AccessRules, access_file_beside, load_rules
from primer_resources.connectors.base import Access

GOOD = """
groups: [everyone, staff]
folders:
  HR: [hr]
  HR/Private/: [board, hr]
  Drafts: []
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "drive"
    place.mkdir()
    return place


def write(root: Path, text: str | bytes) -> None:
    raw = text.encode() if isinstance(text, str) else text
    access_file_beside(root).write_bytes(raw)


@pytest.mark.parametrize(
    ("folder", "scope", "groups"),
    [
        ("", "", ("everyone", "staff")),
        ("Office/Forms", "", ("everyone", "staff")),
        ("HR", "HR", ("hr",)),
        ("HR/Letters/2024", "HR", ("hr",)),
        ("HR/Private", "HR/Private", ("board", "hr")),
        ("HR/Private/Board", "HR/Private", ("board", "hr")),
        ("HRx", "", ("everyone", "staff")),
        ("Drafts", "Drafts", ()),
    ],
)
def test_the_nearest_listed_folder_up_the_path_wins(root: Path, folder: str, scope: str, groups: tuple[str, ...]) -> None:
    write(root, GOOD)
    assert load_rules(root, None, ("default",)).find(folder) == Access(scope=scope, groups=groups)


def test_without_a_file_the_settings_decide_and_no_groups_is_nobody(root: Path) -> None:
    assert load_rules(root, None, ("staff", "all")).find("HR") == Access(scope="", groups=("all", "staff"))
    assert load_rules(root, None, ()).find("HR") == Access(scope="", groups=())


def test_a_file_that_lists_folders_only_leaves_the_rest_to_the_settings(root: Path) -> None:
    write(root, "folders: {HR: [hr]}")
    rules = load_rules(root, None, ("staff",))
    assert rules.find("Office").groups == ("staff",)
    assert rules.find("HR").groups == ("hr",)


def test_a_folder_matches_however_its_accents_are_encoded(root: Path) -> None:
    write(root, "groups: [everyone]\nfolders: {B\u00fcro: [office]}")
    assert load_rules(root, None, ()).find("Bu\u0308ro/Keys").groups == ("office",)


BROKEN: dict[str, tuple[str | bytes, str]] = {
    "not yaml": ("groups: [everyone", "YAML"),
    "empty": ("", "mapping"),
    "a list": ("- everyone", "mapping"),
    "groups is a word": ("groups: everyone", "groups"),
    "groups is nothing": ("groups:", "groups"),
    "a group is no string": ("groups: [no]", "groups.0"),
    "a group is empty": ("groups: ['  ']", "groups.0"),
    "a folder's groups are a word": ("groups: []\nfolders: {HR: hr}", "folders.HR"),
    "a folder's groups are nothing": ("groups: []\nfolders:\n  HR:\n", "folders.HR"),
    "unknown key": ("groups: []\nfolder: {HR: [hr]}", "folder"),
    "a key twice": ("groups: []\nfolders:\n  HR: [hr]\n  HR: [everyone]", "'HR'"),
    "a folder twice": ("groups: []\nfolders:\n  HR: [hr]\n  HR/: [everyone]", "'HR/'"),
    "absolute": ("groups: []\nfolders: {/HR: [hr]}", "'/HR'"),
    "up the tree": ("groups: []\nfolders: {../HR: [hr]}", "'../HR'"),
    "the root as a folder": ("groups: []\nfolders: {'': [hr]}", "''"),
    "not utf-8": (b"groups: [caf\xe9]", "UTF-8"),
    "runs code": ("!!python/object/apply:os.system ['true']", "YAML"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_file_that_cannot_be_used_opens_nothing_and_names_file_key_and_fix(root: Path, case: str) -> None:
    text, named = BROKEN[case]
    write(root, text)
    for folder in ("", "HR"):
        access = load_rules(root, None, ("everyone",)).find(folder)
        assert (access.readable, access.groups) == (False, ())
        assert str(access_file_beside(root)) in access.error
        assert named in access.error
        assert "; " in access.error
        assert "\n" not in access.error


def test_a_bomb_of_aliases_is_refused_quickly(root: Path) -> None:
    lines = ["a: &a0 [x]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 40)]
    write(root, "\n".join(lines) + "\ngroups: *a39\n")
    access = load_rules(root, None, ("everyone",)).find("")
    assert not access.readable
    assert len(access.error) < 2_000


def test_a_file_named_in_the_settings_must_be_there(root: Path) -> None:
    access = load_rules(root, root / "access.yaml", ("everyone",)).find("")
    assert not access.readable
    assert "is not there" in access.error


def test_a_dangling_link_in_place_of_the_file_opens_nothing(root: Path) -> None:
    access_file_beside(root).symlink_to(root / "nowhere.yaml")
    assert not load_rules(root, None, ("everyone",)).find("").readable


def test_a_folder_in_place_of_the_file_opens_nothing(root: Path) -> None:
    access_file_beside(root).mkdir()
    assert not load_rules(root, None, ("everyone",)).find("").readable


def test_the_file_is_looked_for_beside_the_folder_as_people_name_it(tmp_path: Path, root: Path) -> None:
    (tmp_path / "alias").symlink_to(root)
    assert access_file_beside(tmp_path / "alias") == tmp_path / "alias.access.yaml"
    assert access_file_beside(root / "." / "HR" / "..") == tmp_path / "drive.access.yaml"


names = st.sampled_from(["a", "b", "c"])
paths = st.lists(names, min_size=1, max_size=4).map("/".join)


@given(st.dictionaries(paths, st.tuples(st.sampled_from(["g1", "g2"]))), paths)
def test_the_scope_is_always_the_longest_listed_prefix(folders: dict[str, tuple[str, ...]], folder: str) -> None:
    access = AccessRules(("all",), folders).find(folder)
    prefixes = [p for p in folders if folder == p or folder.startswith(p + "/")]
    longest = max(prefixes, key=len, default="")
    assert access == Access(scope=longest, groups=folders.get(longest, ("all",)))
