"""An HTTP service asked by its rules: it waits when told to, up to a quota, tries again what may pass, follows a redirect only within
the service, and takes the secret anew once when the service refuses it.

| answer | what happens |
|---|---|
| 2xx | the caller reads it |
| 301, 302, 307, 308 to the same scheme, host and port | followed, MOST_REDIRECTS times |
| 429, 503 or 403 with a time to wait | that time is waited, while the quota of the sync lasts; then Deferred |
| 408, 5xx, no connection, timeout, an answer that breaks off | tried again after a growing pause; then Transient |
| 401 | the credentials are read anew and it is tried once more; then an error that names the reference |
| any other | Refused, with the status |
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TypeVar
from urllib.parse import SplitResult, urljoin, urlsplit

import httpx2
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt

from primer_core.failures import Deferred, PrimerError, SystemFault, Transient
from primer_resources.connectors.http_auth import BearerAuth
from primer_resources.credentials import read_secret

TRIES = 4
PAUSE_S = 0.5
"""The first pause after a failure; each further one is twice as long."""
TIMEOUT_S = 30.0
MOST_REDIRECTS = 5
_REDIRECTS = (301, 302, 307, 308)

T = TypeVar("T")


class Refused(PrimerError):
    """The service answered and will not do it; `status` is its HTTP status, or the one that its answer amounts to."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Throttled(Exception):
    """The service asks to wait so many seconds. Readers of answers raise it where the body says so and the status does not."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds


class Failed(Exception):
    """What may pass: tried again. Readers of answers raise it for one that is not whole."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request: method, address (a path is below the base address), query, headers and body."""

    method: str
    url: str
    params: Mapping[str, str | int] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None
    data: Mapping[str, str] | None = None


class Service:
    """One service, with one secret and one quota of waiting.

    `sign_in` makes of the secret what each request is signed with (None: cookies that it fetched do); it may ask the service by `send`,
    and raises Refused with status 401 for a secret that is not taken.
    """

    def __init__(
        self,
        base_url: str,
        credentials_ref: str | None,
        quota: timedelta,
        sleep: Callable[[float], None] = time.sleep,
        sign_in: Callable[[str], httpx2.Auth | None] = BearerAuth,
    ) -> None:
        self.base_url, self._credentials_ref, self._sleep, self._sign_in = base_url.rstrip("/"), credentials_ref, sleep, sign_in
        self._left_s = self._quota_s = quota.total_seconds()
        self._auth: httpx2.Auth | None = None
        self._is_signed_in = credentials_ref is None
        self._client = httpx2.Client(timeout=TIMEOUT_S, headers={"User-Agent": "primer"})

    def ask(self, call: Call, read: Callable[[httpx2.Response], T]) -> T:
        """What `read` makes of the answer, streamed. It may be called again for another try, and may raise Throttled, Failed or Refused.

        Raises Deferred, Transient, Refused, or PrimerError for credentials that are refused.
        """
        retrying = Retrying(
            retry=retry_if_exception_type((Throttled, Failed)),
            stop=stop_after_attempt(TRIES),
            wait=self._pause,
            sleep=self._sleep,
            reraise=True,
        )
        try:
            told: T = retrying(self._authorised, call, read)
        except Throttled as throttled:
            raise Deferred(f"{self.base_url} asks to wait {throttled.seconds:g} s once more; the next sync goes on") from throttled
        except Failed as failed:
            raise Transient(f"{self.base_url} does not answer ({failed}); tried {TRIES} times") from failed
        return told

    def send(self, call: Call, read: Callable[[httpx2.Response], T], auth: httpx2.Auth | None = None) -> T:
        """One request and the redirects that it leads to, without another try. For `sign_in`; all else asks."""
        url = call.url if "://" in call.url else f"{self.base_url}/{call.url}" if call.url else self.base_url
        params = call.params
        for _ in range(MOST_REDIRECTS + 1):
            self._check_ours(url)
            try:
                with self._client.stream(
                    call.method, url, params=params, headers=dict(call.headers), content=call.content, data=call.data, auth=auth
                ) as response:
                    target = response.headers.get("Location") if response.status_code in _REDIRECTS else None
                    if target is None:
                        _check(response)
                        return read(response)
            except (httpx2.TransportError, httpx2.DecodingError) as error:
                raise Failed(type(error).__name__) from error
            if origin_of(urlsplit(urljoin(url, target))) != origin_of(urlsplit(url)):
                raise Refused(response.status_code, f"{url} leads to another service, {target}, which is not asked with these credentials")
            url, params = urljoin(url, target), None
        raise Refused(508, f"{call.url} leads from one address to the next, over {MOST_REDIRECTS} times; correct the address")

    def close(self) -> None:
        """Give the connections back."""
        self._client.close()

    def forget_cookies(self) -> None:
        """Begin a new session."""
        self._client.cookies.clear()

    def _check_ours(self, url: str) -> None:
        if origin_of(urlsplit(url)) != origin_of(urlsplit(self.base_url)):
            raise SystemFault(f"{self.base_url} names a next page on another service: {url}; it is not asked with this token")

    def _pause(self, state: RetryCallState) -> float:
        """Seconds to wait before the next try. Raises Deferred where the quota does not hold them."""
        error = state.outcome.exception() if state.outcome is not None else None
        if not isinstance(error, Throttled):
            return PAUSE_S * float(2 ** (state.attempt_number - 1))
        if error.seconds > self._left_s:
            raise Deferred(
                f"{self.base_url} asks to wait {error.seconds:g} s and {self._left_s:g} s are left of the {self._quota_s:g} s that a sync "
                "may wait; the next sync goes on, or raise throttle_quota"
            )
        self._left_s -= error.seconds
        return error.seconds

    def _authorised(self, call: Call, read: Callable[[httpx2.Response], T]) -> T:
        try:
            self._sign(renew=False)
            return self.send(call, read, self._auth)
        except Refused as refused:
            if refused.status != httpx2.codes.UNAUTHORIZED or self._credentials_ref is None:
                raise
        try:
            self._sign(renew=True)
            return self.send(call, read, self._auth)
        except Refused as refused:
            if refused.status != httpx2.codes.UNAUTHORIZED:
                raise
            self._is_signed_in = False
            raise PrimerError(f"{self.base_url} refused the credentials {self._credentials_ref}; renew them there") from refused

    def _sign(self, renew: bool) -> None:
        if self._is_signed_in and not renew:
            return
        secret = read_secret(self._credentials_ref)
        self._is_signed_in = False
        self._auth = None if secret is None else self._sign_in(secret)
        self._is_signed_in = True


