"""Seeded damage to real files, in the ways that disks, mail relays and attackers do it. Bytes in, bytes out."""

import io
import zipfile
import zlib
from collections.abc import Callable, Sequence
from random import Random

from lxml import etree

Mutation = Callable[[Random, bytes, Sequence[bytes]], bytes]

ODD = (
    *(b"\x00", b"\xff\xff\xff\xff", b"-1", b"99999999999999999999", b"NaN", b"%s%n", b"\r\n\r\n", b"\xe2\x80\xae", b"<![CDATA[", b"]]>"),
    *(b"<!DOCTYPE x [<!ENTITY a 'b'>]>", b"&a;", b"<!--", b"<table>", b"<td colspan=1000>", b"<p>", b"</p>", b"```", b"> > > ", b"|", b'"'),
    *(b"endobj", b"stream", b"obj << /Length 99999999 >>", b"/Kids [1 0 R]", b"Content-Type: multipart/mixed; boundary=b\n\n", b"---\n"),
)
"""Pieces that mean something to some reader."""


def flip_bytes(random: Random, data: bytes, _others: Sequence[bytes]) -> bytes:
    """Change up to sixteen bytes."""
    found = bytearray(data)
    for _ in range(random.randint(1, 16)):
        found[random.randrange(len(found))] = random.randrange(256)
    return bytes(found)


def flip_bits(random: Random, data: bytes, _others: Sequence[bytes]) -> bytes:
    """Change single bits all over, about one byte in five hundred."""
    found = bytearray(data)
    for _ in range(1 + len(found) // 500):
        found[random.randrange(len(found))] ^= 1 << random.randrange(8)
    return bytes(found)


def cut_off(random: Random, data: bytes, _others: Sequence[bytes]) -> bytes:
    """Lose the end, or the beginning."""
    at = random.randrange(1, len(data))
    return data[at:] if random.random() < 0.2 else data[:at]


def cut_out(random: Random, data: bytes, _others: Sequence[bytes]) -> bytes:
    """Lose a stretch in the middle."""
    start = random.randrange(len(data))
    return data[:start] + data[start + random.randint(1, max(1, len(data) // 4)) :]


def splice(random: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Begin as one file and end as another."""
    other = random.choice(others)
    return data[: random.randrange(len(data))] + other[random.randrange(len(other)) :]


def repeat(random: Random, data: bytes, _others: Sequence[bytes]) -> bytes:
    """Say a stretch many times over."""
    start = random.randrange(len(data))
    stretch = data[start : start + random.randint(1, 200)]
    return data[:start] + stretch * random.randint(2, 500) + data[start:]


def insert_odd(random: Random, data: bytes, _others: Sequence[bytes]) -> bytes:
    """Put in pieces that mean something."""
    for _ in range(random.randint(1, 5)):
        at = random.randrange(len(data))
        data = data[:at] + random.choice(ODD) * random.choice((1, 1, 1, 50)) + data[at:]
    return data


PLAIN: tuple[Mutation, ...] = (flip_bytes, flip_bits, cut_off, cut_out, splice, repeat, insert_odd)


def change_member(random: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Open a zip, damage one member and close it soundly: what lies behind the checksums."""
    members = _members(data)
    if not members:
        return flip_bytes(random, data, others)
    name = random.choice([name for name in members if name.endswith((".xml", ".rels"))] or list(members))
    donors = [found for other in others if (found := _members(other).get(name))]
    members[name] = random.choice(PLAIN)(random, members[name] or b" ", donors or [b"<x/>"])
    return _zipped(members)


VALUES = ("", "-1", "0", "1", "99999999999", "1e309", "NaN", "true", "A1:XFD1048576", "rId1", "../../x", "\u202e", "x" * 5_000)


def change_xml(random: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Change one XML member so that it stays well formed: what lies behind the parser."""
    members = _members(data)
    names = [name for name in members if name.endswith((".xml", ".rels"))]
    if not names:
        return flip_bytes(random, data, others)
    name = random.choice(names)
    try:
        root = etree.fromstring(members[name])
    except etree.XMLSyntaxError:
        return change_member(random, data, others)
    for _ in range(random.randint(1, 6)):
        _change_element(random, random.choice([each for each in root.iter() if isinstance(each.tag, str)]))
    members[name] = etree.tostring(root, xml_declaration=True, encoding="UTF-8")
    return _zipped(members)


def _change_element(random: Random, element: etree._Element) -> None:
    parent = element.getparent()
    action = random.randrange(5)
    if action == 0 and element.attrib:
        element.set(random.choice(list(element.attrib)), random.choice(VALUES))
    elif action == 1:
        element.text = random.choice(VALUES)
    elif parent is None:
        return
    elif action == 2:
        parent.remove(element)
    elif action == 3:
        copy = etree.tostring(element)
        for _ in range(random.choice((1, 1, 30))):
            parent.append(etree.fromstring(copy))
    else:
        deep = parent
        for _ in range(random.choice((1, 5, 60))):
            deep = etree.SubElement(deep, element.tag, dict(element.attrib))
        deep.append(element)


def drop_member(random: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Lose a member, or have it hold what another does."""
    members = _members(data)
    if len(members) < 2:
        return cut_off(random, data, others)
    name = random.choice(list(members))
    if random.random() < 0.5:
        del members[name]
    else:
        members[name] = members[random.choice(list(members))]
    return _zipped(members)


ZIPPED: tuple[Mutation, ...] = (*(change_xml,) * 8, *(change_member,) * 3, drop_member, *PLAIN)


def _members(data: bytes) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return {entry.filename: archive.read(entry) for entry in archive.infolist()}
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError, ValueError):
        return {}


def _zipped(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in members.items():
            archive.writestr(name, body)
    return out.getvalue()
