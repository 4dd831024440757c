"""Where the golden set's paths lie in the sources."""

import pytest

from primer_core.failures import PrimerError
from primer_core.golden.paths import PathMap


@pytest.mark.parametrize(
    ("entries", "path", "place"),
    [
        ([], "drive/HR/a b.docx", ("drive", "HR/a b.docx")),
        ([], "drive", ("drive", "")),
        (["drive=cloud"], "drive/HR/a.docx", ("cloud", "HR/a.docx")),
        (["drive=cloud/shared"], "drive/HR/a.docx", ("cloud", "shared/HR/a.docx")),
        (["drive=cloud"], "drives/a.docx", ("drives", "a.docx")),
        (["tickets=all", "tickets/web/=web"], "tickets/web/7.json", ("web", "7.json")),
        (["tickets=all", "tickets/web=web"], "tickets/tls/7.json", ("all", "tls/7.json")),
        (["=samples"], "HR/a.docx", ("samples", "HR/a.docx")),
    ],
)
def test_the_longest_folder_decides_and_else_the_first_part_is_the_source(entries: list[str], path: str, place: tuple[str, str]) -> None:
    assert PathMap.parse(entries).place(path) == place


@pytest.mark.parametrize("entries", [["drive"], ["drive="], ["drive=a", "drive/=b"]])
def test_an_entry_that_says_nothing_or_twice_is_refused(entries: list[str]) -> None:
    with pytest.raises(PrimerError, match="golden map entry 'drive"):
        PathMap.parse(entries)
