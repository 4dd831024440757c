"""Mails and archives are taken apart whole, within bounds, and with nothing written where a name points to."""

import gzip
import io
import tarfile
import zipfile
from email.message import EmailMessage
from pathlib import Path

import pytest

from primer_core.failures import Reason
from primer_resources.containers import unpack as unpacking
from primer_resources.containers.manifest import Unpacked, read_manifest
from primer_resources.containers.unpack import unpack

MOST = 10 * 2**20
PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)


def mail(subject: str = "The plan") -> EmailMessage:
    message = EmailMessage()
    message["Subject"], message["From"], message["To"] = subject, "a@example.org", "b@example.org"
    message["Date"] = "Mon, 02 Mar 2026 10:00:00 +0000"
    message.set_content("Find the plan attached.")
    return message


def zipped(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "task").mkdir()
    return tmp_path


def members_of(place: Path, name: str, data: bytes, most: int = MOST) -> dict[str, bytes]:
    (place / name).write_bytes(data)
    assert unpack(place / "task", place / name, name, most) == Unpacked()
    return {member.path: member.file.read_bytes() for member in read_manifest(place / "task")}


def fault_of(place: Path, name: str, data: bytes, most: int = MOST) -> str | None:
    (place / name).write_bytes(data)
    answer = unpack(place / "task", place / name, name, most)
    assert name in answer.message
    return answer.reason


def test_a_mail_gives_its_attachments_and_not_the_pictures_that_its_text_shows(place: Path) -> None:
    message = mail()
    message.add_alternative("<p>Find the plan attached. <img src='cid:logo'></p>", subtype="html")
    message.get_payload()[1].add_related(PNG, "image", "png", cid="<logo>", filename="logo.png")
    message.add_attachment(b"%PDF-1.4 plan", maintype="application", subtype="pdf", filename="plan.pdf")
    message.add_attachment("notes", filename="notes.txt")
    message.add_attachment(PNG, maintype="image", subtype="png", filename="scan.png")
    found = members_of(place, "mail.eml", message.as_bytes())
    assert list(found) == ["plan.pdf", "notes.txt", "scan.png"]
    assert found["plan.pdf"] == b"%PDF-1.4 plan"
    assert found["notes.txt"].strip() == b"notes"


def test_an_empty_attachment_is_a_member_too(place: Path) -> None:
    message = mail()
    message.add_attachment(b"", maintype="application", subtype="octet-stream", filename="zero.bin")
    assert members_of(place, "mail.eml", message.as_bytes()) == {"zero.bin": b""}


def test_a_mail_without_attachments_has_no_members(place: Path) -> None:
    assert members_of(place, "mail.eml", mail().as_bytes()) == {}


def test_a_mail_in_a_mail_and_an_archive_in_it_are_opened_as_well(place: Path) -> None:
    inner = mail("Figures")
    inner.add_attachment(zipped({"q1/figures.csv": b"a,b\n1,2\n"}), maintype="application", subtype="zip", filename="figures.zip")
    outer = mail("Fwd: Figures")
    outer.add_attachment(inner)
    found = members_of(place, "mail.eml", outer.as_bytes())
    assert list(found) == ["Figures.eml", "Figures.eml/figures.zip", "Figures.eml/figures.zip/q1/figures.csv"]
    assert found["Figures.eml/figures.zip/q1/figures.csv"] == b"a,b\n1,2\n"


def test_archives_in_archives_are_opened_so_far_and_no_further(place: Path) -> None:
    data = b"the innermost words"
    for level in range(6):
        data = zipped({f"level-{level}.zip" if level else "words.txt": data})
    found = members_of(place, "top.zip", data)
    assert max(path.count("/") for path in found) + 1 == unpacking.DEEPEST


def test_names_that_lead_out_stay_inside_and_nothing_is_written_elsewhere(place: Path) -> None:
    found = members_of(place, "evil.zip", zipped({"../../up.txt": b"a", "/root.txt": b"b", "dir/../x.txt": b"c"}))
    assert set(found) == {"up.txt", "root.txt", "dir/x.txt"}
    assert sorted(path.name for path in place.iterdir()) == ["evil.zip", "task"]


@pytest.mark.parametrize(("suffix", "mode"), [("tar", "w:"), ("tar.gz", "w:gz"), ("tar.xz", "w:xz"), ("tar.bz2", "w:bz2")])
def test_tar_files_of_every_kind_give_files_and_no_links(place: Path, suffix: str, mode: str) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:  # type: ignore[call-overload]
        entry = tarfile.TarInfo("docs/a.txt")
        entry.size = 5
        archive.addfile(entry, io.BytesIO(b"words"))
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    assert members_of(place, f"docs.{suffix}", out.getvalue()) == {"docs/a.txt": b"words"}


def test_one_compressed_file_is_named_after_its_archive(place: Path) -> None:
    assert members_of(place, "notes.txt.gz", gzip.compress(b"words")) == {"notes.txt": b"words"}


def test_a_member_larger_than_any_document_is_left_out_and_the_others_are_there(place: Path) -> None:
    found = members_of(place, "mixed.zip", zipped({"large.bin": bytes(5_000), "small.txt": b"words"}), most=1_000)
    assert found == {"small.txt": b"words"}


def test_bombs_and_crowds_are_too_large(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = zipped({f"{n}.txt": b"words" for n in range(unpacking.MOST_MEMBERS + 1)})
    assert fault_of(place, "crowd.zip", crowd) == Reason.TOO_LARGE
    monkeypatch.setattr(unpacking, "MOST_BYTES", 2**20)
    assert fault_of(place, "bomb.txt.gz", gzip.compress(b"words " * 5_000_000), most=2**40) == Reason.TOO_LARGE


def test_damaged_and_locked_archives_say_so(place: Path) -> None:
    data = zipped({"a.txt": b"words " * 500, "b.txt": b"words"})
    assert fault_of(place, "cut.zip", data[: len(data) // 2]) == Reason.TRUNCATED
    broken = bytearray(data)
    broken[60:90] = bytes(30)
    assert fault_of(place, "broken.zip", bytes(broken)) == Reason.CORRUPT
    assert fault_of(place, "cut.tar.gz", gzip.compress(bytes(range(256)) * 400)[:-40]) == Reason.CORRUPT


def test_a_damaged_archive_inside_stays_a_member(place: Path) -> None:
    inner = zipped({"a.txt": b"words " * 500})
    found = members_of(place, "outer.zip", zipped({"inner.zip": inner[: len(inner) // 2], "b.txt": b"more"}))
    assert set(found) == {"inner.zip", "b.txt"}
