"""Routing: what a content is, from its bytes. Pure: the caller reads the head of the file and the member list of a container.

The bytes decide. The name is asked only where bytes cannot tell: Markdown, plain text and CSV are all just text, and a piece
of HTML without a document frame may be Markdown. A name that contradicts the bytes is passed over.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath

HEAD_BYTES = 16_384
"""How much of a file's beginning `sniff` wants: mail relays put several kilobytes of headers before the telling ones."""

MAX_CONTROL_SHARE = 0.02
"""Text whose head has a larger share of control characters than this is not text. One stray NUL in a page is still a page."""


class Format(StrEnum):
    """What a content is: the formats that are parsed, then the families that are recognised and refused by name."""

    HTML = "html"
    MD = "md"
    TXT = "txt"
    CSV = "csv"
    DOCX = "docx"
    PPTX = "pptx"
    XLSX = "xlsx"
    EML = "eml"
    PDF = "pdf"
    IMAGE = "image"
    ENCRYPTED_OFFICE = "encrypted_office"
    LEGACY_OFFICE = "legacy_office"
    OPEN_DOCUMENT = "open_document"
    RTF = "rtf"
    EPUB = "epub"
    OTHER_IMAGE = "other_image"
    MEDIA = "media"
    ARCHIVE = "archive"
    JSON = "json"
    XML = "xml"
    EMPTY = "empty"
    UNKNOWN = "unknown"


PARSED = frozenset(
    {Format.HTML, Format.MD, Format.TXT, Format.CSV, Format.DOCX, Format.PPTX, Format.XLSX, Format.EML, Format.PDF, Format.IMAGE},
)
"""Formats that a parser takes."""

CONTAINERS = frozenset(
    {
        "message/rfc822",
        "application/zip",
        "application/x-tar",
        "application/gzip",
        "application/x-bzip2",
        "application/x-xz",
    }
)
"""MIME types of what holds files that become documents of their own: mails with attachments, and archives."""

TEXTUAL = frozenset({Format.HTML, Format.MD, Format.TXT, Format.CSV})
"""Parsed formats that are nothing but characters, so that their encoding must be found first."""

ZIPPED = frozenset({Format.DOCX, Format.PPTX, Format.XLSX})
"""Parsed formats that are zip files, so that what they expand to must be bounded first."""

MIME: dict[Format, str] = {
    Format.HTML: "text/html",
    Format.MD: "text/markdown",
    Format.TXT: "text/plain",
    Format.CSV: "text/csv",
    Format.DOCX: "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    Format.PPTX: "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    Format.XLSX: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    Format.EML: "message/rfc822",
    Format.PDF: "application/pdf",
    Format.ENCRYPTED_OFFICE: "application/encrypted",
    Format.LEGACY_OFFICE: "application/x-ole-storage",
    Format.OPEN_DOCUMENT: "application/vnd.oasis.opendocument",
    Format.RTF: "application/rtf",
    Format.EPUB: "application/epub+zip",
    Format.IMAGE: "image/unknown",
    Format.OTHER_IMAGE: "image/unknown",
    Format.MEDIA: "application/x-media",
    Format.ARCHIVE: "application/x-archive",
    Format.JSON: "application/json",
    Format.XML: "application/xml",
    Format.EMPTY: "application/x-empty",
    Format.UNKNOWN: "application/octet-stream",
}
"""The MIME type of each format, where the bytes give no narrower one."""

TSV_MIME = "text/tab-separated-values"


@dataclass(frozen=True, slots=True)
class Sniffed:
    """What a content is: the format that decides its way, and its MIME type."""

    format: Format
    mime: str


OLE_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
ZIP_MAGIC = b"PK\x03\x04"
EMPTY_ZIP_MAGIC = b"PK\x05\x06"
PDF_MAGIC = b"%PDF-"
PDF_MAGIC_WITHIN = 1024
"""Readers accept junk before the header up to here (Adobe's implementation note 13 to PDF 1.7, appendix H)."""

_MAGIC: tuple[tuple[int, bytes, Format, str], ...] = (
    (0, b"{\\rtf", Format.RTF, "application/rtf"),
    (0, b"\x89PNG\r\n\x1a\n", Format.IMAGE, "image/png"),
    (0, b"\xff\xd8\xff", Format.IMAGE, "image/jpeg"),
    (0, b"GIF87a", Format.OTHER_IMAGE, "image/gif"),
    (0, b"GIF89a", Format.OTHER_IMAGE, "image/gif"),
    (0, b"II*\x00", Format.IMAGE, "image/tiff"),
    (0, b"MM\x00*", Format.IMAGE, "image/tiff"),
    (0, b"II+\x00", Format.IMAGE, "image/tiff"),
    (0, b"MM\x00+", Format.IMAGE, "image/tiff"),
    (8, b"WEBP", Format.IMAGE, "image/webp"),
    (8, b"WAVE", Format.MEDIA, "audio/wav"),
    (8, b"AVI ", Format.MEDIA, "video/x-msvideo"),
    (4, b"ftypM4A", Format.MEDIA, "audio/mp4"),
    (4, b"ftyphei", Format.OTHER_IMAGE, "image/heic"),
    (4, b"ftyp", Format.MEDIA, "video/mp4"),
    (0, b"ID3", Format.MEDIA, "audio/mpeg"),
    (0, b"OggS", Format.MEDIA, "audio/ogg"),
    (0, b"\x1a\x45\xdf\xa3", Format.MEDIA, "video/webm"),
    (0, b"\x1f\x8b", Format.ARCHIVE, "application/gzip"),
    (0, b"BZh", Format.ARCHIVE, "application/x-bzip2"),
    (0, b"\xfd7zXZ\x00", Format.ARCHIVE, "application/x-xz"),
    (0, b"7z\xbc\xaf\x27\x1c", Format.ARCHIVE, "application/x-7z-compressed"),
    (0, b"Rar!\x1a\x07", Format.ARCHIVE, "application/vnd.rar"),
    (0, b"\x28\xb5\x2f\xfd", Format.ARCHIVE, "application/zstd"),
    (257, b"ustar", Format.ARCHIVE, "application/x-tar"),
)

