"""Two kinds of sound office files that the libraries below Docling do not read, put into words they do. Bytes in, bytes out."""

import io
import re
import zipfile

from lxml import etree

_RELATIONS = "_rels/.rels"
_STRICT = b"http://purl.oclc.org/ooxml/"
_STRICT_NAME = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/(\w+)")
_TRANSITIONAL_NAME = rb"http://schemas.openxmlformats.org/\1/2006/\2"
"""ISO/IEC 29500 has the same vocabulary under two sets of names; python-docx, python-pptx and openpyxl know the transitional set only."""

_WORD_PART = re.compile(r"word/(?:document|footnotes|endnotes|comments|header\d*|footer\d*)\.xml")


def mend_office(data: bytes) -> bytes:
    """The file, with strict names made transitional and comments taken out of Word's XML (Docling's walk ends at the first comment).
    A file that needs neither comes back as it is; so does one that cannot be read here, for the reader to complain of."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            is_strict = _RELATIONS in archive.namelist() and _STRICT in archive.read(_RELATIONS)
            commented = {name for name in archive.namelist() if _WORD_PART.fullmatch(name) and _has_comments(archive.read(name))}
            if not is_strict and not commented:
                return data
            mended = io.BytesIO()
            with zipfile.ZipFile(mended, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as target:
                for entry in archive.infolist():
                    part = archive.read(entry)
                    if is_strict and entry.filename.endswith((".xml", ".rels")):
                        part = _STRICT_NAME.sub(_TRANSITIONAL_NAME, part)
                    target.writestr(entry.filename, _without_comments(part) if entry.filename in commented else part)
            return mended.getvalue()
    except (zipfile.BadZipFile, etree.XMLSyntaxError, NotImplementedError, EOFError, ValueError, OSError):
        return data


def _has_comments(part: bytes) -> bool:
    return b"<!--" in part or part.count(b"<?") > 1


def _without_comments(part: bytes) -> bytes:
    """XML without comments, processing instructions and entities of its own (which are dropped, never fetched or expanded)."""
    parser = etree.XMLParser(remove_comments=True, remove_pis=True, resolve_entities=False, no_network=True, huge_tree=True)
    root = etree.fromstring(part, parser)
    etree.strip_tags(root, etree.Entity)
    return bytes(etree.tostring(root, xml_declaration=True, encoding="UTF-8", standalone=True))
