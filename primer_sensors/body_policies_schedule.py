"""`body_policies_schedule`: bodies that are not to be kept are deleted once a day."""

import dagster as dg

from primer_assets.body_policies import body_policies

body_policies_schedule = dg.ScheduleDefinition(
    name="body_policies_schedule",
    target=[body_policies],
    cron_schedule="5 3 * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Makes body_policies every night. It does nothing unless PRIMER_KEEP_SOURCES or PRIMER_RETENTION is set.",
)
