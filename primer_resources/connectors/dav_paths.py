"""Addresses on a WebDAV server: which resource of a collection an address in its answer means, and what it is called. No requests.

| what an address may differ in | what is done |
|---|---|
| absolute, a path, or relative to the collection | resolved; its host must be the server's, scheme and port may be those behind a proxy |
| percent-encoding of other characters, NFD for NFC, a slash at its end | compared decoded, in NFC, without the slash |
| not directly inside the collection: above it, beside it, deeper, "." or ".." | refused |
"""

import unicodedata
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit

from primer_resources.connectors.drive_names import show_name


class Elsewhere(Exception):
    """An address that is not directly inside the collection."""


def parts_of(path: str) -> tuple[str, ...]:
    """The decoded names of an encoded path, NFC, for comparing. A slash that was encoded stays one, and no separator."""
    return tuple(unicodedata.normalize("NFC", decode(part)) for part in path.strip("/").split("/") if part)


def decode(part: str) -> str:
    """The name that an encoded part of a path stands for; bytes that are no UTF-8 by surrogateescape."""
    return unquote(part, errors="surrogateescape").replace("/", "%2F")


def encode(part: str) -> str:
    """One spelling of an encoded part, whichever characters the server chose to encode."""
    return quote(unquote(part, errors="surrogateescape"), safe="", errors="surrogateescape")


def name_in(collection: SplitResult, href: str) -> str:
    """The encoded name of the resource directly inside the collection that the address means; "" for the collection itself.

    Raises Elsewhere for any other.
    """
    try:
        address = urlsplit(urljoin(collection.geturl(), href))
    except ValueError as error:
        raise Elsewhere(f"{href!r} is no address") from error
    raw = [part for part in address.path.split("/") if part]
    own = parts_of(collection.path)
    if address.hostname != collection.hostname or any(decode(part) in (".", "..") for part in raw):
        raise Elsewhere(f"{href!r} leads elsewhere")
    names = parts_of(address.path)
    if names == own:
        return ""
    if names[:-1] != own:
        raise Elsewhere(f"{href!r} is not directly inside")
    return encode(raw[-1])


def shown(part: str) -> str:
    """An encoded name as people and the catalog see it, NFC."""
    return unicodedata.normalize("NFC", show_name(decode(part)))
