"""What is too large, too slow or too often is refused before it is read."""

from collections.abc import Iterator

import anyio
import pytest
from starlette.types import Message, Receive, Scope, Send

from primer.api.limits import Limits, make_limiter
from primer_resources.catalog.tokens import Role
from tests.primer.api.conftest import Api


@pytest.fixture
def limits(request: pytest.FixtureRequest) -> dict[str, int]:
    return {"api_max_body_mb": 1, "api_requests_per_minute": 4}


def chunks(count: int) -> Iterator[bytes]:
    for _ in range(count):
        yield b"x" * 65_536


def test_a_body_over_the_limit_is_refused_told_or_chunked(api: Api) -> None:
    assert api.client.post("/internal/events", content=b"x" * (1 << 20)).status_code != 413
    assert api.client.post("/internal/events", content=b"x" * ((1 << 20) + 1)).status_code == 413
    assert api.client.post("/internal/events", content=chunks(17)).status_code == 413


def test_an_address_that_asks_too_often_waits_and_a_probe_never_does(api: Api) -> None:
    answers = [api.request("GET", "/metrics", None) for _ in range(5)]
    assert [answer.status_code for answer in answers] == [401] * 4 + [429]
    assert 1 <= int(answers[-1].headers["Retry-After"]) <= 61
    assert api.request("GET", "/healthz", None).status_code == 200
    assert api.request("GET", "/metrics", Role.READER).status_code == 429


def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    sent: list[Message] = []

    async def never(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError("the application saw it")

    async def receive() -> Message:
        await anyio.sleep_forever()
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(message)

    async def run() -> None:
        scope = {"type": "http", "path": "/internal/events", "headers": [], "client": ("127.0.0.1", 1)}
        await Limits(never, make_limiter(), 10, 1000, body_time_s=0.05)(scope, receive, send)

    anyio.run(run)
    assert sent[0]["status"] == 408
