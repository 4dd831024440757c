"""A plan applied: the source is listed again and must say what it said; then precisely the planned items are settled."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from primer_assets.plan_making import Planner, read_source
from primer_assets.plan_reading import PlannedReading, RememberedReading
from primer_assets.source_events import EventSync
from primer_assets.source_reading import Reading
from primer_assets.source_turn import Turn
from primer_core.delete_guard import DeleteDecision
from primer_core.failures import PrimerError
from primer_core.sync_plan import PLAN_FORMAT, PlannedRead, PlanOperation, SyncPlan, plan_differences
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.sources import Listed, Source
from primer_resources.connectors.base import Connector, CursorExpired
from primer_resources.connectors.frozen import FrozenSource
from primer_resources.scratch import Scratch
from primer_resources.seen_ids import MissingIds


class PlanRefused(PrimerError):
    """The plan does not fit: the source or the deployment is no longer what it was made for. Nothing was changed."""


def check_fits(catalog: Catalog, plan: SyncPlan) -> Source:
    """The plan's source. Raises PlanRefused for a plan of another format, deployment or recipe, PrimerError where the source is gone."""
    if plan.format != PLAN_FORMAT:
        raise PlanRefused(f"the plan has format {plan.format}, and this Primer reads {PLAN_FORMAT}; make it anew with `primer plan`")
    if plan.deployment != catalog.deployments.identity():
        raise PlanRefused(f"the plan of source {plan.source} was made in another deployment; make it anew with `primer plan {plan.source}`")
    recipes = {version.name: version.recipe.digest for version in catalog.deployments.open_versions()}
    if dict(plan.recipes) != recipes:
        names = ", ".join(sorted(name for name in {*recipes, *plan.recipes} if recipes.get(name) != plan.recipes.get(name)))
        raise PlanRefused(f"the plan of source {plan.source} was made for other recipes (index versions {names}); make it anew")
    return catalog.sources.get(plan.source)


@dataclass(slots=True)
class PlannedSync(EventSync):
    """A sync that does what its plan says. It deletes nothing that the plan does not name, also where a rename could not be applied."""

    plan: SyncPlan | None = None
    not_applied: list[str] = field(default_factory=list)

    def apply(self, planner: Planner, connector: Connector) -> Turn:
        """Look again, compare, settle. Raises PlanRefused, naming what differs, before anything is changed.

        `not_applied` are the paths of items whose bytes turned out to be others: they stay as they are until the next sync.
        """
        plan = self.plan
        if plan is None:
            raise ValueError("there is no plan to apply")
        planned = {read.path: read for read in plan.reads}
        with Scratch() as work:
            frozen = FrozenSource(connector, work)
            self._compare(planner, frozen, plan, planned)
            frozen.tell_again()
            self.connector = frozen

            def open_reading(*arguments: Any) -> Reading:
                opened: Callable[..., PlannedReading] = PlannedReading
                return opened(*arguments, planned=planned, not_applied=self.not_applied)

            self.open_reading = open_reading
            decision = read_source(self, plan.why_listed)
        if self.not_applied:
            self.notices = (
                *self.notices,
                *(f"not applied, since its bytes changed after the plan was made: {path}" for path in self.not_applied),
            )
        if decision is None:
            return Turn(None, None, None)
        listed = Listed(decision.held, self.report.held, not self.problems, self.cursor)
        return Turn(plan.why_listed, decision, listed)

    def _compare(self, planner: Planner, frozen: FrozenSource, plan: SyncPlan, planned: Mapping[str, PlannedRead]) -> None:
        def open_reading(*arguments: Any) -> Reading:
            opened: Callable[..., RememberedReading] = RememberedReading
            return opened(*arguments, planned=planned)

        try:
            found = planner.look(self.source, frozen, open_reading, plan.why_listed)
        except CursorExpired as expired:
            raise PlanRefused(f"source {plan.source} cannot be read as when the plan was made: {expired}; make it anew") from expired
        told = plan_differences(plan, found)
        if told:
            raise PlanRefused(
                f"source {plan.source} has moved on since the plan was made at {plan.made_at}: {'; '.join(told)}. Make it anew"
            )

    def _settle_vanished(self, missing: MissingIds) -> DeleteDecision:
        left = set(self.not_applied)
        for step in () if self.plan is None else self.plan.steps:
            if step.operation is PlanOperation.RENAME and step.path in left:
                missing.take_out(step.doc_id)
        return EventSync._settle_vanished(self, missing)
