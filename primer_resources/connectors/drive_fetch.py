"""Fetching from a drive: open safely beneath the root, copy while hashing, and prove that nothing changed meanwhile."""

import errno
import hashlib
import os
import stat
from pathlib import Path
from typing import BinaryIO

from primer_core.failures import DocumentFault, PrimerError, Reason, SystemFault, Transient
from primer_resources.connectors.base import Fetched, ListedItem
from primer_resources.connectors.drive_walk import describe_kind, fingerprint

COPY_BYTES = 1 << 20
"""Bytes a read: fewer cost system calls, more only cost memory."""

_UNREADABLE = frozenset({errno.EACCES, errno.EPERM, errno.ENXIO, errno.ENODEV, errno.ENAMETOOLONG})
_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
_OURS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
_FOLDER_FLAGS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def _fault_of(error: OSError, path: str) -> PrimerError:
    """What a failed look or read means for the document."""
    if error.errno in _UNREADABLE:
        return DocumentFault(Reason.UNREADABLE, f"{path} cannot be read ({error.strerror}); grant Primer's user read permission")
    if error.errno in _GONE:
        return Transient(f"{path} vanished or moved before it was read; the next listing tells where it is")
    if error.errno in _OURS:
        return SystemFault(f"{path} was not read: {error.strerror}; raise the limit of this machine")
    return Transient(f"reading {path} failed: {error.strerror}; it is tried again")


def _open_beneath(root: str, native: str) -> int:
    """Open a file below the root for reading, following no link on any part of its path.

    The listing has resolved the links and taken the access of the place they lead to. So a link that is swapped in afterwards can
    neither lead out of the root nor put a closed folder's bytes under an open folder's access. Raises OSError; DocumentFault for what
    is no regular file, which is found out before it is opened: opening a pipe waits for ever and opening a device can act on it.
    """
    *folders, name = native.split("/")
    if any(part in ("", os.curdir, os.pardir) for part in (*folders, name)):
        raise DocumentFault(Reason.OUTSIDE_ROOT, f"{native!a} is no path below the source's folder {root}")
    at = os.open(root, _FOLDER_FLAGS & ~os.O_NOFOLLOW)
    try:
        for folder in folders:
            below = os.open(folder, _FOLDER_FLAGS, dir_fd=at)
            os.close(at)
            at = below
        state = os.stat(name, dir_fd=at, follow_symlinks=False)
        if stat.S_ISLNK(state.st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if not stat.S_ISREG(state.st_mode):
            kind = describe_kind(state.st_mode)
            raise DocumentFault(Reason.UNREADABLE, f"{native!a} is {kind}, not a regular file; remove it from the source")
        return os.open(name, _FILE_FLAGS, dir_fd=at)
    finally:
        os.close(at)


def _same(one: os.stat_result, other: os.stat_result) -> bool:
    """Whether two looks saw the same file in the same state. The change time catches a write that put the modification time back."""
    return (one.st_dev, one.st_ino, one.st_size, one.st_mtime_ns, one.st_ctime_ns) == (
        other.st_dev,
        other.st_ino,
        other.st_size,
        other.st_mtime_ns,
        other.st_ctime_ns,
    )


def _copy(source: int, sink: BinaryIO, shown: str, limit: int) -> tuple[str, int]:
    """Copy `limit` bytes, or one more where the file grew. The SHA-256 and the number of bytes copied. `sink` is unbuffered."""
    sha = hashlib.sha256()
    size = 0
    while size <= limit:
        try:
            piece = os.read(source, min(COPY_BYTES, limit + 1 - size))
        except OSError as error:
            raise _fault_of(error, shown) from error
        if not piece:
            break
        sha.update(piece)
        size += len(piece)
        try:
            left = memoryview(piece)
            while left:
                left = left[os.write(sink.fileno(), left) :]  # A disk that fills up takes a part and says nothing until the next write.
        except OSError as error:
            raise SystemFault(f"copying {shown} to {sink.name} failed: {error.strerror}; make room there") from error
    return sha.hexdigest(), size


def fetch_file(root: str, item: ListedItem, target: Path, max_bytes: int) -> Fetched:
    """Copy one document below the real path `root` to `target` (created private, mode 0600; removed again when the fetch fails).

    Raises DocumentFault (the item's own fault, too_large, unreadable, outside_root), Transient (gone, or changed while it was read)
    or SystemFault (no room at the target).
    """
    if item.fault is not None:
        raise DocumentFault(item.fault, f"{item.path}: {item.error}")
    try:
        source = _open_beneath(root, item.native_path)
    except OSError as error:
        raise _fault_of(error, item.path) from error
    try:
        before = os.fstat(source)
        if not stat.S_ISREG(before.st_mode):
            raise DocumentFault(Reason.UNREADABLE, f"{item.path} is {describe_kind(before.st_mode)}, not a regular file")
        if before.st_size > max_bytes:
            raise DocumentFault(
                Reason.TOO_LARGE,
                f"{item.path} has {before.st_size} bytes, over the limit of {max_bytes}; split it, or raise max_file_mb",
            )
        try:
            sink_descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise SystemFault(f"the private copy {target} cannot be made: {error.strerror}; see to its folder") from error
        try:
            with os.fdopen(sink_descriptor, "wb", buffering=0) as sink:
                content_hash, size = _copy(source, sink, item.path, before.st_size)
            _check_unchanged(root, item, source, before, size)
        except PrimerError:
            target.unlink(missing_ok=True)
            raise
    finally:
        os.close(source)
    return Fetched(content_hash, size, fingerprint(before), before.st_mtime_ns)


def _check_unchanged(root: str, item: ListedItem, source: int, before: os.stat_result, copied: int) -> None:
    """Raise Transient unless the open file is as it was and still the one under the path (an editor saves by replacing the file)."""
    try:
        by_path = Path(root, item.native_path).lstat()
        after = os.fstat(source)
    except OSError as error:
        raise _fault_of(error, item.path) from error
    if copied != before.st_size or not _same(before, after) or not _same(before, by_path):
        raise Transient(f"{item.path} changed while it was read; it is tried again")
