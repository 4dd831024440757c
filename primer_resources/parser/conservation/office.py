"""The words of OOXML files, from the XML in their zip."""

import re
import zipfile
import zlib
from collections.abc import Iterator
from datetime import datetime, time, timedelta
from html import unescape
from pathlib import Path
from typing import Any

from lxml import etree

from primer_resources.parser.conservation.reader import SourceText

_BREAKS = frozenset({"p", "tab", "br", "cr", "tc", "noBreakHyphen"})
_UNREADABLE = (zipfile.BadZipFile, zlib.error, etree.XMLSyntaxError, NotImplementedError, EOFError, KeyError, ValueError, OSError)
_DATE_FORMATS = frozenset({*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)})
"""Built-in number formats that show dates or times (ISO/IEC 29500-1, 18.8.30)."""

_DATE_LETTERS = re.compile(r"[dmyhs]", re.IGNORECASE)
_NO_LETTERS = re.compile(r'"[^"]*"|\[[^\]]*\]|\\.|_.|General', re.IGNORECASE)
_CELL = re.compile(rb"<(?:[\w.-]+:)?c(\s[^<>]*)?(?<!/)>(.*?)</(?:[\w.-]+:)?c>", re.DOTALL)
_TYPE = re.compile(rb"""\bt\s*=\s*["']([^"']*)["']""")
_STYLE = re.compile(rb"""\bs\s*=\s*["']([^"']*)["']""")
_VALUE = re.compile(rb"<(?:[\w.-]+:)?v(?:\s[^<>]*)?>([^<]*)<")
_RUN = re.compile(rb"<(?:[\w.-]+:)?t(?:\s[^<>]*)?>([^<]*)<")
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")


def read_docx(path: Path) -> SourceText | None:
    """Body, foot- and endnotes and SmartArt; headers, footers and comments are losses."""
    return _read(path, ((r"word/(document|footnotes|endnotes|diagrams/data)\d*\.xml", ""), *_WORD_LOSSES))


_WORD_LOSSES = (
    (r"word/(header|footer)\d*\.xml", "headers and footers"),
    (r"word/comments\.xml", "comments"),
    (r"word/glossary/.*\.xml", "building blocks"),
)


def read_pptx(path: Path) -> SourceText | None:
    """Slides, speaker notes and SmartArt; comments are losses."""
    parts = ((r"ppt/(slides/slide|notesSlides/notesSlide|diagrams/data)\d+\.xml", ""), (r"ppt/comments/.*\.xml", "comments"))
    return _read(path, parts)


def _read(path: Path, parts: tuple[tuple[str, str], ...]) -> SourceText | None:
    found = SourceText()
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.namelist():
                for pattern, loss in parts:
                    if re.fullmatch(pattern, member):
                        text = _paragraphs(_parse(archive, member), found)
                        found.lose(loss, text) if loss else found.pieces.append(text)
    except _UNREADABLE:
        return None
    return found


def _parse(archive: zipfile.ZipFile, member: str) -> Any:
    parser = etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True, huge_tree=True)
    return etree.fromstring(archive.read(member), parser)


def _paragraphs(root: Any, found: SourceText) -> str:
    """The text runs, with a space wherever a paragraph, cell, tab or line begins. What stands twice for older readers counts once."""
    for twice in list(root.iter("{*}Fallback")):
        _remove(twice)
    for placeholder in list(root.iter("{*}sp")):
        kind = next((ph.get("type") for ph in placeholder.iter("{*}ph")), None)
        if kind in ("sldNum", "dt", "ftr", "hdr"):
            found.lose("slide numbers, dates and footers", "".join(run.text or "" for run in placeholder.iter("{*}t")))
            _remove(placeholder)
    for formula in list(root.iter("{*}oMath")):
        found.lose("formulas", "".join(run.text or "" for run in formula.iter("{*}t")))
        _remove(formula)
    for aid in list(root.iter("{*}rt")):
        found.lose("reading aids", "".join(run.text or "" for run in aid.iter("{*}t")))
        _remove(aid)
    for box in root.iter("{*}txbxContent"):
        box.addnext(etree.Element("p"))
    pieces: list[str] = []
    for element in root.iter("{*}t", "{*}p", "{*}tab", "{*}br", "{*}cr", "{*}tc", "{*}noBreakHyphen"):
        name = etree.QName(element).localname
        pieces.append(" " if name in _BREAKS else element.text or "")
    return "".join(pieces)


def _remove(element: Any) -> None:
    """Take an element out, where it still has a place: one inside another may be gone already. What follows it stays."""
    parent = element.getparent()
    if parent is not None:
        parent.remove(element)


