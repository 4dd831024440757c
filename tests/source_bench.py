"""Syncs of one source on a small catalog, without Dagster, parser, model or index: what a connector's tests need to see a whole sync."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import select

from primer_assets.source_events import EventSync
from primer_assets.source_turn import Turn, take_turn
from primer_core.failures import PrimerError
from primer_core.lanes import FastLane
from primer_core.routing import Sniffed
from primer_core.sync_report import SyncReport
from primer_resources.catalog.schema import acls, documents, jobs
from primer_resources.connectors.base import Connector
from primer_resources.containers.manifest import Member
from tests.primer_resources.catalog.world import BUCKETS, LEASE, SOURCE, TENANT, World
from tests.stores import folder_store

FAST = FastLane(25 << 20, 300)


class LineExpander:
    """Takes a file of the sniffed type `mime` apart into one member a line, "name:text"; the real one needs worker processes."""

    def __init__(self, work: Path, mime: str) -> None:
        self.work, self.mime = work, mime

    def opens(self, sniffed: Sniffed) -> bool:
        return sniffed.mime == self.mime

    def expand(self, path: Path, name: str) -> Iterator[Member]:
        for line in path.read_text().splitlines():
            inner, colon, text = line.partition(":")
            if colon and inner.startswith("member"):
                file = self.work / inner
                file.write_text(text)
                yield Member(inner, file)


@dataclass
class Bench:
    """One source in a catalog; `sync` reads it as its asset does and gives back how."""

    world: World
    folder: Path
    interval: timedelta = timedelta(days=1)
    confirms_held: bool = True
    sync_report: SyncReport = field(default_factory=SyncReport)
    mime: str = ""

    def sync(self, connector: Connector, is_due: bool = True) -> Turn:
        """One turn of the source; with `is_due` False, only for the events that wait."""
        catalog = self.world.catalog
        source = catalog.sources.get(SOURCE)
        taken = catalog.sources.acquire(SOURCE, "bench", LEASE)
        assert taken is not None
        (self.folder / "members").mkdir(parents=True, exist_ok=True)
        expander: Any = LineExpander(self.folder / "members", self.mime)
        store = folder_store(catalog, self.folder / "store").of(TENANT)
        began_at = catalog.now()
        with closing(connector):
            sync = EventSync(catalog, store, connector, expander, source, *taken, len(BUCKETS), self.confirms_held, FAST)
            self.sync_report = sync.report
            try:
                turn = take_turn(sync, began_at, self.interval, is_due)
            except PrimerError as error:
                catalog.sources.finish(SOURCE, taken[1], None, str(error))
                raise
        problems = "; ".join((*sync.hiding, *sync.problems)) or None
        catalog.sources.finish(SOURCE, taken[1], began_at, problems, turn.listed, turn.is_whole)
        return turn

    def living(self) -> dict[str, str | None]:
        """path → content hash of the living documents."""
        statement = select(documents.c.path, documents.c.content_hash).where(documents.c.deleted_at.is_(None))
        with self.world.catalog.database.read() as connection:
            rows = connection.execute(statement).all()
        found: dict[str, str | None] = {row.path: row.content_hash for row in rows}
        assert len(found) == len(rows), "two living documents under one path"
        return found

    def row(self, path: str) -> Any:
        """The row of the living document at a path."""
        statement = select(documents).where(documents.c.path == path, documents.c.deleted_at.is_(None))
        with self.world.catalog.database.read() as connection:
            return connection.execute(statement).one()

    def groups(self) -> Mapping[str, Any]:
        """scope → groups of the ACL rows."""
        with self.world.catalog.database.read() as connection:
            return {row.scope: tuple(row.allow_groups) for row in connection.execute(select(acls.c.scope, acls.c.allow_groups))}

    def job_count(self, operation: str) -> int:
        """How many jobs of an operation were ever made."""
        with self.world.catalog.database.read() as connection:
            return len(connection.execute(select(jobs.c.job_id).where(jobs.c.operation == operation)).all())
