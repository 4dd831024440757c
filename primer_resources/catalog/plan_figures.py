"""What the deployment has measured of late, for estimates: tokens a byte of each kind of file, and how much an edit renewed."""

from collections import defaultdict

from sqlalchemy import and_, func, select

from primer_core.plan_estimate import Measured
from primer_core.stages import Operation, State
from primer_resources.catalog.database import Database
from primer_resources.catalog.generations import slices
from primer_resources.catalog.schema import chunks, documents, in_states, jobs
from primer_resources.catalog.schema_bodies import contents

NEWEST = 2_000
"""Jobs looked at: the newest, whatever the corpus."""


class PlanFigures:
    """Measures over the newest finished jobs."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def measured(self, index_version: str) -> Measured:
        """The figures of an index version."""
        ended = in_states(jobs.c.state, [State.INDEXED, State.SUPERSEDED])
        newest = (
            select(jobs.c.doc_id, jobs.c.chunks_new, jobs.c.chunks_kept, jobs.c.state, jobs.c.operation, jobs.c.index_version)
            .where(ended)
            .order_by(jobs.c.finished_at.desc())
            .limit(NEWEST)
        )
        size: dict[str, int] = defaultdict(int)
        tokens: dict[str, int] = defaultdict(int)
        with self._db.read() as connection:
            done = [
                row
                for row in connection.execute(newest)
                if (row.state, row.operation, row.index_version) == (State.INDEXED, Operation.UPSERT, index_version)
            ]
            doc_ids = sorted({row.doc_id for row in done})
            for part in slices(doc_ids):
                counted = (
                    select(chunks.c.doc_id, func.sum(chunks.c.token_count).label("tokens"))
                    .where(chunks.c.index_version == index_version, chunks.c.doc_id.in_(part))
                    .group_by(chunks.c.doc_id)
                    .subquery()
                )
                rows = connection.execute(
                    select(contents.c.mime, contents.c.size, counted.c.tokens)
                    .join(documents, and_(*(documents.c[name] == contents.c[name] for name in ("tenant_id", "content_hash"))))
                    .where(documents.c.doc_id.in_(part))
                    .join(counted, counted.c.doc_id == documents.c.doc_id)
                )
                for row in rows:
                    size[row.mime] += row.size
                    tokens[row.mime] += row.tokens
        edits = [row for row in done if row.chunks_kept]
        new, kept = sum(row.chunks_new for row in edits), sum(row.chunks_kept for row in edits)
        share = new / (new + kept) if edits else None
        return Measured(len(doc_ids), {mime: tokens[mime] / total for mime, total in size.items() if total}, share)
