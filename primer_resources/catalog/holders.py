"""Which runs are alive: a beat a run while a step of it works. Leases say what is held; this says by whom something may yet be held."""

from datetime import timedelta

from sqlalchemy import delete, select

from primer_resources.catalog.database import Database
from primer_resources.catalog.schema import holders
from primer_resources.catalog.upsert import insert_or_update


class Holders:
    """Beats and finds living runs."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def beat(self, owner: str, lease: timedelta) -> None:
        """The run is alive for another lease."""
        row = {"owner": owner, "until": self._db.now() + lease}
        with self._db.begin() as connection:
            connection.execute(insert_or_update(self._db, holders, ("until",)), row)

    def end(self, owner: str) -> None:
        """The run is over before its last beat runs out."""
        with self._db.begin() as connection:
            connection.execute(delete(holders).where(holders.c.owner == owner))

    def alive(self) -> set[str]:
        """The runs whose last beat is less than a lease ago."""
        with self._db.read() as connection:
            return set(connection.execute(select(holders.c.owner).where(holders.c.until >= self._db.now())).scalars())

    def forget(self) -> int:
        """Drop the runs that are not alive any more. Returns how many."""
        now = self._db.now()
        with self._db.begin() as connection:
            return connection.execute(delete(holders).where(holders.c.until < now)).rowcount
