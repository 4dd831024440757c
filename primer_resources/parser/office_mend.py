"""What is mended in an office file before Docling reads it. Bytes in, bytes out.

Two kinds of sound files are put into words that the libraries below Docling know; pictures of absurd size, which would be unpacked to be
thrown away, are replaced by a dot.
"""

import io
import re
import zipfile
import zlib
from collections.abc import Sequence
from typing import Any

from lxml import etree
from PIL import Image, UnidentifiedImageError

_RELATIONS = "_rels/.rels"
_STRICT = b"http://purl.oclc.org/ooxml/"
_STRICT_NAME = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/(\w+)")
_TRANSITIONAL_NAME = rb"http://schemas.openxmlformats.org/\1/2006/\2"
"""ISO/IEC 29500 has the same vocabulary under two sets of names; python-docx, python-pptx and openpyxl know the transitional set only."""

MAX_PIXELS = 50_000_000
"""Of a picture inside an office file: 150 MB as RGB, where a 300-dpi A3 page has 17 million. Pillow refuses to open 179 million
(MAX_IMAGE_PIXELS, twice), and Docling takes that for a broken document."""

_PICTURE = re.compile(r".*/media/[^/]+", re.IGNORECASE)
_DOT = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010100000000376ef9240000000a49444154789c636800000082008177cd72b60000000049454e44ae426082"
)
"""A PNG of one pixel."""

_WORD_PART = re.compile(r"word/(?:document|footnotes|endnotes|comments|header\d*|footer\d*)\.xml")


def mend_office(data: bytes) -> bytes:
    """The file, with strict names made transitional, Word's XML without what Docling's walk ends at or passes by, and huge pictures made
    small. A file that needs nothing comes back as it is; so does one that cannot be read here, for the reader to complain of."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            is_strict = _RELATIONS in archive.namelist() and _STRICT in archive.read(_RELATIONS)
            wrapped = {name for name in archive.namelist() if _WORD_PART.fullmatch(name) and _is_wrapped(archive.read(name))}
            huge = {name for name in archive.namelist() if _PICTURE.fullmatch(name) and _is_huge(archive, name)}
            if not is_strict and not wrapped and not huge:
                return data
            mended = io.BytesIO()
            with zipfile.ZipFile(mended, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as target:
                for entry in archive.infolist():
                    if entry.filename in huge:
                        target.writestr(entry.filename, _DOT)
                        continue
                    part = archive.read(entry)
                    if is_strict and entry.filename.endswith((".xml", ".rels")):
                        part = _STRICT_NAME.sub(_TRANSITIONAL_NAME, part)
                    target.writestr(entry.filename, _unwrapped(part) if entry.filename in wrapped else part)
            return mended.getvalue()
    except (zipfile.BadZipFile, etree.XMLSyntaxError, NotImplementedError, EOFError, ValueError, OSError):
        return data


def _is_huge(archive: zipfile.ZipFile, name: str) -> bool:
    """Whether a picture has too many pixels, by its header alone."""
    try:
        with archive.open(name) as stream, Image.open(stream) as picture:
            return picture.width * picture.height > MAX_PIXELS
    except Image.DecompressionBombError:
        return True
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError, zlib.error):
        return False  # no picture that anybody could unpack


def _is_wrapped(part: bytes) -> bool:
    return b"<!--" in part or part.count(b"<?") > 1 or b":sdt>" in part or b":ruby>" in part


def _unwrapped(part: bytes) -> bytes:
    """XML without comments, processing instructions and entities of its own (which are dropped, never fetched or expanded), with content
    controls (sdt) replaced by what they hold and annotated words (ruby) by the words."""
    parser = etree.XMLParser(remove_comments=True, remove_pis=True, resolve_entities=False, no_network=True, huge_tree=True)
    root = etree.fromstring(part, parser)
    etree.strip_tags(root, etree.Entity)
    for control in list(root.iter("{*}sdt")):
        _replace(control, [child for content in control.iterchildren("{*}sdtContent") for child in content])
    for ruby in list(root.iter("{*}ruby")):
        run = ruby.getparent()
        if etree.QName(run).localname == "r":
            _replace(run, [child for base in ruby.iterchildren("{*}rubyBase") for child in base])
    return bytes(etree.tostring(root, xml_declaration=True, encoding="UTF-8", standalone=True))


def _replace(element: Any, contents: Sequence[Any]) -> None:
    parent = element.getparent()
    if parent is None:
        return
    for child in contents:
        element.addprevious(child)
    parent.remove(element)
