"""A look at one path of a drive shows the item that a listing shows there, link by link and rule by rule."""

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from primer_core.failures import SystemFault, Transient
from primer_resources.connectors.drive import DriveConnector, DriveSettings


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A drive with everything that a listing tells apart."""
    place = tmp_path / "drive"
    outside = tmp_path / "outside"
    for path in ("a/1.txt", "a/.hidden.txt", "a/.git/config", "b/deep/2.txt", "~$lock.docx", "plain.txt", "back\\slash.txt", "c/x.txt"):
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_bytes(b"text")
    outside.mkdir()
    (outside / "secret.txt").write_bytes(b"secret")
    (place / os.fsdecode(b"caf\xe9")).mkdir()
    (place / os.fsdecode(b"caf\xe9/menu.txt")).write_bytes(b"menu")
    for link, target in {
        "to-file": "b/deep/2.txt", "away": "../outside/secret.txt", "away-folder": "../outside", "dangling": "nowhere", "self": "self",
        "b/up": "..", "l1": "b/deep", "l2": "b/deep", "c/l0": "../b", "hidden-target": "a/.hidden.txt",
    }.items():  # fmt: skip
        (place / link).symlink_to(target)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(place / "socket"))
    os.mkfifo(place / "pipe")
    place.with_name("drive.access.yaml").write_text("groups: [everyone]\nfolders: {b/deep: [staff], a: []}\n")
    return place


def test_a_look_at_every_listed_path_shows_its_item(root: Path) -> None:
    drive = DriveConnector(DriveSettings(root=root))
    listing = drive.list()
    items = {item.path: item for item in listing}
    assert listing.problems == ()
    assert len(items) > 14
    assert {path: drive.look(path) for path in items} == items


def test_a_look_at_every_other_path_of_the_drive_finds_nothing(root: Path) -> None:
    drive = DriveConnector(DriveSettings(root=root))
    listed = {item.path for item in drive.list()}
    others = {
        "a/.hidden.txt", "a/.git/config", "~$lock.docx", "away-folder/secret.txt", "../outside/secret.txt", "l1/nothing.txt", "c", "b/deep",
        "back\\slash.txt", "caf\xe9/menu.txt", "PLAIN.TXT", "plain.txt/more", "to-file/more",
        "self/more", "b/up/plain.txt", "drive.access.yaml",
    } - listed  # fmt: skip
    behind_links = {f"{link}/{rest}" for link in ("l1", "l2", "c/l0/deep") for rest in ("2.txt",)} - listed
    assert behind_links, "a second link to a folder is left out of a listing"
    assert {path: drive.look(path) for path in others | behind_links} == dict.fromkeys(others | behind_links)


def test_a_folder_that_may_not_be_read_is_no_absence(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.scandir

    def refuse(path: Any) -> Any:
        if str(path).endswith("/a"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", refuse)
    drive = DriveConnector(DriveSettings(root=root))
    for path in ("a/1.txt", "a/nothing.txt", "l1/nothing.txt"):
        with pytest.raises(Transient, match=r"^a cannot be looked into|incomplete"):
            drive.look(path)
    assert drive.look("plain.txt") is not None


def test_a_drive_that_is_gone_is_no_absence(root: Path) -> None:
    root.rename(root.with_name("elsewhere"))
    with pytest.raises(SystemFault, match="does not exist"):
        DriveConnector(DriveSettings(root=root)).look("plain.txt")


def test_a_look_reads_only_the_folders_on_the_way(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    real: Callable[[Any], Any] = os.scandir

    def note(path: Any) -> Any:
        read.append(Path(path).name)
        return real(path)

    monkeypatch.setattr(os, "scandir", note)
    assert DriveConnector(DriveSettings(root=root)).look("b/deep/2.txt") is not None
    assert read == ["drive", "b", "deep"]
