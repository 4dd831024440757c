"""The bytes decide what a content is; the name is asked only where bytes cannot tell."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primer_core.routing import MIME, OLE_MAGIC, TSV_MIME, ZIP_MAGIC, Format, sniff, utf16_without_mark

DOCX = ("[Content_Types].xml", "_rels/.rels", "word/document.xml")
MAIL = b"Return-Path: <a@example.org>\nReceived: from x\n\tby y\nSubject: hello\n\nwords\n"


def format_of(head: bytes, name: str = "", members: tuple[str, ...] = ()) -> Format:
    return sniff(head, members, name).format


@pytest.mark.parametrize("name", ["report.pdf", "report.docx", "report.txt", "report.html", "report.md", "report.eml", "report", ""])
@pytest.mark.parametrize(
    ("head", "members", "expected"),
    [
        (b"%PDF-1.7\n", (), Format.PDF),
        (b"\n\n%PDF-1.4\n", (), Format.PDF),
        (b"\x00\x01\x02\x03\x04\x05\x06" * 10 + b"%PDF-1.4\n", (), Format.PDF),
        (ZIP_MAGIC, DOCX, Format.DOCX),
        (ZIP_MAGIC, ("[Content_Types].xml", "xl/workbook.xml"), Format.XLSX),
        (ZIP_MAGIC, ("[Content_Types].xml", "ppt\\presentation.xml"), Format.PPTX),
        (ZIP_MAGIC, ("readme.txt",), Format.ARCHIVE),
        (ZIP_MAGIC, ("[Content_Types].xml", "xl/workbook.bin"), Format.LEGACY_OFFICE),
        (ZIP_MAGIC + b"....[Content_Types].xml....word/document.xml", (), Format.DOCX),
        (OLE_MAGIC, ("EncryptionInfo", "EncryptedPackage"), Format.ENCRYPTED_OFFICE),
        (OLE_MAGIC, ("WordDocument", "1Table"), Format.LEGACY_OFFICE),
        (OLE_MAGIC, (), Format.LEGACY_OFFICE),
        (b"\x89PNG\r\n\x1a\n", (), Format.IMAGE),
        (b"II*\x00\x08\x00\x00\x00", (), Format.IMAGE),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", (), Format.IMAGE),
        (b"BM\x36\x00\x0c\x00\x00\x00\x00\x00\x36\x00\x00\x00", (), Format.IMAGE),
        (b"GIF89a", (), Format.OTHER_IMAGE),
        (b"{\\rtf1 words}", (), Format.RTF),
        (b"<!DOCTYPE html><p>words", (), Format.HTML),
        (b"\xef\xbb\xbf\n<!-- licence -->\n<HTML lang=en>", (), Format.HTML),
        (b'<?xml version="1.0"?>\n<!DOCTYPE html PUBLIC "x"><html xmlns="y">', (), Format.HTML),
        ("<html><body>вода".encode("utf-16"), (), Format.HTML),
        ("<html><body>water".encode("utf-16-le"), (), Format.HTML),
        (b"<html>a page with one stray \x00 in it", (), Format.HTML),
        (MAIL, (), Format.EML),
        (b'<?xml version="1.0"?><rss version="2.0">', (), Format.XML),
        (b"", (), Format.EMPTY),
    ],
)
def test_a_name_never_wins_over_the_bytes(head: bytes, members: tuple[str, ...], expected: Format, name: str) -> None:
    assert format_of(head, name, members) is expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("notes.md", Format.MD),
        ("NOTES.MARKDOWN", Format.MD),
        ("table.csv", Format.CSV),
        ("table.tsv", Format.CSV),
        ("notes.txt", Format.TXT),
        ("README", Format.TXT),
        ("scan.pdf", Format.TXT),
        ("letter.docx", Format.TXT),
        ("", Format.TXT),
    ],
)
def test_a_name_tells_texts_apart(name: str, expected: Format) -> None:
    assert format_of(b"one, two\nthree, four\n", name) is expected


def test_tab_separated_values_have_their_own_mime() -> None:
    assert sniff(b"a\tb\n1\t2\n", (), "t.tsv").mime == TSV_MIME
    assert sniff(b"a,b\n1,2\n", (), "t.csv").mime == MIME[Format.CSV]


def test_markdown_that_begins_with_a_tag_stays_markdown() -> None:
    piece = b'<p align="center">logo</p>\n\n# Title\n'
    assert format_of(piece, "README.md") is Format.MD
    assert format_of(piece, "README.html") is Format.HTML
    assert format_of(piece, "README") is Format.HTML


def test_an_html_name_needs_a_tag_somewhere() -> None:
    assert format_of(b"Words first, <b>then</b> a tag", "page.html") is Format.HTML
    assert format_of(b"Words only, 1 < 2", "page.html") is Format.TXT


@pytest.mark.parametrize(
    ("head", "name", "expected"),
    [
        (b"Subject: lunch\n\nat noon\n", "note.txt", Format.TXT),
        (b"Subject: lunch\n\nat noon\n", "note.eml", Format.EML),
        (b"From: me\nI went there: and back\nTo: you\n", "note.txt", Format.TXT),
        (b"From jo@example.org Mon Jan  1 00:00:00 2024\nFrom: jo@example.org\nDate: now\n\nhi", "mbox", Format.EML),
        (b"Note: this is prose\nand goes on\n", "note.eml", Format.TXT),
    ],
)
def test_mail_is_told_by_its_headers(head: bytes, name: str, expected: Format) -> None:
    assert format_of(head, name) is expected


@pytest.mark.parametrize("text", ['{"a": 1}', '[{"a": 1}]', "[1, 2]", '["x"]', "{}"])
def test_json_is_recognised_without_its_name(text: str) -> None:
    assert format_of(text.encode(), "data") is Format.JSON


def test_a_link_at_the_start_is_no_json() -> None:
    assert format_of(b"[home](index.md)\n", "page.txt") is Format.TXT


def test_control_characters_are_not_text() -> None:
    assert format_of(bytes(range(256)) * 4, "notes.txt") is Format.UNKNOWN


def test_every_format_has_a_mime() -> None:
    assert set(MIME) == set(Format)


@given(st.binary(max_size=400), st.lists(st.text(max_size=30), max_size=4), st.text(max_size=40))
def test_any_bytes_get_an_answer(head: bytes, members: list[str], name: str) -> None:
    sniffed = sniff(head, members, name)
    assert sniffed.mime
    assert (sniffed.format is Format.EMPTY) == (head == b"")


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=8, max_size=200), st.sampled_from(["utf-16-le", "utf-16-be"]))
def test_plain_utf16_is_found_without_its_mark(text: str, codec: str) -> None:
    assert utf16_without_mark(text.encode(codec)) == codec
    assert utf16_without_mark(text.encode()) is None
