"""What is asked of a WebDAV server: the resources of a collection, one resource, and the bytes of one. Addresses are below the root."""

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

import httpx2

from primer_core.failures import DocumentFault, Reason, SystemFault
from primer_resources.connectors.dav_paths import Elsewhere, name_in, parts_of
from primer_resources.connectors.dav_xml import BODY, NotWhole, Resource, read_multistatus
from primer_resources.connectors.http_auth import auth_of
from primer_resources.connectors.service import Call, Failed, Refused, Service

COPY_BYTES = 1 << 20
_MULTISTATUS = 207


@dataclass(frozen=True, slots=True)
class Members:
    """What a collection holds: encoded name → resource, and what of its answer could not be taken."""

    resources: dict[str, Resource]
    problems: tuple[str, ...]


class DavClient:
    """Asks one server below one root. A place is an encoded path below it, without slashes at its ends; "" is the root."""

    def __init__(self, root: str, credentials_ref: str | None, quota: timedelta, sleep: Callable[[float], None] = time.sleep) -> None:
        self.root = str(httpx2.URL(root)).rstrip("/")
        self._service = Service(self.root, credentials_ref, quota, sleep, auth_of)

    def address(self, place: str) -> str:
        """The address of a place."""
        return f"{self.root}/{place}"

    def members(self, place: str) -> Members:
        """The members of a collection. Raises Refused, or what a service raises that does not answer."""
        url = self.address(place).rstrip("/") + "/"
        at, resources = self._service.ask(_propfind(url, "1"), _read_propfind)
        asked, answered = urlsplit(url), urlsplit(at)
        if parts_of(asked.path) != parts_of(answered.path):
            if place:
                raise Refused(_MULTISTATUS, f"{url} leads to {at}; it was not followed")
            self.root = at.rstrip("/")
        return _sort_members(answered.geturl(), resources)

    def look(self, place: str) -> Resource:
        """One resource. Raises Refused (404 where it is gone), or what a service raises that does not answer."""
        _, resources = self._service.ask(_propfind(self.address(place), "0"), _read_propfind)
        if len(resources) != 1 or resources[0].error:
            told = resources[0].error if resources else "nothing"
            raise Refused(404 if " 404" in f" {told}" else 403, f"{self.address(place)}: the server tells of it: {told}")
        return resources[0]

    def copy(self, place: str, target: Path, limit: int, etag: str) -> tuple[str, int]:
        """Stream a resource to `target`, where it is in the state `etag` ("": in any). Its SHA-256 and size in bytes.

        Raises Refused (404 gone, 412 in another state), DocumentFault (more bytes than the limit), SystemFault (no room).
        """
        headers = {"Accept-Encoding": "identity"} | ({"If-Match": etag} if etag else {})

        def read(response: httpx2.Response) -> tuple[str, int]:
            try:
                with target.open("wb") as file:
                    return _copy(response, file, limit)
            except OSError as error:
                raise SystemFault(f"the private copy {target} failed: {error.strerror}; make room there") from error

        return self._service.ask(Call("GET", self.address(place), headers=headers), read)

    def close(self) -> None:
        """Give the connections back."""
        self._service.close()


def _copy(response: httpx2.Response, file: BinaryIO, limit: int) -> tuple[str, int]:
    sha, size = hashlib.sha256(), 0
    for piece in response.iter_bytes(COPY_BYTES):
        sha.update(piece)
        size += file.write(piece)
        if size > limit:
            raise DocumentFault(Reason.TOO_LARGE, f"it has more than {limit} bytes, the limit; split it, or raise max_file_mb")
    return sha.hexdigest(), size


def _propfind(url: str, depth: str) -> Call:
    return Call("PROPFIND", url, headers={"Depth": depth, "Content-Type": "application/xml"}, content=BODY)


def _read_propfind(response: httpx2.Response) -> tuple[str, list[Resource]]:
    if response.status_code != _MULTISTATUS:
        status = response.status_code
        raise Refused(status, f"{response.url} answered {status} to PROPFIND, not 207; see that it is a WebDAV address")
    try:
        return str(response.url), read_multistatus(response.iter_bytes())
    except NotWhole as error:
        raise Failed(str(error)) from error
    except ValueError as error:
        raise SystemFault(f"{response.url}: {error}") from error


def _sort_members(url: str, resources: list[Resource]) -> Members:
    """The members by name. Raises Failed for an answer that does not tell of the collection itself: nobody knows what else it left out."""
    collection = urlsplit(url)
    found: dict[str, Resource] = {}
    problems: list[str] = []
    is_collection = False
    for resource in resources:
        try:
            name = name_in(collection, resource.href)
        except Elsewhere as error:
            problems.append(f"{url} tells of {error}")
            continue
        if resource.error:
            problems.append(f"{url} tells of {resource.href}: {resource.error}")
        elif not name:
            is_collection = resource.is_collection
        elif name in found and found[name] != resource:
            problems.append(f"{url} tells of {resource.href} twice, and not the same")
        else:
            found[name] = resource
    if not is_collection and not problems:
        raise Refused(_MULTISTATUS, f"{url} does not say that it is a folder; correct the address")
    return Members(found, tuple(problems))
