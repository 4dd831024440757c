"""The queue: what of the jobs waits and stands where, counted for those who launch runs and for those who watch. Changes nothing."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, func, select

from primer_core.stages import STAGES
from primer_resources.catalog.database import Database
from primer_resources.catalog.job_order import (
    ACCESS,
    LIVE,
    OPEN_VERSIONS,
    SLOW_PARSE,
    claimable,
    is_of_inactive_tenant,
    is_of_open_version,
)
from primer_resources.catalog.schema import jobs, purges_due


@dataclass(frozen=True, slots=True)
class Waiting:
    """What stands waiting in one partition: jobs that can be claimed, rows to purge, and the oldest event among the jobs."""

    index_version: str
    bucket: str
    jobs: int
    purges: int
    oldest: datetime | None


class Queue:
    """Counts jobs that are not finished. Those of a backfill that give way count only where it is said."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def waiting(self, grace: timedelta) -> list[Waiting]:
        """What a sweep can claim now, or purge after the grace, by partition: two indexed queries over what waits, whatever the corpus.
        What waits for a slow parse is not a sweep's work; of the access lane it does what it finds, and is not launched for it."""
        now = self._db.now()
        return self._with_purges(claimable(now, and_(~SLOW_PARSE, ~ACCESS, ~jobs.c.gives_way)), now - grace)

    def waiting_access(self, index_version: str | None = None, buckets: Collection[str] | None = None) -> list[Waiting]:
        """What a run of the access lane can claim now, by partition; of one index version and some buckets, where they are given."""
        which = ACCESS
        if index_version is not None:
            which = and_(which, jobs.c.index_version == index_version)
        if buckets is not None:
            which = and_(which, jobs.c.bucket.in_(list(buckets)))
        return self._waiting_jobs(which)

    def waiting_slow(self, source_ids: Collection[str] | None = None) -> list[Waiting]:
        """What a run of the slow lane can claim now of the sources (all when None), by partition."""
        which = and_(SLOW_PARSE, ~jobs.c.gives_way)
        return self._waiting_jobs(which if source_ids is None else and_(which, jobs.c.source_id.in_(list(source_ids))))

    def waiting_backfill(self, index_version: str) -> list[Waiting]:
        """What of a backfill a run can claim now in an index version, by partition, slow parses included."""
        return self._waiting_jobs(and_(jobs.c.index_version == index_version, jobs.c.gives_way))

    def oldest_live(self) -> datetime | None:
        """From when the oldest job of live work counts that could be done by now, in whichever version; None where none waits. A slow
        parse waits for its own runs, and the jobs of inactive tenants for nobody."""
        counts = func.coalesce(jobs.c.changed_at, jobs.c.created_at)
        late = and_(
            LIVE, is_of_open_version(), ~SLOW_PARSE, ~jobs.c.gives_way, jobs.c.not_before <= self._db.now(), ~is_of_inactive_tenant()
        )
        with self._db.read() as connection:
            first = select(func.min(counts, type_=jobs.c.created_at.type)).where(late)
            oldest: datetime | None = connection.execute(first).scalar_one()
        return oldest

    def _waiting_jobs(self, which: ColumnElement[bool]) -> list[Waiting]:
        with self._db.read() as connection:
            rows = connection.execute(claimable(self._db.now(), which).order_by(jobs.c.index_version, jobs.c.bucket))
            return [Waiting(row.index_version, row.bucket, row.n, 0, row.oldest) for row in rows]

    def _with_purges(self, work: Select[Any], due: datetime) -> list[Waiting]:
        rows = (
            select(purges_due.c.index_version, purges_due.c.bucket, func.count().label("n"))
            .where(purges_due.c.done_at.is_(None), purges_due.c.at <= due, purges_due.c.index_version.in_(OPEN_VERSIONS))
            .group_by(purges_due.c.index_version, purges_due.c.bucket)
        )
        with self._db.read() as connection:
            found = {(r.index_version, r.bucket): Waiting(r.index_version, r.bucket, r.n, 0, r.oldest) for r in connection.execute(work)}
            for r in connection.execute(rows):
                key = (r.index_version, r.bucket)
                job = found.get(key)
                found[key] = Waiting(*key, job.jobs if job else 0, r.n, job.oldest if job else None)
        return [found[key] for key in sorted(found)]

    def unfinished(self, source_ids: Collection[str] | None = None, with_backfill: bool = False) -> int:
        """How many jobs of the sources (all when None) are not finished yet, whoever holds them."""
        statement = select(func.count()).select_from(jobs).where(LIVE, is_of_open_version())
        if not with_backfill:
            statement = statement.where(~jobs.c.gives_way)
        if source_ids is not None:
            statement = statement.where(jobs.c.source_id.in_(list(source_ids)))
        with self._db.read() as connection:
            return connection.execute(statement).scalar_one()

    def standing(self, source_ids: Collection[str]) -> dict[str, int]:
        """stage → unfinished jobs of the sources, in the order of the stages."""
        statement = select(jobs.c.stage, func.count()).where(LIVE, is_of_open_version(), ~jobs.c.gives_way).group_by(jobs.c.stage)
        statement = statement.where(jobs.c.source_id.in_(list(source_ids)))
        with self._db.read() as connection:
            found = {row[0]: row[1] for row in connection.execute(statement)}
        return {stage.name: found[stage.name] for stage in STAGES if stage.name in found}
