"""What parsing gave, a row a (content, parser version): a content that is there is never parsed again."""

from collections.abc import Collection, Mapping

from sqlalchemy import Connection, and_, delete, select

from primer_core.conservation import Conservation
from primer_resources.catalog.database import Database
from primer_resources.catalog.generations import slices
from primer_resources.catalog.schema import documents
from primer_resources.catalog.schema_bodies import parsed
from primer_resources.catalog.upsert import insert_or_update


class Parses:
    """Records and finds parses."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def known(self, connection: Connection, tenant_id: str, wanted: Mapping[str, str]) -> set[str]:
        """Inside a transaction: which of a tenant's contents have the output of the version wanted (content_hash → output version)."""
        found: set[str] = set()
        for part in slices(sorted(wanted)):
            statement = select(parsed.c.content_hash, parsed.c.parser_version)
            mine = and_(parsed.c.tenant_id == tenant_id, parsed.c.content_hash.in_(part))
            rows = connection.execute(statement.where(mine, parsed.c.reason.is_(None)))
            found |= {row.content_hash for row in rows if row.parser_version == wanted[row.content_hash]}
        return found

    def record(
        self,
        connection: Connection,
        version: str,
        tenant_id: str,
        content_hash: str,
        elements: int | None,
        pages: int | None,
        reason: str | None,
        kept: Conservation | None = None,
    ) -> None:
        """Inside a transaction: what came of parsing a content, as an output version: its numbers and how much of its text was kept, or
        the reason it failed."""
        row = {
            "tenant_id": tenant_id,
            "content_hash": content_hash,
            "parser_version": version,
            "elements": elements,
            "pages": pages,
            "reason": reason,
            "text_kept": None if kept is None else kept.share,
            "losses": None if kept is None else dict(kept.losses),
        }
        connection.execute(insert_or_update(self._db, parsed, ("elements", "pages", "reason", "text_kept", "losses")), row)

    def forget(self, connection: Connection, tenant_id: str, content_hash: str, versions: Collection[str]) -> None:
        """Inside a transaction that has locked the content and knows that these outputs are not kept: it is parsed anew where one is
        needed."""
        mine = and_(parsed.c.tenant_id == tenant_id, parsed.c.content_hash == content_hash, parsed.c.parser_version.in_(sorted(versions)))
        connection.execute(delete(parsed).where(mine))

    def titles(self, doc_ids: Collection[str]) -> dict[str, str]:
        """doc_id → title (a file name on a drive), which a parser needs where bytes cannot tell the format."""
        with self._db.read() as connection:
            rows = connection.execute(select(documents.c.doc_id, documents.c.title).where(documents.c.doc_id.in_(sorted(doc_ids))))
            return {row.doc_id: row.title for row in rows}
