"""The sample corpus: small, listed whole, and with permissions that show something."""

from pathlib import Path

import pytest

from primer_resources.connectors.drive import DriveConnector, DriveSettings

SAMPLES = Path(__file__).parents[3] / "samples"
FORMATS = {".html", ".md", ".txt", ".csv", ".docx", ".pptx", ".xlsx", ".eml", ".pdf"}


def test_the_samples_are_listed_whole_with_every_format_and_under_a_megabyte() -> None:
    listing = DriveConnector(DriveSettings(root=SAMPLES)).list()
    items = list(listing)
    assert listing.problems == ()
    assert listing.notices == ()
    assert {item.fault for item in items} == {None}
    assert {Path(item.path).suffix for item in items} == FORMATS
    assert sum(item.size for item in items) < 1_000_000


@pytest.mark.parametrize(
    ("path", "groups"),
    [
        ("Handbook/remote-work.md", ("everyone",)),
        ("HR/salary-bands-2026.xlsx", ("hr",)),
        ("HR/Policies/parental-leave.docx", ("everyone",)),
        ("Finance/supplier-terms.pdf", ("finance",)),
    ],
)
def test_the_access_file_beside_the_samples_closes_two_folders_and_opens_one_within(path: str, groups: tuple[str, ...]) -> None:
    items = {item.path: item for item in DriveConnector(DriveSettings(root=SAMPLES)).list()}
    assert items[path].access.groups == groups
    assert items[path].access.readable


def test_the_pdfs_hold_text_that_extracts_as_written() -> None:
    from pypdfium2 import PdfDocument

    document = PdfDocument(SAMPLES / "Engineering/TW-300-installation.pdf")
    text = " ".join(" ".join(page.get_textpage().get_text_range() for page in document).split())
    assert len(document) == 2
    assert "tighten the bolts to 18 newton metres" in text
    assert "The difference must be below 5 millimetres." in text
