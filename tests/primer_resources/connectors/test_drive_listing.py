"""The listing of a drive: nothing is left out unsaid, and it knows whether it is evidence."""

import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from primer_core.failures import PrimerError, Reason, SystemFault
from primer_resources.connectors.base import ListedItem
from primer_resources.connectors.drive import DriveConnector, DriveSettings
from primer_resources.connectors.drive_walk import DriveListing
from primer_resources.connectors.registry import check_source


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "drive"
    place.mkdir()
    return place


def put(root: Path, path: str, data: bytes = b"text") -> Path:
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(data)
    return place


def drive(root: Path, **settings: Any) -> DriveConnector:
    return DriveConnector(DriveSettings(root=root, **{"groups": ("everyone",), **settings}))


def read(listing: DriveListing) -> dict[str, ListedItem]:
    items = list(listing)
    assert len({item.path for item in items}) == len(items)
    return {item.path: item for item in items}


def faults(root: Path, **settings: Any) -> dict[str, Reason | None]:
    listing = drive(root, **settings).list()
    found = {path: item.fault for path, item in read(listing).items()}
    assert listing.problems == ()
    return found


def test_the_order_is_that_of_the_names_and_a_folder_stands_at_its_own_place(root: Path) -> None:
    for path in ("b/z.txt", "b/a/x.txt", "b.txt", "a.txt", "ä.txt", "Z.txt"):
        put(root, path)
    assert [item.path for item in drive(root).list()] == ["Z.txt", "a.txt", "b/a/x.txt", "b/z.txt", "b.txt", "ä.txt"]


def test_the_listing_is_streamed(root: Path) -> None:
    put(root, "a/1.txt")
    put(root, "b/2.txt")
    items = iter(drive(root).list())
    assert next(items).path == "a/1.txt"
    put(root, "b/3.txt")
    assert [item.path for item in items] == ["b/2.txt", "b/3.txt"]


