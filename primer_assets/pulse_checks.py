"""Two checks that tell whether all is in step: sources that are read, and changes that reach the indexes in time. They block nothing.

`pulse_sensor` reports them, since what stands still makes no run that a check could be part of; a run or a person may make them as well.
"""

import dagster as dg

from primer_assets.indexed_documents import indexed_documents
from primer_assets.source_documents import source_documents
from primer_core.freshness import Severity, worst
from primer_core.source_health import SourceHealth
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.pulse import Pulse
from primer_resources.settings import Settings

MANY = 20
"""Sources named in a check; the rest are counted."""
_DAGSTER = {
    Severity.OK: dg.AssetCheckSeverity.WARN,
    Severity.WARN: dg.AssetCheckSeverity.WARN,
    Severity.ERROR: dg.AssetCheckSeverity.ERROR,
}


def take_pulse(catalog: Catalog, settings: Settings) -> Pulse:
    """The pulse of the live index version, under the limits and the window of the settings."""
    return catalog.pulses.take(catalog.deployments.live().name, settings.freshness_window, settings.pulse_limits)


@dg.asset_check(
    asset=source_documents,
    blocking=False,
    description="Every source had a good sync lately. It names the ones that had not, whether they fail, hang, or only wait for their "
    "turn, and why. PRIMER_STALLED_AFTER and PRIMER_STALLED_ERROR_AFTER say when.",
)
def sources_in_step(catalog: dg.ResourceParam[Catalog], settings: dg.ResourceParam[Settings]) -> dg.AssetCheckResult:
    """Judge every source."""
    return judge_sources(catalog.pulses.sources(settings.pulse_limits.stalled))


@dg.asset_check(
    asset=indexed_documents,
    blocking=False,
    description="Changes reach the indexes in time: within 5 minutes in the fast lane, 30 in the slow one, 60 seconds for deletes and "
    "permission changes, or what PRIMER_FRESH_FAST, _SLOW and _ACCESS say. What waits is looked at too.",
)
def changes_in_time(catalog: dg.ResourceParam[Catalog], settings: dg.ResourceParam[Settings]) -> dg.AssetCheckResult:
    """Judge every lane."""
    return judge_pulse(take_pulse(catalog, settings))


def judge_sources(sources: tuple[SourceHealth, ...]) -> dg.AssetCheckResult:
    """The result of `sources_in_step`."""
    severity = worst(source.severity for source in sources)
    late = [f"{source.source_id} is {source.health}: {source.reason}" for source in sources if source.severity is not Severity.OK]
    more = [f"and {len(late) - MANY} more"] if len(late) > MANY else []
    return dg.AssetCheckResult(
        passed=severity is Severity.OK,
        severity=_DAGSTER[severity],
        description="; ".join([*late[:MANY], *more]) or f"{len(sources)} sources are in step",
        metadata={"sources": len(sources), "late": len(late)},
    )


def judge_pulse(pulse: Pulse) -> dg.AssetCheckResult:
    """The result of `changes_in_time`."""
    late = [lane.words for lane in pulse.lanes if lane.severity is not Severity.OK]
    return dg.AssetCheckResult(
        passed=not late,
        severity=_DAGSTER[pulse.lateness],
        description="; ".join(late or [lane.words for lane in pulse.lanes]),
        metadata={
            "waiting": sum(row.jobs for row in pulse.queue),
            **{f"p95_{lane}_s": round(spread.p95, 1) for lane, spread in sorted(pulse.spreads.items())},
        },
    )
