"""Containers: what lies inside a zip or OLE file, and whether a zip may be opened at all. Reads directories, never contents."""

import struct
import zipfile
from pathlib import Path

import olefile

from primer_core.failures import DocumentFault, Reason, is_of_system

MAX_MEMBERS = 10_000
MAX_MEMBER_BYTES = 128 * 2**20
MAX_TOTAL_BYTES = 512 * 2**20
"""Docling's own bounds on an office file (MsWordBackendOptions), checked here for all three office formats before anything is read."""

MAX_RATIO = 200
RATIO_COUNTS_FROM_BYTES = 32 * 2**20
"""A file that expands beyond this size by more than this factor is a bomb. Apache POI stops at 100 (ZipSecureFile.MIN_INFLATE_RATIO 0.01)
whatever the size, which refuses honest sheets of equal rows; small expansions harm nobody."""

MAX_DIRECTORY_BYTES = 8 * 2**20
"""Longest zip directory that is read: zipfile makes an object of every entry, about ten times its size."""

_END_RECORD = struct.Struct("<4s4H2LH")
_END_MAGIC = b"PK\x05\x06"
_MAX_COMMENT = 65_535


def zip_members(path: Path) -> tuple[str, ...]:
    """The names inside a zip file; empty where its directory is damaged or beyond any reason."""
    try:
        return tuple(entry.filename for entry in _entries(path))
    except DocumentFault:
        return ()


def check_zip(path: Path, name: str) -> None:
    """Raise DocumentFault where the zip is damaged (truncated, corrupt), locked (encrypted) or would expand too far (too_large)."""
    entries = _entries(path, name)
    if any(entry.flag_bits & 0x1 for entry in entries):
        raise DocumentFault(Reason.ENCRYPTED, f"{name} holds encrypted parts; save it without a password")
    if len(entries) > MAX_MEMBERS:
        raise DocumentFault(Reason.TOO_LARGE, f"{name} holds {len(entries):,} parts, more than {MAX_MEMBERS:,}; split it")
    largest = max((entry.file_size for entry in entries), default=0)
    total = sum(entry.file_size for entry in entries)
    packed = max(path.stat().st_size, 1)
    if largest > MAX_MEMBER_BYTES:
        raise DocumentFault(Reason.TOO_LARGE, f"{name} holds a part of {largest:,} bytes, more than {MAX_MEMBER_BYTES:,}; split it")
    if total > MAX_TOTAL_BYTES:
        raise DocumentFault(Reason.TOO_LARGE, f"{name} expands to {total:,} bytes, more than {MAX_TOTAL_BYTES:,}; split it")
    if total > RATIO_COUNTS_FROM_BYTES and total / packed > MAX_RATIO:
        raise DocumentFault(
            Reason.TOO_LARGE,
            f"{name} expands {total / packed:.0f} times, to {total:,} bytes (from {RATIO_COUNTS_FROM_BYTES:,} bytes on at most "
            f"{MAX_RATIO} times): it is built like a zip bomb; save it again from its application",
        )


def ole_streams(path: Path) -> tuple[str, ...]:
    """The stream names of an OLE container, folders left out; empty where it is damaged."""
    try:
        with olefile.OleFileIO(path) as container:
            return tuple(entry[-1] for entry in container.listdir())
    except (OSError, ValueError, IndexError, struct.error):
        return ()


def _entries(path: Path, name: str = "") -> list[zipfile.ZipInfo]:
    directory = _directory_bytes(path)
    if directory is None:
        raise DocumentFault(Reason.TRUNCATED, f"{name} ends before its zip directory; upload the whole file again")
    if directory > MAX_DIRECTORY_BYTES:
        raise DocumentFault(
            Reason.TOO_LARGE,
            f"{name} has a zip directory of {directory:,} bytes, more than {MAX_DIRECTORY_BYTES:,}; save it again",
        )
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError, UnicodeDecodeError, struct.error, ValueError, OSError) as error:
        if is_of_system(error):
            raise
        raise DocumentFault(Reason.CORRUPT, f"{name} is a damaged zip file ({error}); open and save it again") from error


def _directory_bytes(path: Path) -> int | None:
    """Length of the zip's directory from the record at its end; None where there is no such record, so the tail is missing."""
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - _MAX_COMMENT - _END_RECORD.size))
        tail = file.read()
    at = tail.rfind(_END_MAGIC)
    if at < 0 or len(tail) - at < _END_RECORD.size:
        return None
    length: int = _END_RECORD.unpack_from(tail, at)[5]
    # All ones means that the real figure is in a zip64 record: 4 GiB of directory, or a lie.
    return length
