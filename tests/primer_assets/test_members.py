"""Attachments and files in archives are documents of their own: found, permitted, changed, moved and deleted with what holds them."""

import io
import zipfile
from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path

import pytest

from primer.workspace import Workspace
from tests.deployment import Deployment, workspace


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with workspace(tmp_path_factory.mktemp("members") / "home", buckets=2) as made:
        yield made


@pytest.fixture
def place(shared: Workspace, tmp_path: Path) -> Deployment:
    return Deployment(shared, tmp_path / "docs", f"docs{len(shared.catalog.sources.all())}")


def mail(words: str, attachments: dict[str, str]) -> bytes:
    message = EmailMessage()
    message["Subject"], message["From"], message["To"] = "The harvest", "a@example.org", "b@example.org"
    message["Date"] = "Mon, 02 Mar 2026 10:00:00 +0000"
    message.set_content(words)
    for name, text in attachments.items():
        message.add_attachment(text, filename=name)
    return message.as_bytes()


def zipped(members: dict[str, str]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return out.getvalue()


def paths_of(place: Deployment, query: str) -> set[str]:
    return {hit.path for hit in place.search(query, k=3)}


def test_an_attachment_lives_and_dies_with_its_mail(place: Deployment) -> None:
    file = place.folder / "mail.eml"
    file.write_bytes(
        mail("See the attached notes.", {"olives.txt": "Olives are picked by hand in November.", "figs.txt": "Figs ripen twice."})
    )
    first = place.sync().counts
    assert (first["scanned"], first["new"], first["indexed"], first["failed"]) == (3, 3, 3, 0)
    assert "mail.eml/olives.txt" in paths_of(place, "when are olives picked")
    again = place.sync().counts
    assert (again["scanned"], again["unchanged"], again["parsed"], again["embedded"]) == (3, 3, 0, 0)

    file.rename(place.folder / "moved.eml")
    moved = place.sync().counts
    assert (moved["scanned"], moved["unchanged"], moved["parsed"], moved["embedded"], moved["deleted"]) == (3, 3, 0, 0, 0)
    assert "moved.eml/olives.txt" in paths_of(place, "when are olives picked")

    file = place.folder / "moved.eml"
    file.write_bytes(mail("See the attached notes.", {"olives.txt": "Olives are shaken down by machines in October."}))
    changed = place.sync().counts
    assert (changed["scanned"], changed["changed"], changed["deleted"]) == (2, 2, 1)
    assert not any(hit.path.endswith("figs.txt") for hit in place.search("figs ripen"))
    assert any("machines" in hit.text for hit in place.search("how are olives picked"))

    file.unlink()
    gone = place.sync().counts
    assert (gone["scanned"], gone["deleted"]) == (0, 2)
    assert place.search("olives") == []
    assert place.reconcile().agrees


def test_an_attachment_is_seen_by_those_who_may_see_the_mail(place: Deployment) -> None:
    (place.folder / "private").mkdir()
    (place.folder / "private" / "mail.eml").write_bytes(mail("Salaries attached.", {"salaries.txt": "The cook earns nine hundred crowns."}))
    access = place.folder.with_name(f"{place.folder.name}.access.yaml")
    access.write_text("groups: [cooks]\n")
    assert place.sync().counts["indexed"] == 2
    assert {hit.path for hit in place.search("what does the cook earn", groups=("cooks",))} >= {"private/mail.eml/salaries.txt"}
    access.write_text("groups: [cooks]\nfolders:\n  private: [bosses]\n")
    moved = place.sync().counts
    assert (moved["scanned"], moved["acl_only"], moved["parsed"]) == (2, 2, 0)
    assert place.search("what does the cook earn", groups=("cooks",)) == []
    assert {hit.path for hit in place.search("what does the cook earn", groups=("bosses",))} >= {"private/mail.eml/salaries.txt"}


def test_an_archive_is_indexed_as_the_list_of_its_files_and_each_file_by_itself(place: Deployment) -> None:
    archive = place.folder / "recipes.zip"
    archive.write_bytes(
        zipped({"soups/leek.md": "# Leek soup\n\nSimmer the leeks in stock.", "__MACOSX/._leek.md": "litter", "blob.bin": "\0\1\2" * 50})
    )
    counts = place.sync().counts
    assert (counts["scanned"], counts["indexed"], counts["failed"]) == (3, 2, 1)
    assert place.dead() == {"recipes.zip/blob.bin": "unsupported_format"}
    assert "recipes.zip/soups/leek.md" in paths_of(place, "how to cook leeks")
    assert any(hit.path == "recipes.zip" and "soups/leek.md" in hit.text for hit in place.search("recipes leek.md"))
    catalog = place.workspace.catalog
    found = catalog.lookup.status(catalog.lookup.find_document(f"{place.name}/recipes.zip/soups/leek.md")[0], "v1")
    assert found.container == "recipes.zip"

    archive.write_text("no archive any more, plain words about leeks")
    assert place.sync().counts["deleted"] == 2
    assert place.reconcile().agrees


def test_an_archive_that_is_damaged_later_keeps_the_files_that_it_had(place: Deployment) -> None:
    archive = place.folder / "stories.zip"
    whole = zipped({"fox.md": "# The fox\n\nThe fox sleeps under the quince tree.", "owl.md": "# The owl\n\nThe owl counts the stars."})
    archive.write_bytes(whole)
    assert place.sync().counts["indexed"] == 3
    archive.write_bytes(whole[: len(whole) // 2])
    damaged = place.sync()
    assert (damaged.counts["changed"], damaged.counts["deleted"], damaged.counts["scanned"]) == (1, 0, 3)
    assert any("the files inside are not read" in note for note in damaged.notes)
    assert place.dead() == {"stories.zip": "truncated"}
    assert "stories.zip/fox.md" in paths_of(place, "where does the fox sleep")
    archive.write_bytes(whole)
    assert place.sync().counts["embedded"] == 0
    assert place.reconcile().agrees