_BMP = re.compile(rb"BM.{4}\x00{4}", re.DOTALL)
"""A bitmap's mark alone is two letters that a text may begin with; its reserved bytes are not."""

_OLE_STREAMS: tuple[tuple[str, Format, str], ...] = (
    # Office wraps an encrypted OOXML file in an OLE container under this name ([MS-OFFCRYPTO] 1.3.2); it must be asked first.
    ("EncryptedPackage", Format.ENCRYPTED_OFFICE, "application/encrypted"),
    ("WordDocument", Format.LEGACY_OFFICE, "application/msword"),
    ("Workbook", Format.LEGACY_OFFICE, "application/vnd.ms-excel"),
    ("Book", Format.LEGACY_OFFICE, "application/vnd.ms-excel"),
    ("PowerPoint Document", Format.LEGACY_OFFICE, "application/vnd.ms-powerpoint"),
    ("__properties_version1.0", Format.LEGACY_OFFICE, "application/vnd.ms-outlook"),
)

_ZIP_PARTS: tuple[tuple[str, Format, str | None], ...] = (
    ("word/document.xml", Format.DOCX, None),
    ("ppt/presentation.xml", Format.PPTX, None),
    ("xl/workbook.xml", Format.XLSX, None),
    ("xl/workbook.bin", Format.LEGACY_OFFICE, "application/vnd.ms-excel.sheet.binary.macroEnabled.12"),
    ("META-INF/container.xml", Format.EPUB, None),
)

_ZIP_FOLDERS: tuple[tuple[str, Format], ...] = (("word/", Format.DOCX), ("ppt/", Format.PPTX), ("xl/", Format.XLSX))

_OPEN_DOCUMENT = re.compile(rb"mimetypeapplication/vnd\.oasis\.opendocument\.([a-z-]+)")

_BY_NAME: dict[str, Format] = {
    ".md": Format.MD,
    ".markdown": Format.MD,
    ".mdown": Format.MD,
    ".mkd": Format.MD,
    ".csv": Format.CSV,
    ".tsv": Format.CSV,
    ".tab": Format.CSV,
    ".htm": Format.HTML,
    ".html": Format.HTML,
    ".xhtml": Format.HTML,
    ".eml": Format.EML,
    ".json": Format.JSON,
    ".jsonl": Format.JSON,
    ".ndjson": Format.JSON,
}

