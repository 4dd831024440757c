"""What parsing gave, a row a (content, parser version): a content that is there is never parsed again."""

from collections.abc import Collection

from sqlalchemy import select

from primer_core.conservation import Conservation
from primer_resources.catalog.database import Database
from primer_resources.catalog.generations import slices
from primer_resources.catalog.schema import contents, documents, parsed
from primer_resources.catalog.upsert import insert_or_update


class Parses:
    """Records and finds parses."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def known(self, parser_version: str, hashes: Collection[str]) -> set[str]:
        """Which contents were parsed by this parser version."""
        found: set[str] = set()
        with self._db.read() as connection:
            for part in slices(sorted(hashes)):
                found |= set(
                    connection.execute(
                        select(parsed.c.content_hash)
                        .where(parsed.c.parser_version == parser_version, parsed.c.content_hash.in_(part))
                        .where(parsed.c.reason.is_(None))
                    ).scalars()
                )
        return found

    def record(
        self,
        parser_version: str,
        content_hash: str,
        elements: int | None,
        pages: int | None,
        reason: str | None,
        kept: Conservation | None = None,
    ) -> None:
        """What came of parsing a content: its numbers and how much of its text was kept, or the reason it failed."""
        row = {
            "content_hash": content_hash,
            "parser_version": parser_version,
            "elements": elements,
            "pages": pages,
            "reason": reason,
            "text_kept": None if kept is None else kept.share,
            "losses": None if kept is None else dict(kept.losses),
        }
        with self._db.begin() as connection:
            connection.execute(insert_or_update(self._db, parsed, ("elements", "pages", "reason", "text_kept", "losses")), row)

    def mimes(self, hashes: Collection[str]) -> dict[str, str]:
        """content_hash → mime of stored contents."""
        with self._db.read() as connection:
            rows = connection.execute(select(contents.c.content_hash, contents.c.mime).where(contents.c.content_hash.in_(sorted(hashes))))
            return {row.content_hash: row.mime for row in rows}

    def titles(self, doc_ids: Collection[str]) -> dict[str, str]:
        """doc_id → title (a file name on a drive), which a parser needs where bytes cannot tell the format."""
        with self._db.read() as connection:
            rows = connection.execute(select(documents.c.doc_id, documents.c.title).where(documents.c.doc_id.in_(sorted(doc_ids))))
            return {row.doc_id: row.title for row in rows}
