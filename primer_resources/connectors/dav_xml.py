"""What a WebDAV server answers to PROPFIND: the properties of resources, read from a multistatus while it comes in. No requests.

An answer counts only when it is whole: XML that ends where it should, and every resource with a status that is good. A property that a
resource does not have (404) is no fault; one that could not be told is.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime

from lxml import etree

from primer_core.source_time import check_aware, parse_time, to_ns

_D = "{DAV:}"
BODY = (
    b'<?xml version="1.0" encoding="utf-8"?><D:propfind xmlns:D="DAV:"><D:prop><D:resourcetype/><D:getetag/><D:getcontentlength/>'
    b"<D:getlastmodified/></D:prop></D:propfind>"
)
"""What is asked of each resource."""


class NotWhole(Exception):
    """An answer that proves nothing; the text says why."""


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource as the server tells of it. `href` is as it was written; `error` says why nothing else of it is known."""

    href: str
    is_collection: bool = False
    etag: str = ""
    size: int | None = None
    modified: datetime | None = None
    error: str = ""

    @property
    def modified_ns(self) -> int:
        """Nanoseconds since the epoch; 0 where the server tells no time."""
        return 0 if self.modified is None else to_ns(self.modified)

    @property
    def is_strong(self) -> bool:
        """Whether the entity tag changes with every byte."""
        return bool(self.etag) and not self.etag.startswith("W/")

    @property
    def fingerprint(self) -> str:
        """What changes whenever the content may have; "" where the server tells nothing that does."""
        if self.is_strong:
            return self.etag
        return f"{self.etag}{self.size}:{self.modified_ns}" if self.etag or self.modified is not None else ""


def read_multistatus(pieces: Iterable[bytes]) -> list[Resource]:
    """The resources of an answer, in its order. Raises NotWhole, ValueError for a time without a zone.

    No entity is resolved and no declaration taken: what a server sends can neither grow in memory nor reach for anything.
    """
    parser = etree.XMLPullParser(events=("end",), tag=f"{_D}response", resolve_entities=False, no_network=True, load_dtd=False)
    found: list[Resource] = []
    try:
        for piece in pieces:
            parser.feed(piece)
            for _, element in parser.read_events():
                found.append(_resource(element))
                element.clear()
        root = parser.close()
        found.extend(_resource(element) for _, element in parser.read_events())
    except etree.XMLSyntaxError as error:
        raise NotWhole(f"its answer is no whole XML ({error.msg})") from error
    if root.getroottree().docinfo.doctype:
        raise NotWhole("its answer declares a document type, which no multistatus does")
    if root.tag != f"{_D}multistatus":
        raise NotWhole(f"its answer is a {root.tag}, no multistatus")
    return found


def _resource(element: etree._Element) -> Resource:
    href = (element.findtext(f"{_D}href") or "").strip()
    if not href:
        raise NotWhole("its answer tells of a resource without an address")
    status = element.findtext(f"{_D}status")
    if status is not None and not _is_good(status):
        return Resource(href, error=status.strip())
    values: dict[str, etree._Element] = {}
    error = ""
    for part in element.findall(f"{_D}propstat"):
        told = part.findtext(f"{_D}status") or "no status"
        if _is_good(told):
            values.update({child.tag: child for prop in part.findall(f"{_D}prop") for child in prop})
        elif _code(told) != 404:
            error = told.strip()
    if error or not values:
        return Resource(href, error=error or "no properties")
    kind = values.get(f"{_D}resourcetype")
    return Resource(
        href,
        kind is not None and kind.find(f"{_D}collection") is not None,
        _etag(_text(values, "getetag")),
        _size(_text(values, "getcontentlength")),
        _time(_text(values, "getlastmodified")),
    )


def _text(values: dict[str, etree._Element], name: str) -> str:
    found = values.get(f"{_D}{name}")
    return "" if found is None else (found.text or "").strip()


def _etag(text: str) -> str:
    """The entity tag as a header has it; some servers leave the quotes out."""
    return text if not text or text.startswith(('"', "W/")) else f'"{text}"'


def _code(status: str) -> int:
    """The number in a status line such as "HTTP/1.1 200 OK"; 0 where there is none."""
    parts = status.split()
    return int(parts[1]) if len(parts) > 1 and parts[1].isdigit() else 0


def _is_good(status: str) -> bool:
    return 200 <= _code(status) < 300


def _size(text: str) -> int | None:
    return int(text) if text.isdigit() else None


def _time(text: str) -> datetime | None:
    if not text:
        return None
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return parse_time(text)
    return check_aware(moment)
