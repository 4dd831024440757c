"""A server between a client and a real one that counts the bytes that it passes on, and may spoil some."""

import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

PIECE = 1 << 16


@dataclass(slots=True)
class Traffic:
    """Bytes that a client sent and received, whatever protocol they are of."""

    sent: int = 0
    received: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, sent: int = 0, received: int = 0) -> None:
        """Count some more."""
        with self._lock:
            self.sent += sent
            self.received += received

    def forget(self) -> None:
        """Begin at nothing again."""
        self.sent = self.received = 0


@contextmanager
def counting_proxy(url: str, traffic: Traffic, spoil: tuple[bytes, bytes] = (b"", b"")) -> Iterator[str]:
    """The address under which the server at `url` answers too, with all bytes counted before they are passed on. Where a client sends the
    first of `spoil`, the server gets the second."""
    host, port = urlsplit(url).hostname, urlsplit(url).port

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            def received(piece: bytes) -> bytes:
                traffic.add(received=len(piece))
                return piece

            def sent(piece: bytes) -> bytes:
                traffic.add(sent=len(piece))
                return piece.replace(*spoil) if spoil[0] else piece

            with socket.create_connection((host, port)) as server:
                back = threading.Thread(target=_pump, args=(server, self.request, received), daemon=True)
                back.start()
                _pump(self.request, server, sent)
                back.join()

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        block_on_close = False

    with Server(("127.0.0.1", 0), Handler) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{proxy.server_address[1]}"
        proxy.shutdown()
        thread.join()


def _pump(given: socket.socket, taken: socket.socket, pass_on: Callable[[bytes], bytes]) -> None:
    """Until one side closes: then the other is told."""
    with suppress(OSError):
        while piece := given.recv(PIECE):
            taken.sendall(pass_on(piece))
    with suppress(OSError):
        taken.shutdown(socket.SHUT_WR)
