"""Files of an archive: zip, tar, and one file compressed by gzip, bzip2 or xz. Nothing is written where a name points to."""

import bz2
import gzip
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Generator
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

from primer_core.failures import DocumentFault, Reason, is_of_system
from primer_resources.parser.archives import check_zip

_OPENERS: dict[str, Callable[[Path], Any]] = {
    "application/gzip": gzip.open,
    "application/x-bzip2": bz2.open,
    "application/x-xz": lzma.open,
}
_DAMAGED = (zipfile.BadZipFile, tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, NotImplementedError, OSError)


def archive_members(path: Path, name: str, mime: str) -> Generator[tuple[str, BinaryIO]]:
    """(name, bytes) of each file in the archive, links and devices left out.

    Raises DocumentFault (truncated, corrupt, encrypted, too_large).
    """
    if mime == "application/zip":
        check_zip(path, name)
    try:
        yield from _zip(path) if mime == "application/zip" else _tar(path, name, mime)
    except _DAMAGED as error:
        raise _damaged(error, name) from error


def read_block(stream: BinaryIO, name: str, size: int) -> bytes:
    """The next bytes of a member of the archive `name`. Raises DocumentFault(CORRUPT) where they are damaged."""
    try:
        return stream.read(size)
    except _DAMAGED as error:
        raise _damaged(error, name) from error


def _damaged(error: Exception, name: str) -> Exception:
    """The fault of the archive, unless the system failed."""
    if is_of_system(error):
        return error
    return DocumentFault(Reason.CORRUPT, f"{name} is a damaged archive ({error}); pack and upload it again")


def _zip(path: Path) -> Generator[tuple[str, BinaryIO]]:
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            if not entry.is_dir():
                with archive.open(entry) as stream:
                    yield entry.filename, cast(BinaryIO, stream)


def _tar(path: Path, name: str, mime: str) -> Generator[tuple[str, BinaryIO]]:
    if mime in _OPENERS and not tarfile.is_tarfile(path):
        # One compressed file: its name is the archive's without the last suffix.
        with _OPENERS[mime](path) as stream:
            yield PurePosixPath(name).stem or name, cast(BinaryIO, stream)
        return
    with tarfile.open(path, "r:*") as archive:
        for entry in archive:
            stream_or_none = archive.extractfile(entry) if entry.isfile() else None
            if stream_or_none is not None:
                with stream_or_none as stream:
                    yield entry.name, cast(BinaryIO, stream)
