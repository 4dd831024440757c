"""The decorator of every asset on the grid: what they have in common stands here once."""

from collections.abc import Callable, Sequence
from typing import Any

import dagster as dg

from primer_assets.partitions import GRID

MAX_PARTITIONS_PER_RUN = 4
"""Of a backfill: a run costs about 4 CPU seconds to start, and a failed one is repeated whole."""

SYSTEM_RETRY = dg.RetryPolicy(max_retries=2, delay=5, backoff=dg.Backoff.EXPONENTIAL, jitter=dg.Jitter.FULL)
"""For the system's faults (disk full, store gone). A document's own faults never fail a step."""


def grid_asset(
    *, group: str, deps: Sequence[str], pool: str, description: str, kind: str, freshness: dg.FreshnessPolicy | None = None
) -> Callable[[Callable[..., Any]], dg.AssetsDefinition]:
    """An asset partitioned by bucket and index version, in a pool, whose step Dagster retries. `kind` is what makes or keeps it."""
    return dg.asset(
        partitions_def=GRID,
        backfill_policy=dg.BackfillPolicy.multi_run(MAX_PARTITIONS_PER_RUN),
        retry_policy=SYSTEM_RETRY,
        group_name=group,
        deps=list(deps),
        pool=pool,
        kinds={"python", kind},
        description=description,
        freshness_policy=freshness,
    )
