"""`stored_objects_schedule`: a look at all drives every day."""

import dagster as dg

from primer_assets.stored_objects import stored_objects

stored_objects_schedule = dg.ScheduleDefinition(
    name="stored_objects_schedule",
    target=[stored_objects],
    cron_schedule="35 3 * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Makes stored_objects every day, with its check: orphans and missing objects are known within a day. It deletes nothing.",
)
