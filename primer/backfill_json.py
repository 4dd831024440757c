"""A backfill as the command line and the HTTP API show it."""

from typing import Any

from primer_resources.catalog.backfills import Backfill
from primer_resources.catalog.catalog import Catalog


def to_json(catalog: Catalog, backfill: Backfill) -> dict[str, Any]:
    """A backfill with stable field names; `eta_s` is null where nothing has come to its end yet."""
    progress = catalog.backfills.progress(backfill)
    eta = progress.eta(backfill.begun_at, backfill.ended_at or catalog.now())
    return {
        "backfill_id": backfill.backfill_id,
        "reason": backfill.reason.value,
        "target_index": backfill.index_version,
        "state": backfill.state.value,
        "max_docs_per_s": backfill.max_docs_per_s,
        "total": progress.total,
        "done": progress.done,
        "failed": progress.failed,
        "asked": backfill.asked,
        "eta_s": None if eta is None else round(eta.total_seconds(), 1),
        "begun_at": backfill.begun_at.isoformat(),
        "ended_at": None if backfill.ended_at is None else backfill.ended_at.isoformat(),
    }
