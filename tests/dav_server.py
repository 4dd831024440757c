"""A WebDAV server over real HTTP: wsgidav over a folder, and in front of it what a test wants to go wrong."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from werkzeug.serving import WSGIRequestHandler, make_server
from wsgidav.fs_dav_provider import FilesystemProvider
from wsgidav.wsgidav_app import WsgiDAVApp

Environ = dict[str, Any]
Edit = Callable[[Environ, bytes], bytes]
MOUNT = "/remote.php/dav"


@dataclass
class DavServer:
    """What the server holds (`folder`) and how it answers. `answers` are (status, headers) given to the next requests instead of the
    truth, `refused` maps how a path begins to a status, `edit` changes the body of an answer, `before` is called with each request,
    `before_page` before each collection is told."""

    folder: Path
    base: str = ""
    answers: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    refused: dict[str, int] = field(default_factory=dict)
    redirects: dict[str, str] = field(default_factory=dict)
    token: str | None = None
    edit: Edit = lambda environ, body: body
    before: Callable[[Environ], None] = lambda environ: None
    before_page: Callable[[int], None] = lambda number: None
    requests: list[tuple[str, str]] = field(default_factory=list)
    authorisations: list[str] = field(default_factory=list)

    @property
    def root(self) -> str:
        """The address of the collection."""
        return f"{self.base}{MOUNT}"

    def asked(self, method: str) -> list[str]:
        """Paths of the requests of a method."""
        return [path for each, path in self.requests if each == method]


class _Faulty:
    """The middleware in front."""

    def __init__(self, server: DavServer, app: Callable[..., Iterable[bytes]]) -> None:
        self._server, self._app = server, app

    def __call__(self, environ: Environ, start: Callable[..., Any]) -> Iterable[bytes]:
        server = self._server
        path = environ["PATH_INFO"].encode("latin-1").decode("utf-8", "replace")
        server.requests.append((environ["REQUEST_METHOD"], path))
        server.authorisations.append(environ.get("HTTP_AUTHORIZATION", ""))
        server.before(environ)
        if environ["REQUEST_METHOD"] == "PROPFIND":
            server.before_page(0)
        status, headers = server.answers.pop(0) if server.answers else (0, {})
        if not status and server.token is not None and environ.get("HTTP_AUTHORIZATION") != f"Bearer {server.token}":
            status, headers = 401, {"WWW-Authenticate": "Bearer"}
        status = status or next((each for start_of, each in server.refused.items() if path.startswith(start_of)), 0)
        if path in server.redirects:
            status, headers = 301, {"Location": server.redirects[path]}
        if status:
            start(f"{status} Trouble", [*headers.items(), ("Content-Length", "0")])
            return [b""]
        told: list[Any] = []
        asked = dict(environ)  # The application moves its mount out of the path.
        if server.token is not None:
            environ.pop("HTTP_AUTHORIZATION")
        pieces = self._app(environ, lambda *values: told.extend(values))
        body = b"".join(pieces)
        getattr(pieces, "close", lambda: None)()
        body = server.edit(asked, body)
        length = ("Content-Length", str(len(body)))
        start(told[0], [*((name, value) for name, value in told[1] if name.lower() != "content-length"), length])
        return [body]


class _Silent(WSGIRequestHandler):
    wbufsize = 1 << 16  # Head and body in one write: two of them wait 40 ms for each other.

    def log(self, type: str, message: str, *args: Any) -> None:
        """Nothing."""


@contextmanager
def dav_server(folder: Path, users: dict[str, str] | None = None, digest: bool = False) -> Iterator[DavServer]:
    """A server that answers on the loopback until the end of the block. `users` are name → password; None lets everybody in."""
    mapping: dict[str, Any] = {"*": True if users is None else {name: {"password": word} for name, word in users.items()}}
    app = WsgiDAVApp(
        {
            "provider_mapping": {MOUNT: FilesystemProvider(str(folder), fs_opts={"follow_symlinks": True})},
            "simple_dc": {"user_mapping": mapping},
            "http_authenticator": {"accept_basic": not digest, "accept_digest": digest, "default_to_digest": digest},
            "property_manager": False,
            "lock_storage": False,
            "dir_browser": {"enable": False},
            "logging": {"enable": False},
            "verbose": 0,
        }
    )
    made = DavServer(folder)
    served = make_server("127.0.0.1", 0, _Faulty(made, app), threaded=True, request_handler=_Silent)
    made.base = f"http://127.0.0.1:{served.server_port}"
    thread = threading.Thread(target=served.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        served.shutdown()
        thread.join()
        served.server_close()
