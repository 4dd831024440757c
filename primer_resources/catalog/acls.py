"""ACL rows: a scope of a source and the groups that may read there. Group changes are one-row updates; index rows carry only ids."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, delete, insert, select

from primer_resources.catalog.database import Database
from primer_resources.catalog.schema import acl_groups, acls
from primer_resources.catalog.sources import Source
from primer_resources.catalog.upsert import insert_or_update

TOLD_SCOPE = "/documents/"
"""What the scope of an ACL that an event told begins with, its doc_id behind it. No place of a source begins with a slash."""


@dataclass(frozen=True, slots=True)
class AclRow:
    """Who may read under a scope. An empty list is nobody; `readable` False means that nobody knows."""

    acl_id: str
    scope: str
    allow_groups: tuple[str, ...]
    readable: bool
    error: str


class Acls:
    """Keeps ACL rows and finds the ids that a person's groups open."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def of_source(self, source_id: str) -> dict[str, AclRow]:
        """acl_id → row, of one source's own rules; what events told of single documents is not among them."""
        statement = select(acls).where(acls.c.source_id == source_id, ~acls.c.scope.startswith(TOLD_SCOPE, autoescape=True))
        with self._db.read() as connection:
            return {
                row.acl_id: AclRow(row.acl_id, row.scope, tuple(row.allow_groups), row.readable, row.error)
                for row in connection.execute(statement)
            }

    def put(self, connection: Connection, source: Source, acl: AclRow, now: datetime) -> None:
        """Inside a transaction: set a scope's groups."""
        row = {
            "acl_id": acl.acl_id,
            "tenant_id": source.tenant_id,
            "source_id": source.source_id,
            "scope": acl.scope,
            "allow_groups": list(acl.allow_groups),
            "readable": acl.readable,
            "error": acl.error,
            "updated_at": now,
        }
        connection.execute(insert_or_update(self._db, acls, ("allow_groups", "readable", "error", "updated_at")), row)
        connection.execute(delete(acl_groups).where(acl_groups.c.acl_id == acl.acl_id))
        if acl.allow_groups:
            connection.execute(
                insert(acl_groups),
                [{"tenant_id": source.tenant_id, "group_name": group, "acl_id": acl.acl_id} for group in acl.allow_groups],
            )

    def open_to(self, tenant_id: str, groups: Collection[str]) -> frozenset[str]:
        """The ACL ids that any of the groups opens. No groups open nothing."""
        statement = select(acl_groups.c.acl_id).where(acl_groups.c.tenant_id == tenant_id, acl_groups.c.group_name.in_(sorted(groups)))
        with self._db.read() as connection:
            return frozenset(connection.execute(statement).scalars())