_LEADING = re.compile(r"(?:\s+|<!--.*?-->|<\?xml[^>]*\?>|<\?[^>]*>)+", re.DOTALL)
_HTML_FRAME = re.compile(r"<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)
_HTML_PIECE = re.compile(
    r"<(?:title|meta|link|script|style|div|p|table|h[1-6]|ul|ol|dl|section|article|main|nav|header|span|a|br|center|font)\b",
    re.IGNORECASE,
)
_ANY_TAG = re.compile(r"</?[a-zA-Z][a-zA-Z0-9]*(?:\s[^<>]*)?/?>")
_JSON_START = re.compile(r'\{\s*(?:"|\})|\[\s*(?:\{\s*"|\[|"[^"\n]*"\s*[,\]]|-?\d+\s*[,\]])')
_HEADER_LINE = re.compile(r"([!-9;-~]+):")
_MAIL_HEADERS = frozenset(
    {
        *("from", "to", "cc", "bcc", "subject", "date", "received", "return-path", "message-id", "mime-version", "delivered-to"),
        *("reply-to", "sender", "content-type", "in-reply-to", "references", "x-mailer", "x-received", "dkim-signature", "x-gmail-labels"),
    },
)
_SURE_MAIL_HEADERS = frozenset({"from", "received", "return-path", "message-id", "mime-version", "delivered-to", "x-received"})
_ENOUGH_HEADERS = 2
"""A mail without an .eml name needs so many known headers, one of them only mail has: notes begin with "Subject:" too."""


def sniff(head: bytes, members: Sequence[str], name: str) -> Sniffed:
    """What a content is.

    `head` is the first HEAD_BYTES of the file (all of a shorter one). `members` are the names inside a zip file, or the stream names
    of an OLE container; empty where it is neither or where its directory cannot be read. `name` is the document's file name.
    """
    if not head:
        return _as(Format.EMPTY)
    if head.startswith(OLE_MAGIC):
        return _sniff_ole(head, members)
    if head.startswith((ZIP_MAGIC, EMPTY_ZIP_MAGIC)):
        return _sniff_zip(head, members)
    if head.lstrip(b"\x00\t\n\r\f \xef\xbb\xbf").startswith(PDF_MAGIC):
        return _as(Format.PDF)
    for offset, magic, format_, mime in _MAGIC:
        if head.startswith(magic, offset):
            return Sniffed(format_, mime)
    if _BMP.match(head):
        return Sniffed(Format.IMAGE, "image/bmp")
    text = decode_head(head)
    if text is None:
        return _as(Format.PDF if PDF_MAGIC in head[:PDF_MAGIC_WITHIN] else Format.UNKNOWN)
    return _sniff_text(text, name)


def _as(format_: Format) -> Sniffed:
    return Sniffed(format_, MIME[format_])


def _sniff_ole(head: bytes, members: Sequence[str]) -> Sniffed:
    for stream, format_, mime in _OLE_STREAMS:
        if stream in members or (not members and stream.encode("utf-16-le") in head):
            return Sniffed(format_, mime)
    return _as(Format.LEGACY_OFFICE)


def _sniff_zip(head: bytes, members: Sequence[str]) -> Sniffed:
    present = {member.replace("\\", "/").lstrip("/") for member in members}
    open_document = _OPEN_DOCUMENT.search(head[:256])
    if open_document:
        return Sniffed(Format.OPEN_DOCUMENT, f"application/vnd.oasis.opendocument.{open_document[1].decode()}")
    for part, format_, mime in _ZIP_PARTS:
        if part in present:
            return Sniffed(format_, mime or MIME[format_])
    for folder, format_ in _ZIP_FOLDERS:
        # An office file whose main part is renamed or lost still has its folder and its type list; with the directory lost
        # too (a truncated file), the first local headers in the head show the folder.
        inside = any(member.startswith(folder) for member in present)
        if inside if present else b"[Content_Types].xml" in head and folder.encode() in head:
            return _as(format_)
    return Sniffed(Format.ARCHIVE, "application/zip")


def decode_head(head: bytes) -> str | None:
    """The head as characters good enough to recognise markup, or None where it is not text."""
    for mark, codec in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if head.startswith(mark):
            return head.decode(codec, "replace")
    text = head.decode(utf16_without_mark(head) or "latin-1", "replace")
    controls = sum(1 for char in text if char < " " and char not in "\t\n\r\f\x1b")
    if controls > 1 and controls > MAX_CONTROL_SHARE * len(text):
        return None
    return text


def utf16_without_mark(data: bytes) -> str | None:
    """The UTF-16 codec of a text without a byte order mark, told by NULs in every other byte; None where it is not one."""
    sample = data[:HEAD_BYTES]
    half = len(sample) // 2
    if half < 4:
        return None
    if sample[1::2].count(0) > 0.7 * half and sample[0::2].count(0) < 0.05 * half:
        return "utf-16-le"
    if sample[0::2].count(0) > 0.7 * half and sample[1::2].count(0) < 0.05 * half:
        return "utf-16-be"
    return None


def _sniff_text(text: str, name: str) -> Sniffed:
    suffix = PurePosixPath(name.lower()).suffix
    named = _BY_NAME.get(suffix)
    leading = _LEADING.match(text)
    start = text[leading.end() :] if leading else text
    if _HTML_FRAME.match(start):
        return _as(Format.HTML)
    if _is_mail(text, named is Format.EML):
        return _as(Format.EML)
    if text.lstrip("\ufeff \t\r\n").startswith("<?xml"):
        return _as(Format.XML)
    if named in (Format.MD, Format.CSV):
        return Sniffed(named, TSV_MIME if suffix in (".tsv", ".tab") else MIME[named])
    if named is Format.JSON or _JSON_START.match(start):
        return _as(Format.JSON)
    if _HTML_PIECE.match(start) or (named is Format.HTML and _ANY_TAG.search(text)):
        return _as(Format.HTML)
    return _as(Format.TXT)


def _is_mail(text: str, named: bool) -> bool:
    """Whether the text begins with a block of RFC 822 headers (folded lines and an mbox "From " line are passed over)."""
    known: set[str] = set()
    for number, line in enumerate(text.lstrip("\ufeff\r\n").splitlines()):
        if not line.strip():
            break
        if line[0] in " \t" or (number == 0 and line.startswith("From ")):
            continue
        match = _HEADER_LINE.match(line)
        if match is None:
            # The last line of the head may be cut; any other that is no header means that this is prose.
            if known and number > 0 and named:
                break
            return False
        if match[1].lower() in _MAIL_HEADERS:
            known.add(match[1].lower())
    if named:
        return bool(known)
    return len(known) >= _ENOUGH_HEADERS and bool(known & _SURE_MAIL_HEADERS)
