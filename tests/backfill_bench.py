"""A deployment in small in which index versions are made, filled beside live edits, judged and swapped."""

from dataclasses import dataclass, field
from dataclasses import fields as fields_of
from typing import Any

from primer_core.backfills import BackfillReason
from primer_core.index_versions import VersionState
from primer_core.recipe import Recipe
from primer_resources.catalog.backfills import Backfill
from primer_resources.toolkit import Tools
from tests.copies_bench import MemoryCache, MemoryIndex, Ones
from tests.primer_resources.catalog.world import BUCKETS, REMODELLED
from tests.replay_bench import ReplayBench


@dataclass
class BackfillBench(ReplayBench):
    """Several sources, a live version, and others that are made from it."""

    second: Ones = field(default_factory=Ones)

    def open(self, name: str = "v2", recipe: Recipe = REMODELLED) -> None:
        """Seal a recipe under a name: from now on changes are written to it."""
        used: dict[str, Any] = {
            "embedder": self.second,
            "cache": MemoryCache(),
            "vectors": MemoryIndex(),
            "keywords": MemoryIndex(),
        }
        self.tools[name] = Tools(**{each.name: used.get(each.name) for each in fields_of(Tools)})
        self.versions = (*self.versions, name)
        self.catalog.deployments.add_version(name, recipe, VersionState.BUILDING, len(BUCKETS))

    def begin_backfill(
        self, name: str = "v2", reason: BackfillReason = BackfillReason.EMBEDDING_MODEL, rate: float | None = None
    ) -> Backfill:
        """Begin the backfill of a version."""
        return self.catalog.backfills.begin(self.catalog.deployments.version(name), reason, rate, BUCKETS)

    def feed(self, backfill: Backfill, most_waiting: int = 1000) -> int:
        """Take up documents of all buckets."""
        return self.catalog.backfills.feed(backfill, BUCKETS, most_waiting)

    def fill(self, backfill: Backfill) -> None:
        """Take a backfill to its end."""
        for _ in range(40):
            self.feed(backfill)
            self.drain()
            if self.catalog.backfills.finish(backfill.backfill_id):
                return
        raise AssertionError(f"the backfill does not come to an end: {self.catalog.backfills.find(backfill.backfill_id)}")
