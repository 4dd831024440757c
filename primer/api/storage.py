"""Routes of storage: do the drives of a tenant hold what the catalog says."""

from fastapi import APIRouter

from primer.api.auth import Operator
from primer.api.context import InContext, problems
from primer.api.models import CoherenceOut, DriveCoherenceOut
from primer_core.coherence import judge_drives, present_share

router = APIRouter(prefix="/internal/admin/storage", tags=["storage"])


@router.get("/coherence", responses=problems(401, 403))
def coherence(context: InContext, token: Operator) -> CoherenceOut:
    """The newest look at each drive of the token's tenant, which the asset stored_objects takes every day and `primer store reconcile` when
    it is run. A request lists no objects."""
    looks = context.catalog.coherence.newest(token.tenant_id)
    severity, reasons = judge_drives(looks, context.catalog.database.clock.now())
    return CoherenceOut(
        tenant_id=token.tenant_id,
        severity=severity,
        reasons=list(reasons),
        present_share=present_share(looks),
        drives=[DriveCoherenceOut.of(look) for look in looks],
    )
