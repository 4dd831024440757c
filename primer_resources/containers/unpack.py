"""The task that a worker does on a container: each member to a file of its own in the task's directory, members of members as well.

Members are bounded in number, in size and in depth, whatever the container says of itself. A container in a container is a member too.
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import BinaryIO

from primer_core.failures import DocumentFault, Reason
from primer_core.members import is_litter, unique_paths
from primer_core.routing import CONTAINERS
from primer_resources.containers.archives import archive_members, read_block
from primer_resources.containers.mails import mail_members
from primer_resources.containers.manifest import Member, Unpacked, write_manifest
from primer_resources.parser.sniffing import sniff_file

MOST_MEMBERS = 1_000
"""Of one container and all containers in it. More is a data set or a bomb, and no mail's attachments."""
MOST_BYTES = 512 * 2**20
"""Of all members together: what an office file may expand to as well (parser/archives.py)."""
DEEPEST = 3
"""A mail in an archive in a mail is opened; what lies deeper is a member and stays shut."""

_BLOCK = 1 << 20


@dataclass(slots=True)
class _Room:
    """What is left for members."""

    directory: Path
    name: str
    max_bytes: int
    members: int
    total: int
    numbers: Iterator[int] = field(default_factory=count)

    def take(self, stream: BinaryIO) -> Path | None:
        """Copy a member; None for one that is larger than any document may be. Raises DocumentFault where the room is used up."""
        if self.members < 1:
            raise DocumentFault(Reason.TOO_LARGE, f"{self.name} holds more than {MOST_MEMBERS:,} files; split it")
        self.members -= 1
        target = self.directory / f"member-{next(self.numbers)}"
        written = 0
        with target.open("wb") as out:
            while block := read_block(stream, self.name, _BLOCK):
                written += len(block)
                if written > self.total:
                    raise DocumentFault(Reason.TOO_LARGE, f"{self.name} expands to more than {MOST_BYTES:,} bytes; split it")
                if written > self.max_bytes:
                    break
                out.write(block)
        self.total -= written
        if written > self.max_bytes:
            target.unlink()
            return None
        return target


def unpack(directory: Path, path: Path, name: str, max_bytes: int) -> Unpacked:
    """Take the container at `path` apart. Raises whatever a library raises that is no clear fault of the container."""
    try:
        room = _Room(directory, name, max_bytes, MOST_MEMBERS, MOST_BYTES)
        write_manifest(directory, list(_members(path, name, room, DEEPEST)))
    except DocumentFault as fault:
        return Unpacked(fault.reason.value, fault.message)
    return Unpacked()


def _members(path: Path, name: str, room: _Room, depth: int) -> Iterator[Member]:
    sniffed = sniff_file(path, name)
    if sniffed.mime not in CONTAINERS:
        return
    taken: list[tuple[str, Path]] = []
    opened = mail_members(path) if sniffed.mime == "message/rfc822" else archive_members(path, name, sniffed.mime)
    with closing(opened) as members:
        for inner, stream in members:
            if is_litter(inner):
                continue
            file = room.take(stream)
            if file is not None:
                taken.append((inner, file))
    for member, (_, file) in zip(unique_paths(inner for inner, _ in taken), taken, strict=True):
        yield Member(member, file)
        if depth > 1:
            try:
                for inside in _members(file, member, room, depth - 1):
                    yield Member(f"{member}/{inside.path}", inside.file)
            except DocumentFault as fault:
                if fault.reason is Reason.TOO_LARGE:
                    raise  # the room of the whole is used up, or a bomb lies inside
                # A damaged or locked container inside stays a member, whose own parse says what is wrong with it.
