"""What a piece of a change feed comes to: its changes in order, folded into one outcome a document."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from primer_core.stages import Operation
from primer_resources.connectors.base import Change


@dataclass(frozen=True, slots=True)
class Standing:
    """A document that stands at the end. `origin` is the path that it had before the first of the changes, perhaps its own; "" for one
    that is new."""

    change: Change
    origin: str


@dataclass(slots=True)
class FeedPlan:
    """`standing`: path → what stands there in the end; `gone`: path before the first change → the delete that took it away."""

    standing: dict[str, Standing] = field(default_factory=dict)
    gone: dict[str, Change] = field(default_factory=dict)

    def origin_of(self, path: str) -> str:
        """Where what stands at a path now, and no change has touched there, stood before: there, unless that document moved away."""
        return "" if any(each.origin == path for each in self.standing.values()) else path


def plan_changes(changes: Iterable[Change]) -> FeedPlan:
    """Fold changes, oldest first. A document that is deleted and made again under its path is the same document; the last state counts,
    and a change of content is not lost to a later one that only moves or re-shares it."""
    plan = FeedPlan()
    for change in changes:
        if change.operation is Operation.DELETE:
            stood = plan.standing.pop(change.path, None)
            origin = plan.origin_of(change.path) if stood is None else stood.origin
            if origin:
                plan.gone[origin] = change
        else:
            _stand(plan, change)
    return plan


def _stand(plan: FeedPlan, change: Change) -> None:
    before = change.path if change.old_path is None else change.old_path
    stood = plan.standing.pop(before, None)
    origin = plan.origin_of(before) if stood is None else stood.origin
    if before != change.path:
        overwritten = plan.standing.pop(change.path, None)
        replaced = plan.origin_of(change.path) if overwritten is None else overwritten.origin
        if replaced:
            plan.gone[replaced] = replace(change, operation=Operation.DELETE, path=replaced, item=None, old_path=None)
    plan.gone.pop(origin, None)
    if stood is not None and stood.change.operation is Operation.UPSERT and change.operation is Operation.ACL:
        change = replace(change, operation=Operation.UPSERT)
    plan.standing[change.path] = Standing(change, origin)
