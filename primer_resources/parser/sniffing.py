"""Sniffing a file on disk: reads what the pure rule in primer_core.routing wants to see."""

from pathlib import Path

from primer_core.routing import EMPTY_ZIP_MAGIC, HEAD_BYTES, OLE_MAGIC, ZIP_MAGIC, Sniffed, sniff
from primer_resources.parser.archives import ole_streams, zip_members


def sniff_file(path: Path, name: str) -> Sniffed:
    """What the file is, by its bytes; `name` is the document's own file name, not that of the private copy."""
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    members: tuple[str, ...] = ()
    if head.startswith((ZIP_MAGIC, EMPTY_ZIP_MAGIC)):
        members = zip_members(path)
    elif head.startswith(OLE_MAGIC):
        members = ole_streams(path)
    return sniff(head, members, name)
