"""Fetching from a drive: the bytes are whole, from inside the root, and of one moment."""

import os
import stat
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from primer_core.failures import DocumentFault, PrimerError, Reason, SystemFault, Transient
from primer_resources.connectors.base import ListedItem
from primer_resources.connectors.drive import DriveConnector, DriveSettings


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "drive"
    (place / "sub").mkdir(parents=True)
    (place / "sub" / "a.txt").write_bytes(b"the real one")
    return place


@pytest.fixture
def connector(root: Path) -> DriveConnector:
    return DriveConnector(DriveSettings(root=root, max_file_mb=64))


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "copy"


def item_of(connector: DriveConnector, path: str) -> ListedItem:
    return next(item for item in connector.list() if item.path == path)


def test_the_copy_is_private(connector: DriveConnector, target: Path) -> None:
    connector.fetch(item_of(connector, "sub/a.txt"), target)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_a_document_behind_links_is_fetched_from_where_it_lies(root: Path, connector: DriveConnector, target: Path) -> None:
    (root / "folder").symlink_to("sub")
    (root / "link.txt").symlink_to("folder/a.txt")
    for path in ("folder/a.txt", "link.txt"):
        connector.fetch(item_of(connector, path), target)
        assert target.read_bytes() == b"the real one"


@pytest.mark.parametrize("swapped", ["sub", "sub/a.txt"])
def test_a_link_swapped_in_after_the_listing_leads_nowhere(
    root: Path, tmp_path: Path, connector: DriveConnector, target: Path, swapped: str
) -> None:
    item = item_of(connector, "sub/a.txt")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.txt").write_bytes(b"not for Primer")
    (root / swapped).rename(tmp_path / "aside")
    (root / swapped).symlink_to(outside if swapped == "sub" else outside / "a.txt")
    with pytest.raises(Transient, match=r"sub/a\.txt vanished or moved"):
        connector.fetch(item, target)
    assert not target.exists()


def test_a_link_turned_to_a_closed_folder_after_the_listing_is_not_followed(root: Path, connector: DriveConnector, target: Path) -> None:
    (root / "closed.txt").write_bytes(b"closed")
    (root / "link.txt").symlink_to("sub/a.txt")
    item = item_of(connector, "link.txt")
    (root / "link.txt").unlink()
    (root / "link.txt").symlink_to("closed.txt")
    connector.fetch(item, target)
    assert target.read_bytes() == b"the real one"


@pytest.mark.parametrize("native", ["../outside.txt", "sub/../../outside.txt", "/etc/hostname", ""])
def test_a_path_that_is_not_below_the_root_is_refused(tmp_path: Path, connector: DriveConnector, target: Path, native: str) -> None:
    (tmp_path / "outside.txt").write_bytes(b"outside")
    with pytest.raises(DocumentFault) as caught:
        connector.fetch(replace(item_of(connector, "sub/a.txt"), native_path=native), target)
    assert caught.value.reason is Reason.OUTSIDE_ROOT


def test_a_pipe_that_took_the_files_place_is_not_opened(root: Path, connector: DriveConnector, target: Path) -> None:
    item = item_of(connector, "sub/a.txt")
    (root / "sub/a.txt").unlink()
    os.mkfifo(root / "sub/a.txt")
    with pytest.raises(DocumentFault, match="a named pipe") as caught:
        connector.fetch(item, target)
    assert caught.value.reason is Reason.UNREADABLE


def test_an_items_own_fault_is_raised_with_its_reason(root: Path, connector: DriveConnector, target: Path) -> None:
    (root / "gone.txt").symlink_to("nowhere")
    with pytest.raises(DocumentFault, match=r"gone\.txt: the link leads to nothing") as caught:
        connector.fetch(item_of(connector, "gone.txt"), target)
    assert caught.value.reason is Reason.UNREADABLE


def start_fetch(connector: DriveConnector, item: ListedItem, pipe: Path) -> tuple[list[PrimerError], threading.Thread]:
    """Fetch into a named pipe in a thread: it stands still in the middle until the test reads on. The error caught, and the thread."""
    caught: list[PrimerError] = []

    def fetch() -> None:
        try:
            connector.fetch(item, pipe)
        except PrimerError as error:
            caught.append(error)

    worker = threading.Thread(target=fetch)
    worker.start()
    return caught, worker


