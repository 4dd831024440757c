"""Words that stand in an office file's drawings and that Docling does not read: text boxes on sheets, SmartArt on sheets and slides.

They are appended to the sheet's or slide's group, each shape or node a paragraph with its page.
"""

import posixpath
import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docling_core.types.doc import BoundingBox, DocItemLabel, DoclingDocument, GroupLabel, NodeItem, ProvenanceItem
from lxml import etree

_NOWHERE = BoundingBox(l=0, t=0, r=0, b=0)
_DIAGRAM = "/diagramData"
_DRAWING = "/drawing"


def add_drawn_words(document: DoclingDocument, path: Path, book_part: str) -> None:
    """Append the drawings' words. `book_part` is the part that lists the sheets or slides in order (xl/workbook.xml,
    ppt/presentation.xml). A drawing that cannot be read is left out: Docling has read the file, and the count of words tells."""
    with zipfile.ZipFile(path) as archive:
        names = set(archive.namelist())
        if not any(re.fullmatch(r"(?:xl/drawings/drawing|(?:xl|ppt)/diagrams/data)\d*\.xml", name) for name in names):
            return
        try:
            for page, part in enumerate(_pages(archive, book_part), start=1):
                texts = list(_drawn(archive, names, part))
                parent = _group_of(document, page) if texts else None
                for text in texts:
                    place = ProvenanceItem(page_no=page, bbox=_NOWHERE, charspan=(0, len(text))) if page in document.pages else None
                    document.add_text(label=DocItemLabel.TEXT, text=text, parent=parent, prov=place)
        except (KeyError, etree.XMLSyntaxError, zipfile.BadZipFile, zlib.error, EOFError, ValueError):
            return


def _pages(archive: zipfile.ZipFile, book_part: str) -> Iterator[str]:
    """The parts of the sheets or slides, in order."""
    targets = dict(_relations(archive, book_part))
    for entry in _parse(archive, book_part).iter("{*}sheet", "{*}sldId"):
        reference = next((value for name, value in entry.attrib.items() if name.endswith("}id")), "")
        yield targets.get(reference, ("", ""))[1]


def _drawn(archive: zipfile.ZipFile, names: set[str], part: str) -> Iterator[str]:
    for _, (kind, target) in _relations(archive, part):
        if target not in names:
            continue
        if kind.endswith(_DRAWING):
            yield from _texts(_parse(archive, target), "{*}sp")
            yield from _drawn(archive, names, target)
        elif kind.endswith(_DIAGRAM):
            yield from _texts(_parse(archive, target), "{*}pt")


def _texts(root: Any, shape: str) -> Iterator[str]:
    """One string a shape that holds words: its paragraphs as lines."""
    for twice in list(root.iter("{*}Fallback")):
        twice.getparent().remove(twice)
    for found in root.iter(shape):
        lines = ("".join(run.text or "" for run in paragraph.iter("{*}t")) for paragraph in found.iter("{*}p"))
        text = "\n".join(line.strip() for line in lines if line.strip())
        if text:
            yield text


def _relations(archive: zipfile.ZipFile, part: str) -> list[tuple[str, tuple[str, str]]]:
    """(id, (kind, target)) of a part's relations inside the file, in order."""
    folder, name = posixpath.split(part)
    try:
        root = _parse(archive, f"{folder}/_rels/{name}.rels")
    except KeyError:
        return []
    found = []
    for relation in root.iter("{*}Relationship"):
        target = relation.get("Target", "")
        if relation.get("TargetMode") != "External":
            whole = target[1:] if target.startswith("/") else posixpath.normpath(posixpath.join(folder, target))
            found.append((relation.get("Id", ""), (relation.get("Type", ""), whole)))
    return found


def _group_of(document: DoclingDocument, page: int) -> NodeItem | None:
    """The group that Docling made for a sheet or slide; it makes one a page, in order."""
    groups = [group for group in document.groups if group.label in (GroupLabel.SHEET, GroupLabel.CHAPTER)]
    return groups[page - 1] if page <= len(groups) else None


def _parse(archive: zipfile.ZipFile, part: str) -> Any:
    return etree.fromstring(archive.read(part), etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True))
