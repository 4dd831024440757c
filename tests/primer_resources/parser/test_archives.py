"""What a container holds is known before it is opened, and a bomb is never opened."""

import zipfile
from pathlib import Path
from typing import Any

import pytest

from primer_core.failures import DocumentFault, Reason
from primer_core.routing import Format
from primer_resources.parser import archives
from primer_resources.parser.archives import check_zip, ole_streams, zip_members
from primer_resources.parser.sniffing import sniff_file


def put(folder: Path, data: bytes) -> Path:
    path = folder / "content"
    path.write_bytes(data)
    return path


def reason_of(path: Path) -> Reason:
    with pytest.raises(DocumentFault) as caught:
        check_zip(path, "report.docx")
    assert "report.docx" in caught.value.message
    return caught.value.reason


def test_a_sound_file_passes(make: Any, tmp_path: Path) -> None:
    path = put(tmp_path, make.docx())
    check_zip(path, "report.docx")
    assert "word/document.xml" in zip_members(path)
    assert sniff_file(path, "report.txt").format is Format.DOCX


def test_a_bomb_is_refused_by_its_directory_alone(tmp_path: Path) -> None:
    path = tmp_path / "bomb"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(3):
            archive.writestr(f"word/{number}.xml", bytes(20 * 2**20))
    assert reason_of(path) is Reason.TOO_LARGE


@pytest.mark.parametrize(
    ("limit", "value"), [("MAX_MEMBERS", 3), ("MAX_MEMBER_BYTES", 900), ("MAX_TOTAL_BYTES", 1_000), ("MAX_DIRECTORY_BYTES", 100)]
)
def test_each_bound_is_kept(make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int) -> None:
    path = put(tmp_path, make.docx())
    monkeypatch.setattr(archives, limit, value)
    assert reason_of(path) is Reason.TOO_LARGE


def test_a_file_that_was_cut_off_says_so(make: Any, tmp_path: Path) -> None:
    data = make.docx()
    path = put(tmp_path, data[: len(data) // 2])
    assert reason_of(path) is Reason.TRUNCATED
    assert zip_members(path) == ()
    assert sniff_file(path, "").format is Format.DOCX


def test_a_damaged_directory_is_corrupt(make: Any, tmp_path: Path) -> None:
    data = make.docx()
    assert reason_of(put(tmp_path, data.replace(b"PK\x01\x02", b"PK\x01\x00"))) is Reason.CORRUPT


def test_a_locked_part_is_encrypted(make: Any, tmp_path: Path) -> None:
    data = bytearray(make.docx())
    at = data.index(b"PK\x01\x02")
    data[at + 8] |= 1
    assert reason_of(put(tmp_path, bytes(data))) is Reason.ENCRYPTED


def test_a_damaged_ole_file_has_no_streams(tmp_path: Path) -> None:
    path = put(tmp_path, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\x00" * 2_000)
    assert ole_streams(path) == ()
    assert sniff_file(path, "x.docx").format is Format.LEGACY_OFFICE


def test_an_encrypted_office_file_is_told_from_a_legacy_one(corpus: Path) -> None:
    drive = corpus / "files" / "drive"
    assert sniff_file(drive / "Problem files" / "bug53475-password-is-pass.docx", "x").format is Format.ENCRYPTED_OFFICE
    assert sniff_file(drive / "Archive" / "legacy" / "legacy_sample.xls", "x").mime == "application/vnd.ms-excel"
