"""Limits before anything is read or done: how large a request may be, how long it may take to come, how many may come in a minute."""

import asyncio
import json
import math
import time

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter, RateLimiter
from starlette.types import ASGIApp, Message, Receive, Scope, Send

BODY_TIME_S = 30
"""How long a body may take to come: a client that sends it byte by byte holds a place."""
UNLIMITED = ("/healthz",)
"""What a probe asks for is never refused."""


def make_limiter() -> RateLimiter:
    """Counts in this process: one API process is what a deployment has."""
    return MovingWindowRateLimiter(MemoryStorage())


def seconds_to_wait(limiter: RateLimiter, per_minute: int, kind: str, who: str) -> int | None:
    """None where one more request may come; otherwise after how many seconds it may."""
    item = RateLimitItemPerMinute(per_minute)
    if limiter.hit(item, kind, who):
        return None
    return max(1, math.ceil(limiter.get_window_stats(item, kind, who).reset_time - time.time()))


class Limits:
    """ASGI: a request that is over a limit is answered here. A body is taken in whole before the application sees it, so that a chunked
    one is measured like any other."""

    def __init__(self, app: ASGIApp, limiter: RateLimiter, per_minute: int, max_bytes: int, body_time_s: float = BODY_TIME_S) -> None:
        self.app, self.limiter, self.per_minute = app, limiter, per_minute
        self.max_bytes, self.body_time_s = max_bytes, body_time_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        who = (scope.get("client") or ("unknown", 0))[0]
        if scope["path"] not in UNLIMITED:
            wait = seconds_to_wait(self.limiter, self.per_minute, "address", who)
            if wait is not None:
                await _refuse(send, 429, f"more than {self.per_minute} requests in a minute; wait {wait} s", wait)
                return
        try:
            body = await asyncio.wait_for(self._body(scope, receive), self.body_time_s)
        except TimeoutError:
            await _refuse(send, 408, f"the body did not come within {self.body_time_s:.0f} s")
            return
        if body is None:
            await _refuse(send, 413, f"the body has more than {self.max_bytes} bytes; send it in parts")
            return
        await self.app(scope, _replay(body, receive), send)

    async def _body(self, scope: Scope, receive: Receive) -> bytes | None:
        """The body; None for one that is too large, as soon as that is known."""
        told = dict(scope["headers"]).get(b"content-length", b"")
        if told.isdigit() and int(told) > self.max_bytes:
            return None
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return bytes(body)
            body += message.get("body", b"")
            if len(body) > self.max_bytes:
                return None
            if not message.get("more_body", False):
                return bytes(body)


def _replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the body at once, and then whatever the server tells."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def _refuse(send: Send, status: int, detail: str, retry_after: int | None = None) -> None:
    headers = [(b"content-type", b"application/json")]
    if retry_after is not None:
        headers.append((b"retry-after", str(retry_after).encode()))
    if status in (408, 413):
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps({"detail": detail}).encode()})