def dig(root: Path, name: str, depth: int) -> None:
    """Make folders one in another, and a file in the last, however long the whole path grows."""
    at = os.open(root, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=at)
        below = os.open(name, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(os.open("deep.txt", os.O_CREAT | os.O_WRONLY, dir_fd=at))
    os.close(at)


@pytest.fixture
def deep_root(root: Path) -> Iterator[Path]:
    yield root
    subprocess.run(["rm", "-rf", str(root)], check=True)  # Python's own removal is recursive and ends at the same depths.


def test_a_tree_deeper_than_the_recursion_limit_is_walked(deep_root: Path) -> None:
    dig(deep_root, "d", 1_500)
    assert set(faults(deep_root)) == {"d/" * 1_500 + "deep.txt"}


def test_a_path_longer_than_the_system_takes_makes_the_listing_incomplete(deep_root: Path) -> None:
    dig(deep_root, "n" * 250, 20)
    put(deep_root, "a.txt")
    listing = drive(deep_root).list()
    assert set(read(listing)) == {"a.txt"}
    assert len(listing.problems) == 1
    assert listing.problems[0].endswith("File name too long")


def test_the_fingerprint_is_size_and_nanoseconds(root: Path) -> None:
    os.utime(put(root, "a.txt", b"12345"), ns=(0, 1_700_000_000_123_456_789))
    item = read(drive(root).list())["a.txt"]
    assert (item.fingerprint, item.modified_ns, item.size) == ("5:1700000000123456789", 1_700_000_000_123_456_789, 5)


def test_junk_is_left_out_and_counted(root: Path) -> None:
    for path in ("a.txt", ".DS_Store", "Thumbs.db", "~$a.docx", ".git/config", ".env", ".cache/x.txt"):
        put(root, path)
    listing = drive(root).list()
    assert set(read(listing)) == {"a.txt"}
    assert listing.skipped == {"junk": 4, "hidden": 2}
    assert set(faults(root, include_hidden=True)) == {"a.txt", ".env", ".cache/x.txt"}


def test_a_name_that_is_not_utf8_is_listed_with_a_fault_and_so_is_what_lies_below(root: Path) -> None:
    raw = os.fsencode(root)
    Path(os.fsdecode(raw + b"/caf\xe9.txt")).write_bytes(b"x")
    Path(os.fsdecode(raw + rb"/caf\xe9.txt")).write_bytes(b"x")
    Path(os.fsdecode(raw + b"/old\xff")).mkdir()
    Path(os.fsdecode(raw + b"/old\xff/plain.txt")).write_bytes(b"x")
    put(root, "fine.txt")
    found = faults(root)
    assert found == {
        r"caf\xe9.txt": Reason.NAME_NOT_UTF8,
        r"caf\x5cxe9.txt": None,
        r"old\xff/plain.txt": Reason.NAME_NOT_UTF8,
        "fine.txt": None,
    }
    assert read(drive(root).list())[r"caf\xe9.txt"].uri.endswith("/caf%E9.txt")


def test_a_link_to_a_file_inside_is_a_document(root: Path) -> None:
    put(root, "real/a.txt", b"12345")
    (root / "link.txt").symlink_to("real/a.txt")
    item = read(drive(root).list())["link.txt"]
    assert (item.fault, item.size, item.title) == (None, 5, "link.txt")
    assert item.uri == (root / "link.txt").as_uri()


def test_a_link_to_a_folder_inside_is_walked_once(root: Path) -> None:
    put(root, "real/sub/a.txt")
    (root / "first").symlink_to("real")
    (root / "second").symlink_to("real")
    listing = drive(root).list()
    assert set(read(listing)) == {"real/sub/a.txt", "first/sub/a.txt"}
    assert listing.skipped == {"folder reached by an earlier link": 1}
    assert listing.problems == ()


@pytest.mark.parametrize("target", ["..", ".", "../..", "itself"])
def test_a_link_back_up_is_a_loop_and_not_walked(root: Path, target: str) -> None:
    put(root, "a/b/c.txt")
    (root / "a/b/itself").symlink_to(target)
    assert faults(root) == {"a/b/c.txt": None, "a/b/itself": Reason.SYMLINK_LOOP}


def test_a_link_up_to_where_its_folder_truly_stands_is_a_loop(root: Path) -> None:
    put(root, "z/real/a.txt")
    (root / "z/real/up").symlink_to(root / "z")
    (root / "link").symlink_to("z/real")
    assert faults(root) == {
        "link/a.txt": None,
        "link/up": Reason.SYMLINK_LOOP,
        "z/real/a.txt": None,
        "z/real/up": Reason.SYMLINK_LOOP,
    }


def test_links_that_lead_to_each_other_end(root: Path) -> None:
    for folder in "abcdef":
        put(root, f"{folder}/x.txt")
        for other in "abcdef":
            if other != folder:
                (root / folder / f"to-{other}").symlink_to(root / other)
    found = faults(root)
    assert {f"{folder}/x.txt" for folder in "abcdef"} <= set(found)
    assert set(found.values()) == {None, Reason.SYMLINK_LOOP}


def test_a_link_that_leaves_the_root_is_a_fault_and_never_looked_behind(root: Path, tmp_path: Path) -> None:
    put(tmp_path, "outside/secret.txt")
    put(tmp_path, "drive2/secret.txt")
    (root / "folder").symlink_to("../outside")
    (root / "file.txt").symlink_to("../outside/secret.txt")
    (root / "near").symlink_to("../drive2")
    (root / "nothing").symlink_to("../outside/nothing")
    items = read(drive(root).list())
    assert {path: item.fault for path, item in items.items()} == dict.fromkeys(
        ("folder", "file.txt", "near", "nothing"), Reason.OUTSIDE_ROOT
    )
    assert all(item.size == 0 and item.error for item in items.values())


def test_a_dangling_link_is_unreadable(root: Path) -> None:
    (root / "gone.txt").symlink_to("nowhere.txt")
    assert faults(root) == {"gone.txt": Reason.UNREADABLE}


def test_pipes_sockets_and_links_to_them_are_listed_and_never_opened(root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "link").symlink_to("pipe")
    before = Path.cwd()
    with socket.socket(socket.AF_UNIX) as server:
        os.chdir(root)  # A socket's path has 108 bytes at most.
        try:
            server.bind("socket")
        finally:
            os.chdir(before)
        items = read(drive(root).list())
    assert {item.fault for item in items.values()} == {Reason.UNREADABLE}
    assert {path: item.error.split(",")[0] for path, item in items.items()} == {
        "link": "a named pipe",
        "pipe": "a named pipe",
        "socket": "a socket",
    }


def test_a_folder_that_vanishes_under_the_walk_makes_the_listing_incomplete(root: Path) -> None:
    put(root, "a.txt")
    put(root, "b/1.txt")
    put(root, "c.txt")
    listing = drive(root).list()
    items = iter(listing)
    next(items)
    (root / "b").rename(root.parent / "elsewhere")
    (root / "c.txt").unlink()
    assert list(items) == []
    assert listing.problems == ("b: No such file or directory",)
    assert listing.skipped == {"vanished while listed": 1}


def test_a_root_that_was_replaced_under_the_walk_makes_the_listing_incomplete(root: Path, tmp_path: Path) -> None:
    put(root, "a.txt")
    listing = drive(root).list()
    items = iter(listing)
    next(items)
    root.rename(tmp_path / "unmounted")
    root.mkdir()
    list(items)
    assert any("another folder" in problem for problem in listing.problems)


def test_a_root_that_is_not_there_is_the_systems_fault_and_names_the_path(root: Path) -> None:
    missing = drive(root / "missing")
    with pytest.raises(SystemFault, match=r"missing does not exist; .*`root`"):
        list(missing.list())
    assert missing.list().problems


@pytest.mark.parametrize("path", ["file.txt", "/"])
def test_a_root_that_is_no_folder_of_documents_is_refused(root: Path, path: str) -> None:
    put(root, "file.txt")
    with pytest.raises(SystemFault, match="set `root` to the folder"):
        list(drive(root / path).list())


def test_the_access_file_is_no_document_wherever_it_stands(root: Path) -> None:
    put(root, "a.txt")
    put(root, "rules.yaml", b"groups: [staff]")
    listing = drive(root, access_file=root / "rules.yaml").list()
    assert {path: item.access.groups for path, item in read(listing).items()} == {"a.txt": ("staff",)}
    assert listing.skipped == {"access file": 1}


def test_every_document_has_the_access_of_its_nearest_listed_folder(root: Path) -> None:
    for path in ("a.txt", "HR/b.txt", "HR/Private/x/c.txt", "Office/d.txt"):
        put(root, path)
    put(root.parent, "drive.access.yaml", b"groups: [everyone]\nfolders: {HR: [hr], HR/Private: [board], Fiance: [finance]}")
    listing = drive(root).list()
    assert {path: (item.access.scope, item.access.groups) for path, item in read(listing).items()} == {
        "a.txt": ("", ("everyone",)),
        "HR/b.txt": ("HR", ("hr",)),
        "HR/Private/x/c.txt": ("HR/Private", ("board",)),
        "Office/d.txt": ("", ("everyone",)),
    }
    assert len(listing.notices) == 1
    assert "'Fiance'" in listing.notices[0]


def test_a_link_from_an_open_folder_does_not_open_a_closed_one(root: Path) -> None:
    put(root, "HR/salaries.txt")
    put(root.parent, "drive.access.yaml", b"groups: [everyone]\nfolders: {HR: [hr]}")
    (root / "Open").mkdir()
    (root / "Open/all").symlink_to("../HR")
    (root / "Open/one.txt").symlink_to("../HR/salaries.txt")
    found = read(drive(root).list())
    assert set(found) == {"HR/salaries.txt", "Open/all/salaries.txt", "Open/one.txt"}
    assert {(item.access.scope, item.access.groups) for item in found.values()} == {("HR", ("hr",))}


def test_an_access_file_that_cannot_be_used_hides_every_document_and_lists_them_all(root: Path) -> None:
    put(root, "a.txt")
    put(root, "HR/b.txt")
    put(root.parent, "drive.access.yaml", b"groups: everyone")
    listing = drive(root).list()
    assert {path: (item.access.readable, item.access.groups, item.fault) for path, item in read(listing).items()} == dict.fromkeys(
        ("a.txt", "HR/b.txt"), (False, (), None)
    )
    assert listing.problems == ()


def test_a_folder_that_may_not_be_read_makes_the_listing_incomplete_and_the_others_go_on(
    shared: Path, run_without_rights: Callable[..., dict[str, Any]]
) -> None:
    root = shared / "drive"
    for path in ("a.txt", "closed/b.txt", "names only/sub/c.txt", "names only/d.txt", "z.txt"):
        put(root, path)
    (root / "closed").chmod(0o000)
    (root / "names only").chmod(0o744)
    found = run_without_rights(root=root)
    assert found["error"] == ""
    assert found["items"] == {
        "a.txt": [None, True, "fetched"],
        "names only/d.txt": ["unreadable", True, "unreadable"],
        "z.txt": [None, True, "fetched"],
    }
    assert [problem.split(":")[0] for problem in found["problems"]] == ["closed", "names only/sub"]


def test_one_file_that_may_not_be_read_is_its_own_fault_and_the_listing_stays_complete(
    shared: Path, run_without_rights: Callable[..., dict[str, Any]]
) -> None:
    root = shared / "drive"
    put(root, "a.txt")
    put(root, "closed.txt").chmod(0o000)
    assert run_without_rights(root=root) == {
        "items": {"a.txt": [None, True, "fetched"], "closed.txt": [None, True, "unreadable"]},
        "error": "",
        "problems": [],
    }


def test_an_access_file_that_may_not_be_read_hides_every_document(shared: Path, run_without_rights: Callable[..., dict[str, Any]]) -> None:
    root = shared / "drive"
    put(root, "a.txt")
    put(shared, "drive.access.yaml", b"groups: [everyone]").chmod(0o000)
    assert run_without_rights(root=root, groups=["everyone"])["items"]["a.txt"][:2] == [None, False]


def test_a_root_that_may_not_be_read_is_the_systems_fault(shared: Path, run_without_rights: Callable[..., dict[str, Any]]) -> None:
    root = shared / "drive"
    put(root, "a.txt")
    root.chmod(0o000)
    found = run_without_rights(root=root)
    assert found["items"] == {}
    assert found["error"].startswith("SystemFault: source folder")
    assert found["problems"]


def test_a_wrong_setting_is_named_with_its_value(root: Path) -> None:
    assert check_source("drive", {"root": str(root)}, None) == DriveSettings(root=root)
    with pytest.raises(PrimerError, match=r"max_file_mb = 0 .*greater than or equal to 1"):
        check_source("drive", {"root": str(root), "max_file_mb": 0}, None)
    with pytest.raises(PrimerError, match=r"rooot = .*settings: groups"):
        check_source("drive", {"root": str(root), "rooot": "x"}, None)
