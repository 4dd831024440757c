"""Bytes become the right characters, whatever a page says of itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primer_resources.parser.text import declared_codec, decode

FRENCH = "L'été était très chaud à Noël, et le prix était de 15,50 € pour le garçon."
RUSSIAN = (
    "Привет, мир! Это обычный русский текст, написанный для проверки кодировки. Он немного длиннее, чем одна строка, "
    "как и всякий настоящий документ, и потому его кодировка узнаётся верно."
)
KOREAN = "<meta charset=euc-kr><p>아파치 웹서버는 다른 사용자로 전환한다"
ARABIC = "في قرية من القرى كان هناك رجل حكيم يعرف كل شيء عن الحياة وكان يعلم الناس"


@pytest.mark.parametrize(
    ("raw", "is_markup", "expected"),
    [
        (FRENCH.encode(), False, FRENCH),
        (FRENCH.encode("utf-8-sig"), False, FRENCH),
        (FRENCH.encode("utf-16"), False, FRENCH),
        (FRENCH.encode("utf-16-le"), False, FRENCH),
        (FRENCH.encode("cp1252"), False, FRENCH),
        (RUSSIAN.encode("cp1251"), False, RUSSIAN),
        (RUSSIAN.encode("koi8-r"), False, RUSSIAN),
        (KOREAN.encode("euc-kr"), True, KOREAN),
        # Says UTF-8, is cp1256; says latin-1, is UTF-8; says UTF-16 in readable ASCII.
        (f"<meta charset=utf-8><p>{ARABIC}".encode("cp1256"), True, f"<meta charset=utf-8><p>{ARABIC}"),
        (f"<meta charset=latin-1><p>{RUSSIAN}".encode(), True, f"<meta charset=latin-1><p>{RUSSIAN}"),
        (f"<meta charset=utf-16><p>{FRENCH}".encode(), True, f"<meta charset=utf-16><p>{FRENCH}"),
        # The web's latin-1 has the typographer's quotes of cp1252.
        (b"<meta charset=iso-8859-1>\x93so\x94", True, "<meta charset=iso-8859-1>“so”"),
        ("<meta charset=iso-2022-jp>日本語".encode("iso-2022-jp"), True, "<meta charset=iso-2022-jp>日本語"),
        (b"one\r\ntwo\rthree\x00", False, "one\ntwo\nthree"),
    ],
    ids=lambda value: value[:12] if isinstance(value, str) else "",
)
def test_texts_are_read_as_they_were_written(raw: bytes, is_markup: bool, expected: str) -> None:
    assert decode(raw, is_markup) == expected


def test_one_damaged_byte_does_not_turn_utf8_into_another_encoding() -> None:
    raw = RUSSIAN.encode()
    assert decode(raw[:5] + b"\xff" + raw[5:]).endswith("кодировка узнаётся верно.")


def test_a_declaration_counts_in_markup_only() -> None:
    assert declared_codec(b'<meta http-equiv=x content="text/html; charset=windows-1251">') == "cp1251"
    assert declared_codec(b'<?xml version="1.0" encoding="Shift_JIS"?>') == "cp932"
    assert declared_codec(b"<meta charset=no-such-thing>") is None
    assert declared_codec(b"<meta charset=cp037>") is None


@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_become_text_that_can_be_stored(raw: bytes, is_markup: bool) -> None:
    text = decode(raw, is_markup)
    assert "\x00" not in text
    assert "\r" not in text


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=100))
def test_utf8_is_never_mistaken(text: str) -> None:
    if not text.startswith("\ufeff"):
        assert decode(text.encode()) == text
