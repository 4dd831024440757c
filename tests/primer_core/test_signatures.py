import hashlib
import hmac
from datetime import UTC, datetime, timedelta

import pytest

from primer_core.signatures import is_signed, is_signed_by_host, read_header, sign
from tests.signing import signature_header

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
AT = int(NOW.timestamp())
BODY = b'{"events": []}'


def test_a_body_is_signed_with_its_time() -> None:
    at, signatures = read_header(signature_header("secret", AT, BODY), NOW)
    assert is_signed("secret", at, BODY, signatures)
    assert not is_signed("secret", at + 1, BODY, signatures)
    assert not is_signed("secret", at, BODY + b" ", signatures)
    assert not is_signed("another", at, BODY, signatures)
    assert not is_signed("secret", at, BODY, ("é", ""))


def test_one_of_several_signatures_is_enough() -> None:
    header = f"t={AT},v1={sign('old', AT, BODY)},v1={sign('new', AT, BODY)}"
    at, signatures = read_header(header, NOW)
    assert is_signed("new", at, BODY, signatures)


@pytest.mark.parametrize("header", ["", "v1=aa", f"t={AT}", f"t={AT},t={AT},v1=a", "t=now,v1=a", "t=²,v1=a", f"t={AT},{'v1=a,' * 9}"])
def test_a_header_of_another_form_is_refused(header: str) -> None:
    with pytest.raises(ValueError, match="X-Primer-Signature"):
        read_header(header, NOW)


@pytest.mark.parametrize("away", [timedelta(seconds=301), timedelta(seconds=-301)])
def test_a_request_of_another_time_is_refused(away: timedelta) -> None:
    with pytest.raises(ValueError, match="another time"):
        read_header(signature_header("secret", AT, BODY), NOW + away)


def test_the_webhooks_of_git_hosts() -> None:
    digest = hmac.new(b"secret", BODY, hashlib.sha256).hexdigest()
    assert is_signed_by_host("secret", {"x-hub-signature-256": f"sha256={digest}"}, BODY)
    assert not is_signed_by_host("secret", {"x-hub-signature-256": digest}, BODY)
    assert not is_signed_by_host("secret", {"x-hub-signature-256": f"sha256={digest}"}, b"other")
    assert is_signed_by_host("secret", {"x-gitlab-token": "secret"}, BODY)
    assert not is_signed_by_host("secret", {"x-gitlab-token": "secre"}, BODY)
    assert not is_signed_by_host("secret", {}, BODY)
