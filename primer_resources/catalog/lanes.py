"""Lane leases: one writer a (index version, bucket), fenced by an epoch."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from sqlalchemy import Connection, case, or_, select, update

from primer_core.failures import LeaseLost
from primer_resources.catalog.database import Database
from primer_resources.catalog.schema import lanes


class Lanes:
    """Acquires, renews, checks and releases lanes; each a single conditional UPDATE."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def acquire(self, index_version: str, buckets: Iterable[str], owner: str, lease: timedelta) -> dict[str, int]:
        """Take the lanes that are free, expired or already the owner's; the rest are left out. Returns bucket → epoch.

        The epoch grows with every change of hands and stays while the same owner comes back in time.
        """
        now = self._db.now()
        still_mine = (lanes.c.owner == owner) & (lanes.c.until >= now)
        statement = (
            update(lanes)
            .where(lanes.c.index_version == index_version, lanes.c.bucket.in_(list(buckets)))
            .where(or_(lanes.c.owner.is_(None), lanes.c.until < now, lanes.c.owner == owner))
            .values(owner=owner, until=now + lease, epoch=case((still_mine, lanes.c.epoch), else_=lanes.c.epoch + 1))
            .returning(lanes.c.bucket, lanes.c.epoch)
        )
        with self._db.begin() as connection:
            return {row.bucket: row.epoch for row in connection.execute(statement)}

    def buckets(self, index_version: str) -> list[str]:
        """The buckets that an index version has lanes for; none once it is dropped."""
        with self._db.read() as connection:
            mine = select(lanes.c.bucket).where(lanes.c.index_version == index_version)
            return list(connection.execute(mine.order_by(lanes.c.bucket)).scalars())

    def renew(self, owner: str, lease: timedelta) -> int:
        """Hold the owner's lanes for another lease. Returns how many it still holds."""
        now = self._db.now()
        statement = update(lanes).where(lanes.c.owner == owner, lanes.c.until >= now).values(until=now + lease)
        with self._db.begin() as connection:
            return connection.execute(statement).rowcount

    def release(self, owner: str) -> None:
        """Give the owner's lanes back."""
        with self._db.begin() as connection:
            connection.execute(update(lanes).where(lanes.c.owner == owner).values(owner=None, until=None))

    def check(self, connection: Connection, index_version: str, epochs: Mapping[str, int], owner: str, now: datetime) -> None:
        """Inside a transaction: lock the lanes and make sure that they are still the owner's under these epochs.

        Raises LeaseLost, which rolls the transaction back.
        """
        for bucket, epoch in sorted(epochs.items()):
            held = connection.execute(
                update(lanes)
                .where(lanes.c.index_version == index_version, lanes.c.bucket == bucket)
                .where(lanes.c.owner == owner, lanes.c.epoch == epoch, lanes.c.until >= now)
                .values(epoch=epoch)
            )
            if held.rowcount != 1:
                raise LeaseLost(f"lane {index_version}/{bucket}: {owner} no longer holds epoch {epoch}")
