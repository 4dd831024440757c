"""Signatures of what is sent over HTTP: HMAC-SHA256 over the time and the body, compared in constant time."""

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime, timedelta

TOLERANCE = timedelta(minutes=5)
"""How far the time of a signed request may lie from now: an older one may be a replay."""
MOST_SIGNATURES = 8
"""Signatures in one header: two while a secret is changed, a few more for a batch of several sources."""


def sign(secret: str, at: int, body: bytes) -> str:
    """The signature, lower-case hex, of a body sent at `at` (seconds since the epoch): HMAC-SHA256 over "AT." and the body."""
    return hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()


def read_header(header: str, now: datetime) -> tuple[int, tuple[str, ...]]:
    """(time, signatures) of X-Primer-Signature. Raises ValueError for another form, or a time too far from now."""
    pairs = [pair.strip().partition("=") for pair in header.split(",")]
    times = [value for name, _, value in pairs if name == "t"]
    signatures = tuple(value for name, _, value in pairs if name == "v1")
    if len(times) != 1 or not (times[0].isascii() and times[0].isdigit()) or len(times[0]) > 12 or not signatures:
        raise ValueError("X-Primer-Signature is not of the form t=SECONDS,v1=HEX")
    if len(signatures) > MOST_SIGNATURES:
        raise ValueError(f"X-Primer-Signature has more than {MOST_SIGNATURES} signatures")
    at = int(times[0])
    if abs(now.timestamp() - at) > TOLERANCE.total_seconds():
        raise ValueError(f"X-Primer-Signature is of another time than now, by more than {TOLERANCE.total_seconds():.0f} s; see the clock")
    return at, signatures


def is_signed(secret: str, at: int, body: bytes, signatures: tuple[str, ...]) -> bool:
    """Whether any of the signatures is that of the secret; how long it takes does not tell how near one came."""
    wanted = sign(secret, at, body).encode()
    return any([hmac.compare_digest(wanted, given.encode("utf-8", "replace")) for given in signatures])  # noqa: C419 - all are compared


def is_signed_by_host(secret: str, headers: Mapping[str, str], body: bytes) -> bool:
    """Whether a service's own webhook is signed: GitHub's and Gitea's X-Hub-Signature-256, GitLab's token, or MinIO's bearer token.

    `headers` by lower-case name.
    """
    hub = headers.get("x-hub-signature-256")
    if hub is not None:
        wanted = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        return hmac.compare_digest(wanted.encode(), hub.encode("utf-8", "replace"))
    token = headers.get("x-gitlab-token")
    if token is None:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        token = given if scheme.lower() == "bearer" else None
    return bool(secret) and token is not None and hmac.compare_digest(secret.encode(), token.encode("utf-8", "replace"))
