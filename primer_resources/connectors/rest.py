"""A client of REST services that keeps their rules: it waits when told to, up to a quota, tries again what may pass, and takes a new
token once when the old one is refused.

| answer | what happens |
|---|---|
| 2xx | it is read, up to MOST_BYTES |
| 429, 503 or 403 with a time to wait | that time is waited, while the quota of the sync lasts; then Deferred |
| 408, 5xx, no connection, timeout | tried again after a growing pause; then Transient |
| 401 | the credentials are read anew and it is tried once more; then an error that names the reference |
| any other | Refused, with the status |
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx2
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt

from primer_core.failures import Deferred, PrimerError, SystemFault, Transient
from primer_resources.connectors.credentials import read_secret

TRIES = 4
PAUSE_S = 0.5
"""The first pause after a failure; each further one is twice as long."""
TIMEOUT_S = 30.0
MOST_BYTES = 64 << 20
"""Of one answer: a page of 100 tickets has some MB at most. A larger one is no page."""


class Refused(PrimerError):
    """The service answered and will not do it; `status` is its HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Answer:
    """The JSON of an answer, the address of the next page (None at the end), and the service's own time."""

    content: Any
    next_url: str | None
    at: datetime


class _Throttled(Exception):
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds


class _Failed(Exception):
    pass


class RestClient:
    """Asks one service, with one token and one quota of waiting."""

    def __init__(self, base_url: str, credentials_ref: str | None, quota: timedelta, sleep: Callable[[float], None] = time.sleep) -> None:
        self._base_url, self._credentials_ref, self._sleep = base_url.rstrip("/"), credentials_ref, sleep
        self._left_s = self._quota_s = quota.total_seconds()
        self._secret: str | None = None
        self._client = httpx2.Client(timeout=TIMEOUT_S, headers={"Accept": "application/json", "User-Agent": "primer"})

    def get(self, path: str, params: Mapping[str, str | int] | None = None) -> Answer:
        """Ask for a path below the base address, or for the next page that an answer named.

        Raises Deferred, Transient, Refused, or PrimerError for credentials that are refused.
        """
        url = path if "://" in path else f"{self._base_url}/{path}"
        if urlsplit(url)[:2] != urlsplit(self._base_url)[:2]:
            raise SystemFault(f"{self._base_url} names a next page on another service: {url}; it is not asked with this token")
        retrying = Retrying(
            retry=retry_if_exception_type((_Throttled, _Failed)),
            stop=stop_after_attempt(TRIES),
            wait=self._pause,
            sleep=self._sleep,
            reraise=True,
        )
        try:
            return retrying(self._authorised, url, params)
        except _Throttled as throttled:
            raise Deferred(f"{self._base_url} asks to wait {throttled.seconds:g} s once more; the next sync goes on") from throttled
        except _Failed as failed:
            raise Transient(f"{self._base_url} does not answer ({failed}); tried {TRIES} times") from failed

    def close(self) -> None:
        """Give the connections back."""
        self._client.close()

    def _pause(self, state: RetryCallState) -> float:
        """Seconds to wait before the next try. Raises Deferred where the quota does not hold them."""
        error = state.outcome.exception() if state.outcome is not None else None
        if not isinstance(error, _Throttled):
            return PAUSE_S * float(2 ** (state.attempt_number - 1))
        if error.seconds > self._left_s:
            raise Deferred(
                f"{self._base_url} asks to wait {error.seconds:g} s and {self._left_s:g} s are left of the {self._quota_s:g} s that a sync "
                "may wait; the next sync goes on, or raise throttle_quota"
            )
        self._left_s -= error.seconds
        return error.seconds

    def _authorised(self, url: str, params: Mapping[str, str | int] | None) -> Answer:
        if self._secret is None:
            self._secret = read_secret(self._credentials_ref)
        try:
            return self._ask(url, params)
        except Refused as refused:
            if refused.status != httpx2.codes.UNAUTHORIZED or self._credentials_ref is None:
                raise
        self._secret = read_secret(self._credentials_ref)
        try:
            return self._ask(url, params)
        except Refused as refused:
            if refused.status != httpx2.codes.UNAUTHORIZED:
                raise
            self._secret = None
            raise PrimerError(f"{self._base_url} refused the credentials {self._credentials_ref}; renew the token there") from refused

    def _ask(self, url: str, params: Mapping[str, str | int] | None) -> Answer:
        headers = {} if self._secret is None else {"Authorization": f"Bearer {self._secret}"}
        try:
            with self._client.stream("GET", url, params=params, headers=headers) as response:
                self._check(response)
                body = bytearray()
                for piece in response.iter_bytes():
                    body += piece
                    if len(body) > MOST_BYTES:
                        raise SystemFault(f"{url} answered with more than {MOST_BYTES} bytes; lower page_size")
                return Answer(json.loads(body), self._next(url, response), _time_of(response))
        except (httpx2.TransportError, httpx2.DecodingError) as error:
            raise _Failed(type(error).__name__) from error
        except ValueError as error:
            raise _Failed(f"its answer is no JSON: {error}") from error

    def _check(self, response: httpx2.Response) -> None:
        status = response.status_code
        if response.is_success:
            return
        wait = _time_to_wait(response)
        if status in (429, 503) or (status == httpx2.codes.FORBIDDEN and wait is not None):
            raise _Throttled(PAUSE_S if wait is None else wait) if status == 429 or wait is not None else _Failed(f"HTTP {status}")
        if status == httpx2.codes.REQUEST_TIMEOUT or status >= 500:
            raise _Failed(f"HTTP {status}")
        raise Refused(status, f"{response.url} answered {status} {response.reason_phrase}; see that `url` and the token's rights are right")

    def _next(self, url: str, response: httpx2.Response) -> str | None:
        link = response.links.get("next", {}).get("url")
        return None if link is None else urljoin(url, link)


def _time_of(response: httpx2.Response) -> datetime:
    """The service's clock. Ours where it tells no time."""
    told = response.headers.get("Date")
    try:
        moment = parsedate_to_datetime(told) if told else datetime.now(UTC)
    except ValueError:
        return datetime.now(UTC)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)  # RFC 9110: an HTTP date is always in UTC


def _time_to_wait(response: httpx2.Response) -> float | None:
    """Seconds that the service asks to wait: by Retry-After (seconds or a date) or the end of a used-up rate limit. None: it does not."""
    told = response.headers.get("Retry-After")
    if told is None:
        if response.headers.get("X-RateLimit-Remaining") != "0":
            return None
        ends = response.headers.get("X-RateLimit-Reset", "")
        return max(0.0, int(ends) - _time_of(response).timestamp()) if ends.isdigit() else None
    if told.isdigit():
        return float(told)
    try:
        return max(0.0, (parsedate_to_datetime(told) - _time_of(response)).total_seconds())
    except (ValueError, TypeError):
        return None
