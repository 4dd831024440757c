"""Replays as the command line and the HTTP API run them: pages of candidates, and the figures of all."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from primer_core.failures import PrimerError
from primer_core.replay import ReplayAction, ReplayVerdict, Selectors
from primer_core.stages import STAGES, Stage
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.deployments import IndexVersion
from primer_resources.catalog.replays import Candidate
from primer_resources.catalog.sources import Source


@dataclass(slots=True)
class Replaying:
    """One replay of a tenant's documents to a stage; a dry run unless `is_applied`. `verdicts` and `actions` count its candidates."""

    catalog: Catalog
    sources: list[Source]
    selectors: Selectors
    version: IndexVersion
    stage: Stage
    is_applied: bool
    verdicts: Counter[ReplayVerdict] = field(default_factory=Counter)
    actions: Counter[ReplayAction] = field(default_factory=Counter)

    @staticmethod
    def of(catalog: Catalog, tenant_id: str, selectors: Selectors, to_stage: str, is_applied: bool) -> "Replaying":
        """A replay that is ready to run. Raises PrimerError for selectors that say nothing, for a tenant that is inactive, and for a
        source, an index version or a stage that is not there, or is none to write to."""
        selectors.check()
        stage = next((stage for stage in STAGES if stage.name == to_stage), None)
        if stage is None:
            raise PrimerError(f"there is no stage {to_stage!r} to replay to; choose one of {', '.join(each.name for each in STAGES)}")
        catalog.tenants.require_active(tenant_id)
        sources = catalog.sources.of_tenant(tenant_id)
        if selectors.source_id is not None and selectors.source_id not in {source.source_id for source in sources}:
            known = ", ".join(source.source_id for source in sources) or "none"
            raise PrimerError(f"tenant {tenant_id} has no source {selectors.source_id!r}; its sources: {known}")
        live, named = catalog.deployments.live(), selectors.index_version
        version = live if named is None else catalog.deployments.version(named)
        if version.name not in {each.name for each in catalog.deployments.open_versions()}:
            raise PrimerError(f"index version {version.name} is retired, so nothing is written to it; name one that is open")
        return Replaying(catalog, sources, selectors, version, stage, is_applied)

    def run(self) -> Iterator[Candidate]:
        """The candidates, page by page; with `is_applied` what a page needs is done before it is told. Sources that are asked for documents
        are due at once, in full, when the last page is done or the reader goes away."""
        asked: set[str] = set()
        step = self.catalog.replays.apply if self.is_applied else self.catalog.replays.look
        try:
            for page in self.catalog.replays.pages(self.selectors, self.version, self.sources):
                candidates = step(page, self.version, self.stage, self.sources)
                self.verdicts.update(candidate.judgement.verdict for candidate in candidates)
                self.actions.update(candidate.action for candidate in candidates if candidate.action is not None)
                asked |= {candidate.source_id for candidate in candidates if candidate.action is ReplayAction.FETCH}
                yield from candidates
        finally:
            if self.is_applied and asked:
                with self.catalog.database.begin() as connection:
                    for source_id in sorted(asked):
                        self.catalog.sources.make_due(connection, source_id, in_full=True)

    def totals(self) -> dict[str, Any]:
        """The figures, as JSON."""
        return {
            "applied": self.is_applied,
            "index_version": self.version.name,
            "to_stage": self.stage.name,
            "candidates": self.verdicts.total(),
            "verdicts": {verdict.value: self.verdicts[verdict] for verdict in ReplayVerdict},
            "actions": {action.value: self.actions[action] for action in ReplayAction},
        }


def to_json(candidate: Candidate) -> dict[str, Any]:
    """A candidate, as JSON."""
    return {
        "doc_id": candidate.doc_id,
        "source_id": candidate.source_id,
        "path": candidate.path,
        "outcome": candidate.outcome.value,
        "source_version": candidate.source_version,
        "verdict": candidate.judgement.verdict.value,
        "missing": list(candidate.judgement.missing),
        "instead": candidate.judgement.instead,
        "action": None if candidate.action is None else candidate.action.value,
    }
