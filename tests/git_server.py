"""A repository over git's smart HTTP on the loopback, for those who bring the token, and faults on demand."""

import base64
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from dulwich.server import DictBackend
from dulwich.web import make_wsgi_chain

from tests.git_history import HistoryRepo


@dataclass
class GitHost:
    """Where the repository is, the token that it takes (None: anybody may read), and statuses given to the next requests."""

    url: str = ""
    token: str | None = None
    answers: list[tuple[int, dict[str, str]]] = field(default_factory=list)


class _Handler(WSGIRequestHandler):
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


class _Server(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True


@contextmanager
def git_server(repo: HistoryRepo, token: str | None = None) -> Iterator[GitHost]:
    """The repository as `wiki.git` until the end of the block."""
    host = GitHost(token=token)
    backend: Any = {"/wiki.git": repo.repo}
    inner = make_wsgi_chain(DictBackend(backend))

    def guarded(environ: Any, start_response: Any) -> Any:
        if host.answers:
            status, headers = host.answers.pop(0)
            start_response(f"{status} Trouble", [("Content-Length", "0"), *headers.items()])
            return [b""]
        wanted = None if host.token is None else "Basic " + base64.b64encode(f"token:{host.token}".encode()).decode()
        if wanted is not None and environ.get("HTTP_AUTHORIZATION") != wanted:
            start_response("401 Unauthorized", [("WWW-Authenticate", "Basic"), ("Content-Length", "0")])
            return [b""]
        return inner(environ, start_response)

    with make_server("127.0.0.1", 0, guarded, server_class=_Server, handler_class=_Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        host.url = f"http://127.0.0.1:{server.server_port}/wiki.git"
        try:
            yield host
        finally:
            server.shutdown()
            thread.join()
