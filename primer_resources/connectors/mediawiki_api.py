"""MediaWiki's action API (api.php) over HTTP: signing in, the errors that it tells with status 200, and answers in several parts.

| error in the answer | what happens |
|---|---|
| maxlag, ratelimited | the time that it names is waited, within the quota of the sync |
| internal_api_error_…, no JSON | tried again; then Transient |
| assertuserfailed, an OAuth token that is not taken | signed in anew, once; then an error that names the reference |
| any other | Refused, with the HTTP status that it amounts to |
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any

import httpx2

from primer_core.failures import SystemFault, Transient
from primer_resources.connectors.http_auth import BearerAuth
from primer_resources.connectors.rest import read_json
from primer_resources.connectors.service import Call, Failed, Refused, Service, Throttled, time_to_wait

MAXLAG_S = 5
"""Seconds that the wiki's replicas may be behind before it asks to come back later; what its makers ask of robots."""
_AMOUNTS_TO = {
    "assertuserfailed": 401, "notloggedin": 401, "badtoken": 401, "nosuchrevid": 404, "nosuchpageid": 404, "missingtitle": 404,
    "readapidenied": 403, "permissiondenied": 403, "blocked": 403,
}  # fmt: skip
_ALWAYS: Mapping[str, str | int] = {"format": "json", "formatversion": 2}

Answer = Mapping[str, Any]


class MediaWikiApi:
    """One wiki's API. The secret is that of a bot password, USER@BOT:PASSWORD, or an OAuth 2 access token."""

    def __init__(self, url: str, credentials_ref: str | None, quota: timedelta, sleep: Callable[[float], None] = time.sleep) -> None:
        self.url = url
        self._service = Service(url, credentials_ref, quota, sleep, self._sign_in)
        self._always: dict[str, str | int] = {**_ALWAYS, "maxlag": MAXLAG_S, "curtimestamp": 1}
        if credentials_ref is not None:
            # Without it a session that ran out would be answered as a stranger's, who may see less.
            self._always["assert"] = "user"

    def get(self, **params: str | int) -> Answer:
        """The answer to one request. Raises Deferred, Transient, Refused, or PrimerError for credentials that are refused."""
        return self._service.ask(Call("GET", "", {**self._always, **params}), _read)

    def pages(self, **params: str | int) -> Iterator[Answer]:
        """The answers to a request and to those that continue it. Raises Transient where they go round in a circle."""
        following: Mapping[str, str] = {}
        seen: set[str] = set()
        while True:
            answer = self.get(**{**params, **following})
            yield answer
            if "continue" not in answer:
                return
            following = answer["continue"]
            key = json.dumps(following, sort_keys=True)
            if key in seen:
                raise Transient(f"{self.url}: its answers go round in a circle at {key}")
            seen.add(key)

    def close(self) -> None:
        """Give the connections back."""
        self._service.close()

    def _sign_in(self, secret: str) -> httpx2.Auth | None:
        """A bot password begins a session, which cookies hold; a token signs each request."""
        user, colon, password = secret.partition(":")
        if not colon:
            return BearerAuth(secret)
        self._service.forget_cookies()
        tokens = self._service.send(Call("GET", "", {**_ALWAYS, "action": "query", "meta": "tokens", "type": "login"}), _read)
        token = str(tokens.get("query", {}).get("tokens", {}).get("logintoken", ""))
        form = {"action": "login", "format": "json", "formatversion": "2", "lgname": user, "lgpassword": password, "lgtoken": token}
        login = self._service.send(Call("POST", "", data=form), _read).get("login", {})
        result = login.get("result")
        if result == "Throttled":
            raise Throttled(float(login.get("wait", MAXLAG_S)))
        if result != "Success":
            raise Refused(401, f"{self.url} did not let the bot in ({result}: {login.get('reason', 'no reason told')})")
        return None


def _read(response: httpx2.Response) -> Answer:
    content = read_json(response)
    if not isinstance(content, dict):
        raise SystemFault(f"{response.url.copy_with(query=None)} answered with no object; see that it is MediaWiki's api.php")
    error = content.get("error")
    if error is None:
        return content
    code, info = str(error.get("code", "")), str(error.get("info", ""))
    if code in ("maxlag", "ratelimited"):
        wait = time_to_wait(response)
        raise Throttled(MAXLAG_S if wait is None else wait)
    if code.startswith("internal_api_error"):
        raise Failed(f"{code}: {info}")
    status = 401 if code.startswith("mwoauth-") else _AMOUNTS_TO.get(code, 400)
    raise Refused(status, f"{response.url.copy_with(query=None)} answered {code}: {info}")
