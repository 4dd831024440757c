"""`pulse_sensor`: tells in the UI which sources stall and which lanes are late, without a run."""

import dagster as dg

from primer_assets.pulse_checks import changes_in_time, judge_pulse, judge_sources, sources_in_step, take_pulse
from primer_resources.catalog.catalog import Catalog
from primer_resources.settings import Settings

INTERVAL_S = 60
SAID_AGAIN_S = 3600
"""A verdict that stays is told anew this often: each telling is a row in Dagster's database."""


@dg.sensor(
    minimum_interval_seconds=INTERVAL_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Looks every minute whether all sources are in step and changes reach the indexes in time, and reports the checks "
    "sources_in_step and changes_in_time when their verdict changes, and every hour. It starts no run.",
)
def pulse_sensor(
    context: dg.SensorEvaluationContext, catalog: dg.ResourceParam[Catalog], settings: dg.ResourceParam[Settings]
) -> dg.SensorResult | dg.SkipReason:
    """The cursor is the verdict that was told last, and when (seconds)."""
    pulse = take_pulse(catalog, settings)
    verdict = f"{pulse.lateness},{','.join(f'{each.source_id}={each.severity}' for each in pulse.sources if each.severity != 'ok')}"
    told, _, at = (context.cursor or "").rpartition("@")
    now = pulse.at.timestamp()
    if told == verdict and now - float(at) < SAID_AGAIN_S:
        return dg.SkipReason(f"as before: lanes {pulse.lateness}, sources {pulse.stalling}")
    results = ((changes_in_time, judge_pulse(pulse)), (sources_in_step, judge_sources(pulse.sources)))
    return dg.SensorResult(
        asset_events=[_evaluation(definition.check_key, result) for definition, result in results], cursor=f"{verdict}@{now}"
    )


def _evaluation(key: dg.AssetCheckKey, result: dg.AssetCheckResult) -> dg.AssetCheckEvaluation:
    return dg.AssetCheckEvaluation(
        asset_key=key.asset_key,
        check_name=key.name,
        passed=bool(result.passed),
        severity=result.severity,
        description=result.description,
        metadata=result.metadata,
    )
