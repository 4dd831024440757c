"""S3: a bucket at a prefix opened, its keys read from a secret, and what its refusals look like. Connectors and drives share it."""

from dataclasses import dataclass
from datetime import timedelta

from obstore.exceptions import PermissionDeniedError, UnauthenticatedError
from obstore.store import S3Store

from primer_core.failures import PrimerError

REFUSED = ("403 Forbidden", "401 Unauthorized", "ExpiredToken", "(AccessDenied)", "(InvalidAccessKeyId)", "(SignatureDoesNotMatch)")
"""What obstore's errors hold that mean so, and boto3's, which put the code in brackets."""
NO_BUCKET = "NoSuchBucket"
LIST_PAGE = 1000
"""Keys that S3 gives a page, and takes in one delete."""
RETRIES = 4
RETRY_TIME = timedelta(seconds=60)
"""How long one request to a busy store (503, connection lost) is tried again; obstore spaces the tries by itself."""


@dataclass(frozen=True, slots=True)
class S3Keys:
    """What signs requests. Its text shows nothing of it."""

    access_key_id: str
    secret_access_key: str
    session_token: str | None = None

    def __repr__(self) -> str:
        return "S3Keys(…)"


def read_keys(secret: str | None, place: str) -> S3Keys | None:
    """The keys in a secret of the form ACCESS_KEY_ID:SECRET_ACCESS_KEY, with :SESSION_TOKEN behind it where there is one; None without a
    secret. Raises PrimerError for a secret of another form; the text does not show it."""
    if secret is None:
        return None
    parts = secret.split(":", 2)
    if len(parts) < 2 or not all(parts):
        raise PrimerError(f"the credentials of {place} are no ACCESS_KEY_ID:SECRET_ACCESS_KEY; write them like that")
    return S3Keys(*parts)


def open_bucket(
    bucket: str, prefix: str, region: str, endpoint: str, keys: S3Keys | None, is_anonymous: bool = False, sends_checksums: bool = False
) -> S3Store:
    """The bucket at its prefix ("" is all of it); `endpoint` "" is Amazon's. With `sends_checksums` the store verifies the SHA-256 of what
    it is sent. Nothing is asked of it yet."""
    given: dict[str, str] = {}
    if keys is not None:
        given = {"access_key_id": keys.access_key_id, "secret_access_key": keys.secret_access_key}
        given |= {"session_token": keys.session_token} if keys.session_token else {}
    if endpoint:
        given["endpoint"] = endpoint
    if sends_checksums:
        given["checksum_algorithm"] = "SHA256"
    return S3Store(
        bucket,
        prefix=prefix or None,
        region=region,
        skip_signature=is_anonymous,
        client_options={"allow_http": endpoint.startswith("http://")},
        retry_config={"max_retries": RETRIES, "retry_timeout": RETRY_TIME},
        **given,  # type: ignore[arg-type] # a TypedDict of many more keys
    )


def is_refused(error: Exception) -> bool:
    """Whether the store does not take the credentials. A listing reports it as a general error that spells out
    the answer."""
    told = str(error)
    return isinstance(error, (PermissionDeniedError, UnauthenticatedError)) or any(mark in told for mark in REFUSED)


def first_line(error: Exception) -> str:
    """The library's message without its dump of internals."""
    return next(iter(str(error).splitlines()), type(error).__name__)
