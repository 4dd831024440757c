"""Look-ups on permissions, for people who ask why: the ACL of a document, and what a group opens. They change nothing."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import and_, func, or_, select

from primer_resources.catalog.database import Database
from primer_resources.catalog.schema import acl_groups, acls, documents, index_state


@dataclass(frozen=True, slots=True)
class Scope:
    """An ACL row that stands behind a document. `path` is where the document with this ACL stands: the document's own path, or that of a
    copy with the same content. `since` is when its groups were last set."""

    acl_id: str
    scope: str
    path: str
    groups: tuple[str, ...]
    readable: bool
    since: datetime


@dataclass(frozen=True, slots=True)
class RowsFollow:
    """Whether the rows that stand for a document in an index version carry its ACL and its copies' already. The catalog decides at once,
    whatever the rows say."""

    index_version: str
    follow: bool


@dataclass(frozen=True, slots=True)
class DocumentAccess:
    """Who may see a document. `error` says why nobody may although groups are named: its permissions could not be read, or it is gone."""

    doc_id: str
    uri: str
    source: str
    path: str
    readable: bool
    error: str | None
    scopes: tuple[Scope, ...]
    rows: tuple[RowsFollow, ...]


@dataclass(frozen=True, slots=True)
class OpenedScope:
    """A scope that a group opens: how many living documents stand under it, and how many of them are hidden all the same, since their
    permissions cannot be read."""

    source: str
    scope: str
    acl_id: str
    documents: int
    hidden: int


@dataclass(frozen=True, slots=True)
class OpenedDocument:
    """A document that a group opens."""

    doc_id: str
    source: str
    path: str
    scope: str


class AccessLookup:
    """Answers who may see what."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def of_document(self, doc_id: str) -> DocumentAccess:
        """The ACL of a document, and those of its living copies, which open the same content. The document's own comes first."""
        with self._db.read() as connection:
            document = connection.execute(select(documents).where(documents.c.doc_id == doc_id)).one()
            is_copy = and_(
                documents.c.content_hash == document.content_hash,
                documents.c.canonical_doc_id == document.canonical_doc_id,
                documents.c.tenant_id == document.tenant_id,
                documents.c.deleted_at.is_(None),
            )
            rows = connection.execute(
                select(acls, documents.c.path, documents.c.doc_id)
                .join(documents, documents.c.acl_id == acls.c.acl_id)
                .where(or_(documents.c.doc_id == doc_id, is_copy))
                .order_by(documents.c.doc_id != doc_id, documents.c.path)
            ).all()
            states = connection.execute(
                select(index_state.c.index_version, index_state.c.acl_ids)
                .where(index_state.c.doc_id == document.canonical_doc_id, index_state.c.generation > 0)
                .order_by(index_state.c.index_version)
            ).all()
        scopes = tuple(Scope(r.acl_id, r.scope, r.path, tuple(r.allow_groups), r.readable, r.updated_at) for r in rows)
        wanted = {document.acl_id, *(row.acl_id for row in rows)}
        own = next((row for row in rows if row.doc_id == doc_id), None)
        error = "it is deleted" if document.deleted_at is not None else document.acl_error
        if error is None and own is None:
            error = "its permissions were never read"
        if error is None and own is not None and not own.readable:
            error = own.error
        return DocumentAccess(
            doc_id=doc_id,
            uri=document.uri,
            source=document.source_id,
            path=document.path,
            readable=error is None,
            error=error,
            scopes=scopes,
            rows=tuple(RowsFollow(state.index_version, set(state.acl_ids or ()) == wanted) for state in states),
        )

    def opened_scopes(self, tenant_id: str, group: str, source_id: str | None = None) -> list[OpenedScope]:
        """The scopes that a group opens, by source and scope; those without a document count as well."""
        hidden = func.count(documents.c.acl_error)
        living = and_(documents.c.acl_id == acls.c.acl_id, documents.c.deleted_at.is_(None))
        statement = (
            select(acls.c.source_id, acls.c.scope, acls.c.acl_id, func.count(documents.c.doc_id), hidden)
            .join(acl_groups, acl_groups.c.acl_id == acls.c.acl_id)
            .outerjoin(documents, living)
            .where(acl_groups.c.tenant_id == tenant_id, acl_groups.c.group_name == group)
            .group_by(acls.c.source_id, acls.c.scope, acls.c.acl_id)
            .order_by(acls.c.source_id, acls.c.scope, acls.c.acl_id)
        )
        if source_id is not None:
            statement = statement.where(acls.c.source_id == source_id)
        with self._db.read() as connection:
            return [OpenedScope(*row) for row in connection.execute(statement)]

    def opened_documents(self, tenant_id: str, group: str, after: str, limit: int, source_id: str | None = None) -> list[OpenedDocument]:
        """A page of the living documents that a group opens, hidden ones left out, by doc_id from the one after `after`."""
        statement = (
            select(documents.c.doc_id, documents.c.source_id, documents.c.path, acls.c.scope)
            .join(acls, acls.c.acl_id == documents.c.acl_id)
            .join(acl_groups, acl_groups.c.acl_id == acls.c.acl_id)
            .where(acl_groups.c.tenant_id == tenant_id, acl_groups.c.group_name == group, acls.c.readable)
            .where(documents.c.deleted_at.is_(None), documents.c.acl_error.is_(None), documents.c.doc_id > after)
            .order_by(documents.c.doc_id)
            .limit(limit)
        )
        if source_id is not None:
            statement = statement.where(documents.c.source_id == source_id)
        with self._db.read() as connection:
            return [OpenedDocument(*row) for row in connection.execute(statement)]
