"""Writes a document that a connector has whole in memory to the private copy that a fetch makes. What is streamed is copied elsewhere."""

import hashlib
from pathlib import Path

from primer_core.failures import DocumentFault, Reason, SystemFault
from primer_resources.connectors.base import Fetched, ListedItem


def write_copy(item: ListedItem, data: bytes, target: Path, max_bytes: int, fingerprint: str = "", modified_ns: int = 0) -> Fetched:
    """Write the bytes of an item to `target`. `fingerprint` and `modified_ns` are of the state that was read; left out, the listed one's.

    Raises DocumentFault (too_large) over `max_bytes`, SystemFault where the copy cannot be written.
    """
    if len(data) > max_bytes:
        message = f"{item.path} has {len(data)} bytes, over the limit of {max_bytes}; split it, or raise max_file_mb"
        raise DocumentFault(Reason.TOO_LARGE, message)
    try:
        target.write_bytes(data)
    except OSError as error:
        raise SystemFault(f"the private copy {target} of {item.path} failed: {error.strerror}; make room there") from error
    return Fetched(hashlib.sha256(data).hexdigest(), len(data), fingerprint or item.fingerprint, modified_ns or item.modified_ns)
