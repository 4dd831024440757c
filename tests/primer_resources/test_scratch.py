"""Scratch folders go with their owner, and only with their owner."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from primer_resources.scratch import PREFIX, Scratch, remove_all

OWNER = """
import sys
from primer_resources.scratch import Scratch
with Scratch() as folder:
    (folder / "copy").write_bytes(b"x" * 1000)
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_folder_goes_at_the_end_also_when_the_work_fails(root: Path) -> None:
    with pytest.raises(ZeroDivisionError), Scratch() as folder:  # noqa: PT012 - the fault is the point
        (folder / "copy").write_text("words")
        assert folder.stat().st_mode & 0o777 == 0o700
        _ = 1 / 0
    assert list(root.iterdir()) == []


def test_what_a_killed_process_left_is_removed_by_the_next_one(root: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(root)}
    command = [sys.executable, "-c", OWNER]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        left = Path(owner.stdout.readline().strip())
        with Scratch():
            assert (left / "copy").exists()  # a living owner's folder stays
        owner.kill()
    assert (left / "copy").exists()
    with Scratch() as folder:
        assert list(root.glob(f"{PREFIX}*")) == [folder]


def test_a_process_that_ends_in_the_middle_removes_what_it_has(root: Path) -> None:
    with Scratch() as folder:
        (folder / "copy").write_text("words")
        remove_all()
        assert list(root.iterdir()) == []