def origin_of(parts: SplitResult) -> tuple[str, str | None, int | None]:
    """Scheme, host and port of an address, the port also where it is the scheme's own."""
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def _check(response: httpx2.Response) -> None:
    status = response.status_code
    if response.is_success:
        return
    wait = time_to_wait(response)
    if status in (429, 503) or (status == httpx2.codes.FORBIDDEN and wait is not None):
        raise Throttled(PAUSE_S if wait is None else wait) if status == 429 or wait is not None else Failed(f"HTTP {status}")
    if status == httpx2.codes.REQUEST_TIMEOUT or status >= 500:
        raise Failed(f"HTTP {status}")
    raise Refused(status, f"{response.url} answered {status} {response.reason_phrase}; see that the address and the rights are right")


def time_of(response: httpx2.Response) -> datetime:
    """The service's clock. Ours where it tells no time."""
    told = response.headers.get("Date")
    try:
        moment = parsedate_to_datetime(told) if told else datetime.now(UTC)
    except ValueError:
        return datetime.now(UTC)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)  # RFC 9110: an HTTP date is always in UTC


def time_to_wait(response: httpx2.Response) -> float | None:
    """Seconds that the service asks to wait: by Retry-After (seconds or a date) or the end of a used-up rate limit. None: it does not."""
    told = response.headers.get("Retry-After")
    if told is None:
        if response.headers.get("X-RateLimit-Remaining") != "0":
            return None
        ends = response.headers.get("X-RateLimit-Reset", "")
        return max(0.0, int(ends) - time_of(response).timestamp()) if ends.isdigit() else None
    if told.isdigit():
        return float(told)
    try:
        return max(0.0, (parsedate_to_datetime(told) - time_of(response)).total_seconds())
    except (ValueError, TypeError):
        return None
