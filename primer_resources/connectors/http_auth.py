"""What a request to an HTTP service is signed with: a token, or a user and a password."""

from collections.abc import Generator

import httpx2

_Flow = Generator[httpx2.Request, httpx2.Response, None]


class BearerAuth(httpx2.Auth):
    """A token in the Authorization header."""

    def __init__(self, token: str) -> None:
        self._value = f"Bearer {token}"

    def auth_flow(self, request: httpx2.Request) -> _Flow:
        """Send it with the request."""
        request.headers["Authorization"] = self._value
        yield request


class PasswordAuth(httpx2.Auth):
    """A user and a password, as Digest where the service asks for that and as Basic otherwise.

    Over plain HTTP the service is asked first, so that a password that Digest would have kept secret is not sent. A service that does
    not ask gets it all the same, since it may show a stranger less than it shows this user.
    """

    def __init__(self, user: str, password: str) -> None:
        self._basic, self._digest = httpx2.BasicAuth(user, password), httpx2.DigestAuth(user, password)
        self._chosen: httpx2.Auth | None = None

    def auth_flow(self, request: httpx2.Request) -> _Flow:
        """Choose at the first request, and sign."""
        if self._chosen is None:
            first = self._basic.auth_flow(request) if request.url.scheme == "https" else iter((request,))
            response = yield next(first)
            offered = response.headers.get_list("WWW-Authenticate") if response.status_code == httpx2.codes.UNAUTHORIZED else []
            self._chosen = self._digest if any(each.lower().lstrip().startswith("digest") for each in offered) else self._basic
            if self._chosen is self._basic and request.url.scheme == "https":
                return
        yield from self._chosen.auth_flow(request)


def auth_of(secret: str) -> httpx2.Auth:
    """USER:PASSWORD as such, anything else as a token."""
    user, colon, password = secret.partition(":")
    return PasswordAuth(user, password) if colon else BearerAuth(secret)
