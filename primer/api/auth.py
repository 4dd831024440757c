"""Who asks: bearer tokens with roles for people and programs, signatures for what a source sends."""

from collections.abc import Callable, Mapping
from typing import Annotated

from fastapi import Depends, HTTPException, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from primer.api.context import Context, InContext
from primer.api.limits import seconds_to_wait
from primer_core.failures import PrimerError
from primer_core.signatures import is_signed, is_signed_by_host, read_header
from primer_resources.catalog.sources import Source
from primer_resources.catalog.tokens import ApiToken, Role
from primer_resources.credentials import read_secret

BEARER = HTTPBearer(auto_error=False, description="A token made by `primer token add NAME --role ROLE`.")
SIGNATURE = "x-primer-signature"
NOT_SIGNED = "the signature is not that of the source"
"""Said of an unknown source as well, so that nobody learns which there are."""


def holder(least: Role) -> Callable[..., ApiToken]:
    """The token of the request, if its role is `least` or above: 401 without a valid one, 403 with one that may not."""

    def check(context: InContext, given: Annotated[HTTPAuthorizationCredentials | None, Security(BEARER)]) -> ApiToken:
        token = None if given is None else context.catalog.tokens.check(given.credentials)
        if token is None:
            raise HTTPException(401, "give a valid token: Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"})
        limit_rate(context, "token", token.token_id)
        if not token.role.may(least):
            raise HTTPException(403, f"a token of role {token.role} may not do this; it needs {least}")
        check_active(context, token.tenant_id)
        return token

    return check


Reader = Annotated[ApiToken, Depends(holder(Role.READER))]
Connecting = Annotated[ApiToken, Depends(holder(Role.CONNECTOR))]
Operator = Annotated[ApiToken, Depends(holder(Role.OPERATOR))]


def check_active(context: Context, tenant_id: str) -> None:
    """Answer 403 for a tenant that is inactive, to somebody who has shown that he is of it."""
    if not context.catalog.tenants.is_active(tenant_id):
        raise HTTPException(403, f"tenant {tenant_id} is inactive; ask whoever runs Primer to activate it")


def limit_rate(context: Context, kind: str, who: str) -> None:
    """Count a request of somebody who is known; answers 429 over the limit."""
    wait = seconds_to_wait(context.limiter, context.settings.api_requests_per_minute, kind, who)
    if wait is not None:
        raise HTTPException(429, f"too many requests in a minute; wait {wait} s", {"Retry-After": str(wait)})


def signed_sources(context: Context, header: str | None, body: bytes, source_ids: set[str]) -> dict[str, Source]:
    """Which of the sources have signed the body, by name. Answers 401 where none has, 403 where the
    tenants of those that have are inactive."""
    try:
        at, signatures = read_header(header or "", context.catalog.now())
    except ValueError as error:
        raise HTTPException(401, str(error)) from error
    signed = {}
    for source_id in sorted(source_ids):
        source, secret = _secret(context, source_id)
        # A body is hashed for an unknown source, too: how long it takes does not tell which there are.
        if is_signed(secret or "", at, body, signatures) and source is not None and secret is not None:
            limit_rate(context, "source", source_id)
            signed[source_id] = source
    if not signed:
        raise HTTPException(401, NOT_SIGNED)
    inactive = context.catalog.tenants.inactive()
    active = {source_id: source for source_id, source in signed.items() if source.tenant_id not in inactive}
    if not active:
        check_active(context, min(source.tenant_id for source in signed.values()))
    return active


def webhook_source(context: Context, source_id: str, headers: Mapping[str, str], body: bytes) -> Source:
    """The source whose own service signed a webhook. Answers 401 where it did not, 403 where its tenant is inactive."""
    source, secret = _secret(context, source_id)
    is_right = is_signed_by_host(secret or "", headers, body)
    if source is None or secret is None or not is_right:
        raise HTTPException(401, NOT_SIGNED)
    limit_rate(context, "source", source_id)
    check_active(context, source.tenant_id)
    return source


def _secret(context: Context, source_id: str) -> tuple[Source | None, str | None]:
    """The source, and the secret that signs its events; None where there is none."""
    source = context.catalog.sources.find(source_id)
    if source is None or source.removed_at is not None:
        return None, None
    try:
        return source, read_secret(source.webhook_secret_ref)
    except PrimerError as error:
        raise HTTPException(503, f"the webhook secret of source {source_id} cannot be read where Primer runs") from error
