"""The newest look at each drive, kept so that nobody lists millions of objects to answer how drives and catalog agree."""

from sqlalchemy import select

from primer_core.coherence import DriveCoherence
from primer_resources.catalog.database import Database
from primer_resources.catalog.schema_bodies import coherence
from primer_resources.catalog.upsert import insert_or_set


class Coherence:
    """Keeps and gives the newest look at each drive."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def keep(self, look: DriveCoherence) -> None:
        """Keep a look, unless a later one is kept already."""
        row = {"tenant_id": look.tenant_id, "kind": look.kind, "checked_at": look.checked_at, "figures": look.to_json()}
        newer = insert_or_set(
            self._db,
            coherence,
            lambda given: (
                {"checked_at": given.checked_at, "figures": given.figures},
                coherence.c.checked_at <= given.checked_at,
            ),
        )
        with self._db.begin() as connection:
            connection.execute(newer.values(**row))

    def newest(self, tenant_id: str | None = None) -> list[DriveCoherence]:
        """The newest look at each drive, of one tenant or of all, by tenant, intake first; none of a drive that nobody has looked at."""
        statement = select(coherence.c.figures).order_by(coherence.c.tenant_id, coherence.c.kind)
        if tenant_id is not None:
            statement = statement.where(coherence.c.tenant_id == tenant_id)
        with self._db.read() as connection:
            return [DriveCoherence.from_json(figures) for figures in connection.execute(statement).scalars()]
