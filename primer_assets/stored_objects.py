"""`stored_objects`: what is on the drives of all tenants, held against the catalog. It deletes nothing.

Its check `coherent` judges the newest look at each drive, whoever took it; it lists no objects itself.
"""

import dagster as dg

from primer_assets.markdown import markdown_table
from primer_assets.stage_run import plain_errors
from primer_core.coherence import DriveCoherence, judge_drives, present_share
from primer_core.freshness import Severity
from primer_resources.catalog.catalog import Catalog
from primer_resources.document_store.drives import TenantDrives
from primer_resources.document_store.reconciler import Reconciler

MANY = 20
"""Reasons that a check tells; the rest are counted."""


@dg.asset(
    group_name="store",
    kinds={"python", "sql"},
    description="Every object on the drives of active tenants against the rows that own them: orphans, objects too young to say, and "
    "missing ones. Made every day. It only looks: `primer store reconcile --apply` deletes orphans.",
)
def stored_objects(catalog: dg.ResourceParam[Catalog], drives: dg.ResourceParam[TenantDrives]) -> dg.MaterializeResult[None]:
    """Look at each drive once."""
    looks = []
    with plain_errors():
        reconciler = Reconciler(catalog.object_owners, drives, catalog.database.clock)
        for look in reconciler.run([each.tenant_id for each in catalog.tenants.all() if each.active]):
            catalog.coherence.keep(look)
            looks.append(look)
    return dg.MaterializeResult(
        metadata={
            "report": dg.MetadataValue.md(to_markdown(looks)),
            "objects": sum(each.objects for each in looks),
            "bytes": sum(each.bytes for each in looks),
            "orphans": sum(each.orphans_left for each in looks),
            "orphan_bytes": sum(each.orphans.bytes for each in looks),
            "too_young": sum(each.too_young.count for each in looks),
            "freed": sum(each.freed.count for each in looks),
            "missing": sum(each.missing for each in looks),
            "faults": sum(each.fault is not None for each in looks),
            "present_share": dg.MetadataValue.float(present_share(looks)),
            "samples": dg.MetadataValue.json(
                {f"{each.tenant_id} {each.kind}": _samples(each) for each in looks if each.orphans.count or each.missing}
            ),
        }
    )


@dg.asset_check(
    asset=stored_objects,
    blocking=False,
    description="By the newest look at each drive: every object that a row owns is there, and no orphan stands. Missing objects and drives "
    "that fail are errors, orphans and looks older than two days warnings. It only reads the catalog.",
)
def coherent(catalog: dg.ResourceParam[Catalog]) -> dg.AssetCheckResult:
    """Judge the drives of active tenants."""
    active = {each.tenant_id for each in catalog.tenants.all() if each.active}
    looks = [each for each in catalog.coherence.newest() if each.tenant_id in active]
    severity, reasons = judge_drives(looks, catalog.database.clock.now())
    more = [f"and {len(reasons) - MANY} more"] if len(reasons) > MANY else []
    return dg.AssetCheckResult(
        passed=severity is Severity.OK,
        severity=dg.AssetCheckSeverity.ERROR if severity is Severity.ERROR else dg.AssetCheckSeverity.WARN,
        description="; ".join([*reasons[:MANY], *more]) or f"{len(looks)} drives agree with the catalog",
        metadata={
            "drives": len(looks),
            "present_share": dg.MetadataValue.float(present_share(looks)),
            "checked": sum(each.checked for each in looks),
            "missing": sum(each.missing for each in looks),
            "orphans": sum(each.orphans_left for each in looks),
        },
    )


def to_markdown(looks: list[DriveCoherence]) -> str:
    """The looks as a table."""
    columns = ("tenant", "drive", "objects", "bytes", "orphans", "orphan bytes", "too young", "freed", "checked", "missing", "fault")
    rows = [
        (
            *(each.tenant_id, each.kind, each.objects, each.bytes, each.orphans.count, each.orphans.bytes),
            *(each.too_young.count, each.freed.count, each.checked, each.missing, each.fault or ""),
        )
        for each in looks
    ]
    return markdown_table(columns, rows)


def _samples(look: DriveCoherence) -> dict[str, list[str]]:
    return {"orphans": list(look.orphans.sample), "missing": [each.object_key for each in look.missing_sample]}
