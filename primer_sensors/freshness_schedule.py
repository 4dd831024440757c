"""`freshness_schedule`: a report on freshness every hour."""

import dagster as dg

from primer_assets.freshness_report import freshness_report

freshness_schedule = dg.ScheduleDefinition(
    name="freshness_schedule",
    target=[freshness_report],
    cron_schedule="5 * * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Makes freshness_report every hour, so that its figures over time are kept.",
)
