"""Which index version searches are answered from: the checks of a version, the swap of the alias, the way back, and what is dropped.

The swap is the last write of building a version and one transaction, which reads all that it rests on itself: a check that gates a run of
its own says nothing to a swap that somebody makes alone.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, and_, delete, exists, func, select, update

from primer_core.backfills import BackfillState
from primer_core.failures import PrimerError
from primer_core.index_versions import REQUIRED, CheckResult, Standing, VersionState, refusals
from primer_core.outcomes import SUCCESSES, Outcome
from primer_resources.catalog.backfills import Backfills
from primer_resources.catalog.database import Database
from primer_resources.catalog.deployments import LIVE_ALIAS, LIVE_VERSION, Deployments, IndexVersion
from primer_resources.catalog.generations import lock_documents, slices
from primer_resources.catalog.job_order import LIVE, is_of_inactive_tenant
from primer_resources.catalog.ledger import Ledger
from primer_resources.catalog.schema import (
    aliases,
    chunks,
    documents,
    index_state,
    index_versions,
    intents,
    jobs,
    lanes,
    ledger,
    purges_due,
)
from primer_resources.catalog.schema_versions import backfill_buckets, backfills, version_checks
from primer_resources.catalog.upsert import insert_or_update

PAGE = 500
DROPPED_A_BATCH = 5_000
"""Rows of a retired version that go in one transaction."""
MISSING_SHOWN = 20


_DROPPED: tuple[tuple[Table, ColumnElement[Any]], ...] = (
    (jobs, jobs.c.job_id),
    (chunks, chunks.c.chunk_id),
    (intents, intents.c.row_id),
    (purges_due, purges_due.c.row_id),
    (index_state, index_state.c.doc_id),
    (ledger, ledger.c.doc_id),
    (version_checks, version_checks.c.name),
)


class PromotionRefused(PrimerError):
    """The version is not to become the live one, for the reasons that it says."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Documents of a version against those of the live one, as the ledger has them: how many stand in each; how many that stand in the
    live one do not stand here in the same version (`missing`, with the first few); and how many stand here alone. Left out are those with
    work under way, and those whose newest version died in the live one: an older one stands there, which nobody can make again."""

    live: int
    here: int
    missing: int
    sample: tuple[str, ...]
    more: int


class Promotions:
    """Keeps checks, swaps the alias, and takes the rows of retired versions away."""

    def __init__(self, database: Database, deployments: Deployments, backfills_: Backfills, book: Ledger) -> None:
        self._db = database
        self._deployments, self._backfills, self._ledger = deployments, backfills_, book

    def keep(self, index_version: str, results: Iterable[CheckResult]) -> None:
        """Keep the newest results of a version's checks."""
        rows = [
            {
                "index_version": index_version,
                "name": result.name,
                "passed": result.passed,
                "words": result.words,
                "figures": dict(result.figures),
                "measured_at": result.measured_at,
            }
            for result in results
        ]
        if rows:
            columns = ("passed", "words", "figures", "measured_at")
            with self._db.begin() as connection:
                connection.execute(insert_or_update(self._db, version_checks, columns), rows)

    def results(self, index_version: str) -> list[CheckResult]:
        """The newest result of each check of a version, by name."""
        with self._db.read() as connection:
            return self._results(connection, index_version)

    def _results(self, connection: Connection, index_version: str) -> list[CheckResult]:
        mine = select(version_checks).where(version_checks.c.index_version == index_version).order_by(version_checks.c.name)
        return [CheckResult(row.name, row.passed, row.words, row.figures, row.measured_at) for row in connection.execute(mine)]

    def agreement(self, index_version: str, live: str) -> Agreement:
        """Compare the documents of a version with those of the live one: one pass over both parts of the ledger."""
        here, there = ledger.alias("here"), ledger.alias("there")
        stands_here = and_(here.c.index_version == index_version, here.c.indexed_version.is_not(None))
        stands_there = and_(there.c.index_version == live, there.c.indexed_version.is_not(None))
        same = exists().where(stands_here, here.c.doc_id == there.c.doc_id, here.c.indexed_version == there.c.indexed_version)
        alone = exists().where(stands_there, there.c.doc_id == here.c.doc_id)
        busy = exists().where(jobs.c.doc_id == there.c.doc_id, LIVE).correlate(there)
        missing = and_(stands_there, there.c.outcome != Outcome.DEAD, ~same, ~busy)
        with self._db.read() as connection:
            counts = [
                connection.execute(select(func.count()).select_from(table).where(which)).scalar_one()
                for table, which in ((there, stands_there), (here, stands_here), (there, missing), (here, and_(stands_here, ~alone)))
            ]
            sample = connection.execute(select(there.c.doc_id).where(missing).order_by(there.c.doc_id).limit(MISSING_SHOWN)).scalars()
            return Agreement(counts[0], counts[1], counts[2], tuple(sample), counts[3])

    def standing(self, index_version: str) -> Standing:
        """What a promotion of a version would rest on now."""
        with self._db.read() as connection:
            return self._standing(connection, index_version)

    def _standing(self, connection: Connection, index_version: str) -> Standing:
        version = {each.name: each for each in self._deployments.versions_in(connection)}[index_version]
        backfill = self._backfills.newest(connection, index_version)
        counts = func.coalesce(jobs.c.changed_at, jobs.c.created_at)
        waits = and_(jobs.c.index_version == index_version, LIVE, ~is_of_inactive_tenant())
        oldest = connection.execute(select(func.min(counts, type_=jobs.c.created_at.type)).where(waits)).scalar_one()
        is_filled = backfill is not None and backfill.state is BackfillState.FINISHED
        return Standing(
            index_version,
            version.state,
            backfill.ended_at if backfill is not None and is_filled else None,
            oldest,
            self._results(connection, index_version),
        )

    def promote(self, index_version: str, lag: timedelta, retire_after: timedelta, required: Sequence[str] = REQUIRED) -> IndexVersion:
        """Make a version the live one; the one before is written to for `retire_after` more. Returns the version that was live before.

        Raises PromotionRefused, with every reason, where a check is missing or failed, where the backfill is not finished, and where a
        change has waited longer than `lag` for the version.
        """
        self._deployments.version(index_version)
        now = self._db.now()
        with self._db.begin() as connection:
            self._lock(connection)
            why_not = refusals(self._standing(connection, index_version), required, lag, now)
            if why_not:
                raise PromotionRefused(f"index version {index_version} does not become the live one: {'; '.join(why_not)}")
            before = connection.execute(LIVE_VERSION).scalar_one()
            self._set(connection, before, VersionState.RETIRING, now + retire_after)
            self._set(connection, index_version, VersionState.LIVE, None)
            connection.execute(update(aliases).where(aliases.c.alias == LIVE_ALIAS).values(index_version=index_version))
        self._show_live(before, index_version)
        return self._deployments.version(before)

    def rollback(self, to: str | None = None) -> IndexVersion:
        """Go back to the version that was live before, or to an earlier one that still stands: it was written to all the time. Returns the
        one that is left, which is being built again. Raises PrimerError where there is none to go back to."""
        with self._db.begin() as connection:
            self._lock(connection)
            left = connection.execute(LIVE_VERSION).scalar_one()
            retiring = and_(index_versions.c.state == VersionState.RETIRING, index_versions.c.retire_at > self._db.now())
            if to is not None:
                retiring = and_(retiring, index_versions.c.name == to)
            newest = select(index_versions.c.name).where(retiring).order_by(index_versions.c.retire_at.desc()).limit(1)
            before = connection.execute(newest).scalar_one_or_none()
            if before is None:
                raise PrimerError(
                    f"there is no version to go back to{'' if to is None else f' called {to}'}: {left} is live, and none that was live "
                    "before still stands"
                )
            self._set(connection, left, VersionState.BUILDING, None)
            self._set(connection, before, VersionState.LIVE, None)
            connection.execute(update(aliases).where(aliases.c.alias == LIVE_ALIAS).values(index_version=before))
        self._show_live(left, before)
        return self._deployments.version(left)

    def retire(self, index_version: str) -> None:
        """Give up a version that is not the live one: it is dropped when the next look at retired versions comes.

        Raises PrimerError for the live one.
        """
        self._deployments.version(index_version)
        with self._db.begin() as connection:
            self._lock(connection)
            if connection.execute(LIVE_VERSION).scalar_one_or_none() == index_version:
                raise PrimerError(f"index version {index_version} is the live one; promote another, or roll back, before it is retired")
            open_ = and_(index_versions.c.name == index_version, index_versions.c.state != VersionState.RETIRED)
            values = {"state": VersionState.RETIRING.value, "retire_at": self._db.now()}
            connection.execute(update(index_versions).where(open_).values(**values))
            mine = and_(backfills.c.index_version == index_version, backfills.c.ended_at.is_(None))
            connection.execute(update(backfills).where(mine).values(state=BackfillState.CANCELLED, ended_at=self._db.now()))

    def close_due(self) -> list[str]:
        """Close the versions whose time is over: nothing is written to them any more. Returns all closed versions, by name; what is left
        of them is to be dropped."""
        now = self._db.now()
        with self._db.begin() as connection:
            self._deployments.lock_versions(connection)
            due = and_(index_versions.c.state == VersionState.RETIRING, index_versions.c.retire_at <= now)
            connection.execute(update(index_versions).where(due).values(state=VersionState.RETIRED))
            closed = select(index_versions.c.name).where(index_versions.c.state == VersionState.RETIRED)
            return list(connection.execute(closed.order_by(index_versions.c.name)).scalars())

    def drop_rows(self, index_version: str) -> Iterator[int]:
        """Delete what the catalog knows of a closed version, a batch a transaction; its name and recipe stay. Yields how many rows went.

        Batches go by key, so that each reads about as many rows as it deletes.
        """
        for table, key in _DROPPED:
            after: Any = 0 if key is jobs.c.job_id else ""
            mine = table.c.index_version == index_version
            while True:
                with self._db.begin() as connection:
                    page = select(key).where(mine, key > after).order_by(key).limit(DROPPED_A_BATCH)
                    keys = list(connection.execute(page).scalars())
                    for part in slices(keys):
                        connection.execute(delete(table).where(mine, key.in_(part)))
                if keys:
                    after = keys[-1]
                    yield len(keys)
                if len(keys) < DROPPED_A_BATCH:
                    break
        with self._db.begin() as connection:
            ids = select(backfills.c.backfill_id).where(backfills.c.index_version == index_version).scalar_subquery()
            connection.execute(delete(backfill_buckets).where(backfill_buckets.c.backfill_id.in_(ids)))
            connection.execute(delete(backfills).where(backfills.c.index_version == index_version))
            connection.execute(delete(lanes).where(lanes.c.index_version == index_version))

    @staticmethod
    def _lock(connection: Connection) -> None:
        """Two swaps come one after the other. Rows that refer to a version are written meanwhile: their keys stay."""
        connection.execute(select(index_versions.c.name).order_by(index_versions.c.name).with_for_update(key_share=True)).all()

    @staticmethod
    def _set(connection: Connection, name: str, state: VersionState, retire_at: object) -> None:
        connection.execute(update(index_versions).where(index_versions.c.name == name).values(state=state, retire_at=retire_at))

    def _show_live(self, *versions: str) -> None:
        """A document's row shows how it stands in the live version: those whose end is another one there are put right, in pages. What the
        alias says holds already; a crash here leaves only what `primer status` counts behind, and the next end of the document mends it."""
        with self._db.read() as connection:
            live = connection.execute(LIVE_VERSION).scalar_one()
        for version in versions:
            after = ""
            while page := self._ledger.with_outcome(Outcome.DEAD, version, after=after, limit=PAGE):
                after = page[-1].doc_id
                self._put_right([entry.doc_id for entry in page], live)

    def _put_right(self, doc_ids: Sequence[str], live: str) -> None:
        with self._db.begin() as connection:
            lock_documents(connection, doc_ids)
            entries = self._ledger.entries(connection, doc_ids, live)
            busy = select(jobs.c.doc_id).where(jobs.c.doc_id.in_(doc_ids), jobs.c.index_version == live, LIVE)
            under_way = set(connection.execute(busy).scalars())
            for doc_id, entry in sorted(entries.items()):
                if doc_id in under_way:
                    continue
                is_dead = entry.outcome is Outcome.DEAD
                if not is_dead and entry.outcome not in SUCCESSES:
                    continue
                present = and_(documents.c.doc_id == doc_id, documents.c.source_version == entry.source_version)
                values = {"status": "dead_letter" if is_dead else "indexed", "reason": entry.reason if is_dead else None}
                connection.execute(update(documents).where(present, documents.c.deleted_at.is_(None)).values(**values))
