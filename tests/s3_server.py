"""A bucket over real HTTP: the part of S3 that a connector reads, with its pages, whole seconds and refusals, and faults on demand.

A full server stands in tests/primer_resources/connectors/test_object_store.py; this one does what no healthy store does.
"""

import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape


@dataclass
class Bucket:
    """What the bucket holds and how it answers. `answers` are statuses given to the next requests instead of the truth; `before_page`
    is called before each page of keys, with 1 for the first and 2 for the others; `forbidden` are keys that nobody may read; with
    `loops` every page names a next one, which is the same."""

    base: str = ""
    objects: dict[str, tuple[bytes, datetime]] = field(default_factory=dict)
    key_id: str | None = None
    clock: datetime = datetime(2026, 6, 1, 12, tzinfo=UTC)
    page_size: int = 2
    answers: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    before_page: Callable[[int], None] = lambda number: None
    forbidden: set[str] = field(default_factory=set)
    loops: bool = False
    is_blank: bool = False
    is_gone: bool = False
    suffix: str = ".000Z"
    """What stands behind the times of a listing; "" is a time without a zone."""

    def put(self, key: str, data: bytes) -> None:
        self.objects[key] = (data, self.clock)

    def page(self, query: dict[str, str]) -> bytes:
        """The XML of a page of keys."""
        after = query.get("continuation-token", "")
        keys = [] if self.is_blank else sorted(key for key in self.objects if key.startswith(query.get("prefix", "")))
        rest = [key for key in keys if key > after or self.loops]
        shown = rest[: self.page_size]
        more = len(rest) > len(shown) or self.loops
        token = f"<NextContinuationToken>{escape(shown[-1])}</NextContinuationToken>" if more and shown else ""
        contents = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>{self.objects[key][1]:%Y-%m-%dT%H:%M:%S}{self.suffix}</LastModified>"
            f"<ETag>{escape(_etag(self.objects[key][0]))}</ETag><Size>{len(self.objects[key][0])}</Size></Contents>"
            for key in shown
        )
        return (
            '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult><Name>bucket</Name>'
            f"<IsTruncated>{str(bool(token)).lower()}</IsTruncated>{contents}{token}</ListBucketResult>"
        ).encode()


def _etag(data: bytes) -> str:
    return f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"'


def _handler(bucket: Bucket) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            split = urlsplit(self.path)
            key = unquote(split.path).removeprefix("/bucket").removeprefix("/")
            query = {name: values[0] for name, values in parse_qs(split.query).items()}
            if not key:
                bucket.before_page(2 if "continuation-token" in query else 1)
            if bucket.answers:
                status, headers = bucket.answers.pop(0)
                return self._send(status, b"", headers)
            if bucket.key_id is not None and f"Credential={bucket.key_id}/" not in self.headers.get("Authorization", ""):
                return self._send(403, b"<Error><Code>InvalidAccessKeyId</Code></Error>", {})
            if bucket.is_gone:
                return self._send(404, b"<Error><Code>NoSuchBucket</Code></Error>", {})
            if not key:
                return self._send(200, bucket.page(query), {"Content-Type": "application/xml"})
            if key in bucket.forbidden:
                return self._send(403, b"<Error><Code>AccessDenied</Code></Error>", {})
            if key not in bucket.objects:
                return self._send(404, b"<Error><Code>NoSuchKey</Code></Error>", {})
            data, at = bucket.objects[key]
            return self._send(200, data, {"ETag": _etag(data), "Last-Modified": format_datetime(at, usegmt=True)})

        def do_HEAD(self) -> None:
            self.do_GET()

        def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            self.send_response_only(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

    return Handler


@contextmanager
def s3_server() -> Iterator[Bucket]:
    """A bucket named `bucket` that answers on the loopback until the end of the block."""
    bucket = Bucket()
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler(bucket)) as server:
        bucket.base = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield bucket
        finally:
            server.shutdown()
            thread.join()
