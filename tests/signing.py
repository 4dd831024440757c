"""Signs what is sent to the API as a sender would, from the words of its documentation and not with the code that checks it."""

import hashlib
import hmac


def signature_header(secret: str, at: int, body: bytes) -> str:
    """The value of X-Primer-Signature for a body sent at `at`, seconds since the epoch."""
    digest = hmac.new(secret.encode(), b"%d.%s" % (at, body), hashlib.sha256).hexdigest()
    return f"t={at},v1={digest}"
