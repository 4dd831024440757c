"""Bearer tokens of the HTTP API: who holds one may do what its role may, in its tenant. Only a hash of the secret part is kept."""

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import select, update

from primer_core.failures import PrimerError
from primer_resources.catalog.database import Database
from primer_resources.catalog.schema import api_tokens
from primer_resources.catalog.upsert import insert_if_absent

PREFIX = "primer"
_FORM = re.compile(rf"{PREFIX}_([0-9a-f]{{16}})_([A-Za-z0-9_-]{{43}})")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


class Role(StrEnum):
    """What a token may do, each role all that the one before it may: look, ask for syncs, and change sources and dead letters."""

    READER = "reader"
    CONNECTOR = "connector"
    OPERATOR = "operator"

    def may(self, least: "Role") -> bool:
        """Whether this role is `least` or one above it."""
        order = list(Role)
        return order.index(self) >= order.index(least)


@dataclass(frozen=True, slots=True)
class ApiToken:
    """A token, without its secret."""

    token_id: str
    tenant_id: str
    name: str
    role: Role
    created_at: datetime
    revoked_at: datetime | None


_COLUMNS = [api_tokens.c[name] for name in ApiToken.__slots__]


class Tokens:
    """Makes, checks and revokes tokens."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def add(self, tenant_id: str, name: str, role: Role) -> str:
        """A new token, which is shown here and never again. Raises PrimerError for a name that is taken or not valid."""
        if not _NAME.fullmatch(name):
            raise PrimerError(f"token name {name!r} is not valid; choose letters, digits, '.', '_' and '-'")
        token_id, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
        values = {"token_id": token_id, "tenant_id": tenant_id, "name": name, "role": role.value, "secret_hash": _hash(secret)}
        with self._db.begin() as connection:
            taken = select(api_tokens.c.name).where(api_tokens.c.tenant_id == tenant_id, api_tokens.c.name == name)
            if connection.execute(taken.where(api_tokens.c.revoked_at.is_(None))).first() is not None:
                raise PrimerError(f"token {name!r} exists already; choose another name, or `primer token revoke {name}` first")
            connection.execute(insert_if_absent(self._db, api_tokens).values(**values, created_at=self._db.now()))
        return f"{PREFIX}_{token_id}_{secret}"

    def check(self, token: str) -> ApiToken | None:
        """The token, where it is one and not revoked. How long it takes does not tell how near a wrong one came."""
        match = _FORM.fullmatch(token)
        token_id, secret = (match[1], match[2]) if match is not None else ("", token)
        with self._db.read() as connection:
            row = connection.execute(select(*_COLUMNS, api_tokens.c.secret_hash).where(api_tokens.c.token_id == token_id)).one_or_none()
        wanted = _hash("") if row is None else row.secret_hash
        is_right = hmac.compare_digest(wanted, _hash(secret))
        if row is None or not is_right or row.revoked_at is not None:
            return None
        return ApiToken(row.token_id, row.tenant_id, row.name, Role(row.role), row.created_at, row.revoked_at)

    def all(self, tenant_id: str) -> list[ApiToken]:
        """The tokens of a tenant, oldest first."""
        statement = select(*_COLUMNS).where(api_tokens.c.tenant_id == tenant_id).order_by(api_tokens.c.created_at, api_tokens.c.name)
        with self._db.read() as connection:
            return [ApiToken(**{**row._mapping, "role": Role(row.role)}) for row in connection.execute(statement)]

    def revoke(self, tenant_id: str, name: str) -> None:
        """End a token. Raises PrimerError where there is none of that name."""
        living = update(api_tokens).where(api_tokens.c.tenant_id == tenant_id, api_tokens.c.name == name, api_tokens.c.revoked_at.is_(None))
        with self._db.begin() as connection:
            if connection.execute(living.values(revoked_at=self._db.now())).rowcount == 0:
                raise PrimerError(f"token {name!r} is unknown or revoked already; `primer token list` has the names")


def _hash(secret: str) -> str:
    """SHA-256: enough for 256 random bits, which nobody can guess one by one."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
