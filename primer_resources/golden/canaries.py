"""The canaries asked of one index version: documents with known permissions, searched for as people of single groups."""

from collections.abc import Sequence

from primer_core.golden.canaries import CanaryOutcome, CanaryReport
from primer_core.golden.misses import DEPTH
from primer_core.golden.questions import Canary
from primer_resources.golden.targets import Target, Targets
from primer_resources.reader import Reader


def check_canaries(reader: Reader, canaries: Sequence[Canary], targets: Targets, k: int = 10) -> CanaryReport:
    """Search for each canary as each of its groups alone: among the first `k` for those who must find it, among the first DEPTH for those
    who must not. A document with the same bytes is the same canary. Raises Transient where documents kept changing during a search.
    """
    there = targets.find({canary.path for canary in canaries})
    outcomes = tuple(_outcome(reader, canary, there.get(canary.path), targets, k) for canary in canaries)
    return CanaryReport(reader.version.name, outcomes)


def _outcome(reader: Reader, canary: Canary, target: Target | None, targets: Targets, k: int) -> CanaryOutcome:
    if target is None:
        return CanaryOutcome(canary, is_known=False)
    missed = tuple(group for group in canary.found_by if _seen_as(reader, canary, target, targets, group, k) is None)
    seen = []
    for group in canary.hidden_from:
        name = _seen_as(reader, canary, target, targets, group, max(DEPTH, k))
        if name is not None:
            seen.append((group, name))
    return CanaryOutcome(canary, True, missed, tuple(seen))


def _seen_as(reader: Reader, canary: Canary, target: Target, targets: Targets, group: str, depth: int) -> str | None:
    """SOURCE/path that the group finds the canary as; None where it does not find it."""
    results = reader.search(canary.text, targets.tenant_id, [group], depth)
    contents = targets.contents({result.doc_id for result in results})
    wanted = target.document.content_hash
    for result in results:
        if result.doc_id == target.document.doc_id or (wanted is not None and contents.get(result.doc_id) == wanted):
            return f"{result.source}/{result.path}"
    return None
