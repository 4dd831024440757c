"""Routes of backfills. An index version is of all tenants, so they are for operators of the deployment's own tenant."""

from fastapi import APIRouter, HTTPException

from primer.api.auth import Operator
from primer.api.context import Context, InContext, problems
from primer.api.models import BackfillIn, BackfillOut
from primer.backfill_json import to_json
from primer_core.failures import Deferred, PrimerError, SystemFault, Transient
from primer_resources.catalog.backfills import Backfill
from primer_resources.catalog.tokens import ApiToken
from primer_resources.version_making import RecipeChange, begin_backfill

router = APIRouter(prefix="/v1/backfills", tags=["backfills"])


@router.post("", status_code=202, responses=problems(401, 403, 409, 422))
def begin(context: InContext, token: Operator, wanted: BackfillIn) -> BackfillOut:
    """Fill an index version from what is stored; the sensors do the work. A version that is not there yet is made with the recipe of the
    settings, and is open for writing when this answers."""
    _require_own(context, token)
    change = RecipeChange()
    try:
        begun = begin_backfill(context.catalog, context.settings, wanted.target_index, wanted.reason, change, wanted.max_docs_per_s)
    except (Deferred, SystemFault, Transient):
        raise
    except PrimerError as error:  # what was asked is well said; the versions and backfills that are there do not admit it
        raise HTTPException(409, str(error)) from error
    return _out(context, begun)


@router.get("/{backfill_id}", responses=problems(401, 403, 404, 422))
def progress(context: InContext, token: Operator, backfill_id: int) -> BackfillOut:
    """How far a backfill is."""
    _require_own(context, token)
    try:
        found = context.catalog.backfills.find(backfill_id)
    except PrimerError as error:
        raise HTTPException(404, str(error)) from error
    return _out(context, found)


def _require_own(context: Context, token: ApiToken) -> None:
    if token.tenant_id != context.settings.tenant:
        raise HTTPException(403, "an index version is of all tenants; only operators of the deployment's own tenant fill one")


def _out(context: Context, backfill: Backfill) -> BackfillOut:
    return BackfillOut.model_validate(to_json(context.catalog, backfill))
