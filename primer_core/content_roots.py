"""Where a document's content may come from: whether an address lies inside the root of its source. Addresses are compared, not fetched."""

import re
from urllib.parse import SplitResult, unquote_to_bytes, urlsplit

_ENCODED_STRUCTURE = re.compile(r"%(2e|2f|5c|00)", re.IGNORECASE)
DEFAULT_PORTS = {"http": 80, "https": 443}


def path_under(root: str, uri: str) -> str:
    """The path of `uri` below `root`, decoded. Both are absolute addresses, such as file:///docs, s3://bucket/docs or https://host/docs.

    Raises ValueError where the address leaves the root, or is written so that two readers may read it differently.
    """
    if any(char.isspace() or not char.isprintable() for char in uri) or "\\" in uri:
        raise ValueError(f"content_uri {uri!r} has blanks, control characters or backslashes in it")
    base, given = _split(root), _split(uri)
    if given.query or given.fragment or "@" in given.netloc:
        raise ValueError(f"content_uri of {given.hostname or given.scheme} has a user, a query or a fragment in it; give the plain address")
    if (given.scheme, given.hostname, _port(given)) != (base.scheme, base.hostname, _port(base)):
        raise ValueError(f"content_uri {uri!r} is not below {root}, where its source keeps its documents")
    parts, places = _parts(given.path), _parts(base.path)
    if parts[: len(places)] != places or len(parts) == len(places):
        raise ValueError(f"content_uri {uri!r} is not below {root}, where its source keeps its documents")
    return "/".join(parts[len(places) :])


def _split(address: str) -> SplitResult:
    try:
        parts = urlsplit(address)
        _port(parts)
    except ValueError as error:
        raise ValueError(f"{address!r} is no address: {error}") from error
    if not parts.scheme or not address.startswith(f"{address[: len(parts.scheme)]}://"):
        raise ValueError(f"{address!r} is no absolute address; write it with its scheme, like file:///docs/page.md")
    return parts


def _port(parts: SplitResult) -> int | None:
    return parts.port or DEFAULT_PORTS.get(parts.scheme)


def _parts(path: str) -> list[str]:
    """The decoded parts of a path. A slash or a dot that is written as a code, once or twice, is refused."""
    parts = path.rstrip("/").split("/")[1:]
    for part in parts:
        decoded = unquote_to_bytes(part).decode("utf-8", "replace")
        if _ENCODED_STRUCTURE.search(part) and _is_structure(part, decoded):
            raise ValueError(f"address part {part!r} hides a slash, a dot or an end in a code")
        if decoded in ("", ".", "..") or _ENCODED_STRUCTURE.search(decoded):
            raise ValueError(f"address part {part!r} is empty, goes up, or is encoded twice")
    return [unquote_to_bytes(part).decode("utf-8", "replace") for part in parts]


def _is_structure(part: str, decoded: str) -> bool:
    return "/" in decoded or "\\" in decoded or "\0" in decoded or decoded.strip(".") == ""