def read_xlsx(path: Path) -> SourceText | None:
    """Cells (dates as dates), text boxes and SmartArt; sheet names and comments are losses."""
    found = SourceText()
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            shared = list(_shared_strings(archive)) if "xl/sharedStrings.xml" in names else []
            dates = _date_styles(archive) if "xl/styles.xml" in names else frozenset()
            book = _parse(archive, "xl/workbook.xml")
            found.losses["sheet names"] = [sheet.get("name", "") for sheet in book.iter("{*}sheet")]
            epoch = datetime(1899, 12, 30)  # noqa: DTZ001 - a sheet's dates have no zone
            if any(each.get("date1904") in ("1", "true") for each in book.iter("{*}workbookPr")):
                epoch = datetime(1904, 1, 1)  # noqa: DTZ001
            for member in names:
                if re.fullmatch(r"xl/worksheets/[^/]+\.xml", member):
                    found.pieces.extend(_cells(archive.read(member), shared, dates, epoch))
                elif re.fullmatch(r"xl/(drawings/drawing|diagrams/data)\d+\.xml", member):
                    found.pieces.append(_paragraphs(_parse(archive, member), found))
                elif re.fullmatch(r"xl/(comments\d*|threadedComments/.*|comments/.*)\.xml", member):
                    found.lose("comments", _paragraphs(_parse(archive, member), found))
    except _UNREADABLE:
        return None
    return found


def _shared_strings(archive: zipfile.ZipFile) -> Iterator[str]:
    for item in _parse(archive, "xl/sharedStrings.xml").iterchildren("{*}si"):
        yield _text_of(item)


def _text_of(item: Any) -> str:
    """A string's runs, without the reading aids (phonetic runs) of East Asian text."""
    texts = (run.text or "" for run in item.iter("{*}t") if etree.QName(run.getparent()).localname != "rPh")
    return _ESCAPED.sub(lambda code: chr(int(code[1], 16)), "".join(texts))


def _date_styles(archive: zipfile.ZipFile) -> frozenset[str]:
    """The cell styles that show a number as a date or time."""
    root = _parse(archive, "xl/styles.xml")
    custom = {each.get("numFmtId", ""): each.get("formatCode", "") for each in root.iter("{*}numFmt")}
    styles = set()
    for number, style in enumerate(each for cells in root.iter("{*}cellXfs") for each in cells.iterchildren("{*}xf")):
        code = style.get("numFmtId", "0")
        shows = custom.get(code, "")
        if (not shows and code.isdigit() and int(code) in _DATE_FORMATS) or _DATE_LETTERS.search(_NO_LETTERS.sub("", shows)):
            styles.add(str(number))
    return frozenset(styles)


def _cells(sheet: bytes, shared: list[str], dates: frozenset[str], epoch: datetime) -> Iterator[str]:
    """Each cell's words. Read by patterns: a parser that makes a tree of a large sheet takes seven times as long."""
    for cell in _CELL.finditer(sheet):
        attributes, body = cell[1] or b"", cell[2]
        kind = found[1] if (found := _TYPE.search(attributes)) else b"n"
        if kind == b"inlineStr":
            yield _ESCAPED.sub(lambda code: chr(int(code[1], 16)), _plain(b"".join(_RUN.findall(body))))
            continue
        found = _VALUE.search(body)
        if found is None:
            continue
        value = found[1]
        if kind == b"s":
            if value.isdigit() and int(value) < len(shared):
                yield shared[int(value)]
        elif kind == b"n":
            style = each[1].decode("ascii", "replace") if dates and (each := _STYLE.search(attributes)) else "0"
            yield _number(value.decode("ascii", "replace"), style in dates, epoch)
        elif kind == b"b":
            yield "True" if value == b"1" else "False"
        else:
            yield _plain(value)


def _plain(text: bytes) -> str:
    return unescape(text.decode("utf-8", "replace"))


def _number(value: str, is_date: bool, epoch: datetime) -> str:
    """A number as the reader of the sheet would be given it: whole where it is whole, a date where its style says so."""
    try:
        number = float(value)
        if is_date:
            moment = epoch + timedelta(days=number)
            if 0 <= number < 1:
                return str((moment + timedelta(microseconds=500)).time().replace(microsecond=0))
            shown = (moment + timedelta(microseconds=500)).replace(microsecond=0)
            return str(shown.date()) if shown.time() == time.min else str(shown)
        return str(int(number)) if number.is_integer() and "e" not in value.lower() and "." not in value else str(number)
    except (ValueError, OverflowError):
        return value