def overwrite(place: Path) -> None:
    state = place.stat()
    with place.open("r+b") as writer:
        writer.write(b"changed")
    os.utime(place, ns=(state.st_atime_ns, state.st_mtime_ns))  # As some editors and sync tools do.


def grow(place: Path) -> None:
    with place.open("ab") as writer:
        writer.write(b"more")


def shrink(place: Path) -> None:
    os.truncate(place, 3_000_000)


def swap(place: Path) -> None:
    new = place.with_name("new.bin")
    new.write_bytes(place.read_bytes())
    new.replace(place)


def swap_folder(place: Path) -> None:
    place.parent.rename(place.parent.with_name("aside"))
    place.parent.mkdir()
    place.write_bytes(b"another file under the same path")


def remove(place: Path) -> None:
    place.unlink()


@pytest.mark.parametrize("change", [overwrite, grow, shrink, swap, swap_folder, remove])
def test_a_file_that_changes_while_it_is_read_is_tried_again_and_leaves_no_copy(
    root: Path, tmp_path: Path, connector: DriveConnector, change: Callable[[Path], None]
) -> None:
    place = root / "sub" / "busy.bin"
    place.write_bytes(b"\0" * 8_000_000)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    caught, worker = start_fetch(connector, item_of(connector, "sub/busy.bin"), pipe)
    with pipe.open("rb", buffering=0) as reader:
        reader.read(1)
        change(place)
        while reader.read(1 << 20):
            pass
    worker.join(timeout=30)
    assert [type(error) for error in caught] == [Transient]
    assert str(caught[0]).startswith("sub/busy.bin ")
    assert not pipe.exists()


def test_a_file_that_changed_before_the_fetch_tells_its_new_state(root: Path, connector: DriveConnector, target: Path) -> None:
    item = item_of(connector, "sub/a.txt")
    (root / "sub/a.txt").write_bytes(b"a longer text than before")
    fetched = connector.fetch(item, target)
    assert fetched.fingerprint != item.fingerprint
    assert fetched.fingerprint == item_of(connector, "sub/a.txt").fingerprint


def test_a_target_that_takes_no_more_blames_no_document(root: Path, tmp_path: Path, connector: DriveConnector) -> None:
    (root / "busy.bin").write_bytes(b"\0" * 8_000_000)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    caught, worker = start_fetch(connector, item_of(connector, "busy.bin"), pipe)
    with pipe.open("rb", buffering=0) as reader:
        reader.read(1)
    worker.join(timeout=30)
    assert [type(error) for error in caught] == [SystemFault]
    assert "Broken pipe" in str(caught[0])


def test_a_target_in_a_missing_folder_blames_no_document(connector: DriveConnector, tmp_path: Path) -> None:
    with pytest.raises(SystemFault, match="cannot be made"):
        connector.fetch(item_of(connector, "sub/a.txt"), tmp_path / "nowhere" / "copy")


def test_a_drive_that_went_away_blames_no_document(root: Path, tmp_path: Path, connector: DriveConnector, target: Path) -> None:
    item = item_of(connector, "sub/a.txt")
    root.rename(tmp_path / "unmounted")
    with pytest.raises(SystemFault, match="does not exist"):
        connector.fetch(item, target)


def test_the_limit_is_that_of_the_settings_to_the_byte(root: Path, target: Path) -> None:
    connector = DriveConnector(DriveSettings(root=root, max_file_mb=1))
    (root / "fits.bin").write_bytes(b"\0" * (1 << 20))
    (root / "over.bin").write_bytes(b"\0" * ((1 << 20) + 1))
    assert connector.fetch(item_of(connector, "fits.bin"), target).size == 1 << 20
    with pytest.raises(DocumentFault) as caught:
        connector.fetch(item_of(connector, "over.bin"), target)
    assert caught.value.reason is Reason.TOO_LARGE
