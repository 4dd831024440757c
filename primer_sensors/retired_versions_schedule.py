"""`retired_versions_schedule`: a look every hour for versions whose time to go back to is over."""

import dagster as dg

from primer_assets.retired_versions import retired_versions

retired_versions_schedule = dg.ScheduleDefinition(
    name="retired_versions_schedule",
    target=[retired_versions],
    cron_schedule="50 * * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Makes retired_versions every hour: an index version that was live before is dropped when its time is over.",
)
