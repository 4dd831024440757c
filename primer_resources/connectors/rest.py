"""A client of REST services that answer JSON and name the next page in a Link header; how they are asked is in service."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urljoin

import httpx2

from primer_core.failures import SystemFault
from primer_resources.connectors.service import Call, Failed, Service, time_of

MOST_BYTES = 64 << 20
"""Of one answer: a page of 100 tickets has some MB at most. A larger one is no page."""
_JSON = {"Accept": "application/json"}


@dataclass(frozen=True, slots=True)
class Answer:
    """The JSON of an answer, the address of the next page (None at the end), and the service's own time."""

    content: Any
    next_url: str | None
    at: datetime


class RestClient:
    """Asks one service, with one token and one quota of waiting."""

    def __init__(self, base_url: str, credentials_ref: str | None, quota: timedelta, sleep: Callable[[float], None] = time.sleep) -> None:
        self._service = Service(base_url, credentials_ref, quota, sleep)

    def get(self, path: str, params: Mapping[str, str | int] | None = None) -> Answer:
        """Ask for a path below the base address, or for the next page that an answer named.

        Raises Deferred, Transient, Refused, or PrimerError for credentials that are refused.
        """
        return self._service.ask(Call("GET", path, params, _JSON), _read)

    def close(self) -> None:
        """Give the connections back."""
        self._service.close()


def read_json(response: httpx2.Response, most_bytes: int = MOST_BYTES) -> Any:
    """The JSON of an answer. Raises Failed for one that is none, SystemFault for one that is larger than any page."""
    body = bytearray()
    for piece in response.iter_bytes():
        body += piece
        if len(body) > most_bytes:
            raise SystemFault(f"{response.url} answered with more than {most_bytes} bytes; lower page_size")
    try:
        return json.loads(body)
    except ValueError as error:
        raise Failed(f"its answer is no JSON: {error}") from error


def _read(response: httpx2.Response) -> Answer:
    link = response.links.get("next", {}).get("url")
    return Answer(read_json(response), None if link is None else urljoin(str(response.url), link), time_of(response))
