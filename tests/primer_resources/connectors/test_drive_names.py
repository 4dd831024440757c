"""Names on a drive: shown unambiguously, encoded in URIs, junk told from documents."""

import os
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primer_resources.connectors.drive_names import file_uri, find_junk, is_utf8, show_name, unshow_name

disk_names = st.binary(min_size=1, max_size=12).filter(lambda raw: b"/" not in raw and b"\0" not in raw)


def as_system_gives_it(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


@given(disk_names, disk_names)
def test_two_names_never_look_the_same_and_are_always_utf8(one: bytes, other: bytes) -> None:
    shown = [show_name(as_system_gives_it(raw)) for raw in (one, other)]
    assert (shown[0] == shown[1]) == (one == other)
    shown[0].encode("utf-8")


@given(disk_names)
def test_what_is_shown_leads_back_to_the_name(raw: bytes) -> None:
    native = as_system_gives_it(raw)
    assert unshow_name(show_name(native)) == native


@given(st.text(max_size=12))
def test_only_what_some_name_is_shown_as_leads_to_one(shown: str) -> None:
    native = unshow_name(shown)
    assert native is None or show_name(native) == shown


@given(disk_names)
def test_a_uri_holds_the_very_bytes_of_the_path(raw: bytes) -> None:
    uri = file_uri("/drive/" + as_system_gives_it(raw))
    assert uri.isascii()
    assert uri.startswith("file:///drive/")
    assert unquote_to_bytes(uri.removeprefix("file://")) == b"/drive/" + raw


def test_a_name_that_spells_out_an_escape_does_not_meet_the_escaped_name() -> None:
    assert show_name(os.fsdecode(b"caf\xe9.txt")) == r"caf\xe9.txt"
    assert show_name(r"caf\xe9.txt") == r"caf\x5cxe9.txt"


def test_a_lone_surrogate_on_disk_is_not_utf8() -> None:
    assert not is_utf8(os.fsdecode(b"\xed\xa0\x80"))
    assert is_utf8("Überblick 概要.txt")


@pytest.mark.parametrize("name", [".DS_Store", "thumbs.DB", "~$Report.docx", "._Report.docx", ".~lock.Report.odt#", ".git", "$RECYCLE.BIN"])
def test_junk_is_left_out_even_where_hidden_names_are_listed(name: str) -> None:
    assert find_junk(name, include_hidden=True) == "junk"


def test_hidden_names_are_left_out_unless_asked_for() -> None:
    assert find_junk(".env", include_hidden=False) == "hidden"
    assert find_junk(".env", include_hidden=True) is None


@pytest.mark.parametrize("name", ["Report.docx", "file_without_ending", "~Draft.txt", "$prices.xlsx", "git", "Thumbs.db.txt"])
def test_what_only_resembles_junk_is_listed(name: str) -> None:
    assert find_junk(name, include_hidden=False) is None
