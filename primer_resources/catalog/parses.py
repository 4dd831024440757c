"""What parsing gave, a row a (content, parser version): a content that is there is never parsed again."""

from collections.abc import Collection, Mapping

from sqlalchemy import Connection, select, update

from primer_core.conservation import Conservation
from primer_core.lanes import Lane, SlowWork
from primer_resources.catalog.database import Database
from primer_resources.catalog.generations import slices
from primer_resources.catalog.schema import contents, documents, parsed
from primer_resources.catalog.upsert import insert_or_update


class Parses:
    """Records and finds parses."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def known(self, connection: Connection, wanted: Mapping[str, str]) -> set[str]:
        """Inside a transaction: which contents have the output of the version wanted (content_hash → output version)."""
        found: set[str] = set()
        for part in slices(sorted(wanted)):
            statement = select(parsed.c.content_hash, parsed.c.parser_version)
            rows = connection.execute(statement.where(parsed.c.content_hash.in_(part), parsed.c.reason.is_(None)))
            found |= {row.content_hash for row in rows if row.parser_version == wanted[row.content_hash]}
        return found

    def record(
        self,
        connection: Connection,
        version: str,
        content_hash: str,
        elements: int | None,
        pages: int | None,
        reason: str | None,
        kept: Conservation | None = None,
    ) -> None:
        """Inside a transaction: what came of parsing a content, as an output version: its numbers and how much of its text was kept, or
        the reason it failed."""
        row = {
            "content_hash": content_hash,
            "parser_version": version,
            "elements": elements,
            "pages": pages,
            "reason": reason,
            "text_kept": None if kept is None else kept.share,
            "losses": None if kept is None else dict(kept.losses),
        }
        connection.execute(insert_or_update(self._db, parsed, ("elements", "pages", "reason", "text_kept", "losses")), row)

    def leave_to_slow_lane(self, connection: Connection, content_hash: str, work: SlowWork) -> None:
        """Inside a transaction: the content is parsed in the slow lane from now on."""
        values = {"lane": Lane.SLOW, "pages": work.pages}
        connection.execute(update(contents).where(contents.c.content_hash == content_hash).values(**values))

    def lanes(self, hashes: Collection[str]) -> dict[str, Lane]:
        """content_hash → lane of stored contents."""
        found: dict[str, Lane] = {}
        with self._db.read() as connection:
            for part in slices(sorted(hashes)):
                rows = connection.execute(select(contents.c.content_hash, contents.c.lane).where(contents.c.content_hash.in_(part)))
                found.update({row.content_hash: Lane(row.lane) for row in rows})
        return found

    def pages(self, content_hash: str) -> int | None:
        """How many pages a content was counted to have; None where nobody has counted."""
        with self._db.read() as connection:
            found: int | None = connection.execute(select(contents.c.pages).where(contents.c.content_hash == content_hash)).scalar_one()
            return found

    def titles(self, doc_ids: Collection[str]) -> dict[str, str]:
        """doc_id → title (a file name on a drive), which a parser needs where bytes cannot tell the format."""
        with self._db.read() as connection:
            rows = connection.execute(select(documents.c.doc_id, documents.c.title).where(documents.c.doc_id.in_(sorted(doc_ids))))
            return {row.doc_id: row.title for row in rows}
