"""What the faithful servers of the tests share: an answer in JSON with a clock of its own, and a server for the length of a block."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class JsonHandler(BaseHTTPRequestHandler):
    """Answers in JSON and logs nothing."""

    def send_json(self, status: int, content: Any, headers: dict[str, str], clock: datetime) -> None:
        """Send an answer at the service's own time."""
        body = json.dumps(content).encode()
        self.send_response_only(status)
        for name, value in {"Date": format_datetime(clock, usegmt=True), "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@contextmanager
def serving(handler: type[JsonHandler]) -> Iterator[str]:
    """A server on the loopback until the end of the block. Gives its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
