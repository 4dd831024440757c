"""Text: bytes to characters. Pure.

Docling takes what is not UTF-8 for cp1252, or refuses it; pages declare their encoding, and some lie. So the encoding is found here and
Docling is handed UTF-8.
"""

import codecs
import re

from charset_normalizer import from_bytes

from primer_core.routing import utf16_without_mark

_MARKS: tuple[tuple[bytes, str], ...] = (
    # UTF-32 first: its little-endian mark begins with that of UTF-16.
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

DECLARED_WITHIN = 4_096
"""Bytes searched for a declared charset. HTML asks for 1,024, real pages put scripts before it."""

_DECLARED = re.compile(
    rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]+)|<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([\w.:-]+)", re.IGNORECASE
)

_SUPERSETS = {
    # What the web means by these names (WHATWG Encoding Standard, section 4.2): the vendor's larger set.
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "euc_kr": "cp949",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "big5": "big5hkscs",
}

_LATIN = frozenset(
    {
        *("cp1250", "cp1252", "cp1254", "cp1257", "cp1258", "cp437", "cp850", "cp852", "cp858", "hp_roman8", "latin_1"),
        *("mac_iceland", "mac_latin2", "mac_roman", "mac_turkish"),
        *("iso8859_2", "iso8859_3", "iso8859_4", "iso8859_9", "iso8859_10", "iso8859_13", "iso8859_14", "iso8859_15", "iso8859_16"),
    },
)
_OTHER_LATIN_LANGUAGES = frozenset(
    {
        "Polish",
        "Czech",
        "Slovak",
        "Hungarian",
        "Croatian",
        "Slovene",
        "Romanian",
        "Turkish",
        "Estonian",
        "Latvian",
        "Lithuanian",
        "Vietnamese",
    },
)
"""The Latin code pages differ in few letters, and the guess among them is arbitrary (French comes out as cp1250): without a language that
needs another one, it is cp1252."""

SAMPLE_BYTES = 65_536
"""As much of a text as the statistical guess looks at; it takes about a second a megabyte."""

MAX_DAMAGE = 0.1
"""UTF-8 with at most this share of its non-ASCII bytes damaged is read as UTF-8, with a replacement character for each damaged one."""


def decode(raw: bytes, is_markup: bool = False) -> str:
    """The characters of a text file: line ends as \\n, no byte order mark, no NULs.

    In this order: a byte order mark; UTF-16 told by its NULs; valid UTF-8 (hardly any other text is valid by chance); the charset that
    markup declares, if the bytes are valid in it; UTF-8 with slight damage; a statistical guess; cp1252 with replacement characters.
    """
    text = _decode(raw, is_markup).replace("\x00", "").removeprefix("\ufeff")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _decode(raw: bytes, is_markup: bool) -> str:
    for mark, codec in _MARKS:
        if raw.startswith(mark):
            return raw.decode(codec, "replace")
    wide = utf16_without_mark(raw)
    if wide:
        return raw.decode(wide, "replace")
    declared = declared_codec(raw) if is_markup else None
    if declared and declared.startswith(("iso2022", "hz", "utf_7")) and (text := _strict(raw, declared)) is not None:
        return text  # made of ASCII bytes, so it would pass for UTF-8
    if (text := _strict(raw, "utf-8")) is not None:
        return text
    if declared and (text := _strict(raw, declared)) is not None:
        return text
    damaged = raw.decode("utf-8", "replace")
    above = sum(1 for byte in raw if byte >= 0x80)
    if damaged.count("\ufffd") <= MAX_DAMAGE * above:
        return damaged
    guess = from_bytes(raw[:SAMPLE_BYTES]).best()
    if guess is not None:
        is_western = guess.encoding in _LATIN and guess.language not in _OTHER_LATIN_LANGUAGES
        for codec in ("cp1252", guess.encoding) if is_western else (guess.encoding,):
            if (text := _strict(raw, codec)) is not None:
                return text
    return raw.decode("cp1252", "replace")


def mail_bytes(raw: bytes) -> bytes:
    """A mail as its readers want it: ASCII with its encodings inside. One that was saved as UTF-16 or with a mark is turned back."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")) or utf16_without_mark(raw):
        return decode(raw).encode("utf-8", "replace")
    return raw


def declared_codec(raw: bytes) -> str | None:
    """Python's name of the charset that markup declares, or None where it declares none that is known and fits its ASCII look."""
    match = _DECLARED.search(raw[:DECLARED_WITHIN])
    if match is None:
        return None
    try:
        codec = codecs.lookup((match[1] or match[2]).decode("ascii")).name
    except LookupError:
        return None
    if codec.startswith(("utf-16", "utf-32")) or "<meta".encode(codec, "replace") != b"<meta":
        return None  # the declaration itself was readable as ASCII, so this cannot be true
    return _SUPERSETS.get(codec, codec)


def _strict(raw: bytes, codec: str) -> str | None:
    try:
        return raw.decode(codec)
    except (UnicodeDecodeError, LookupError):
        return None
