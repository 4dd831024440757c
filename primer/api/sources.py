"""Routes of sources: add one, ask for a sync."""

import json
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Path, Response

from primer.api.auth import Connecting, Operator
from primer.api.context import InContext, problems
from primer.api.models import SOURCE_ID, SourceIn, SourceOut, SyncIn, SyncMode, SyncOut
from primer.source_admin import Wanted, add_source
from primer_core.failures import PrimerError

router = APIRouter(prefix="/v1/sources", tags=["sources"])


@router.post("", status_code=201, responses={200: {"model": SourceOut}, **problems(401, 403, 422)})
def create_source(context: InContext, token: Operator, wanted: SourceIn, response: Response) -> SourceOut:
    """Add a source. 200 where the very same one is there already. The next tick of the sensor reads it."""
    if wanted.tenant_id != token.tenant_id:
        raise HTTPException(403, f"this token is not of tenant {wanted.tenant_id}")
    _check_kept(wanted.settings)
    source, is_new = add_source(context.catalog, context.settings, Wanted(**wanted.model_dump()))
    if not is_new:
        response.status_code = 200
    return SourceOut.of(source)


def _check_kept(settings: dict[str, Any]) -> None:
    """Raise PrimerError for settings that no catalog can keep."""
    try:
        text = json.dumps(settings, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (ValueError, RecursionError) as error:
        raise PrimerError("settings hold a value that no JSON can hold") from error
    if "\\u0000" in text:
        raise PrimerError("settings hold a NUL character; take it out")


@router.post("/{source_id}/sync", status_code=202, responses=problems(401, 403, 404, 422))
def sync_source(context: InContext, token: Connecting, source_id: Annotated[str, Path(pattern=SOURCE_ID)], wanted: SyncIn) -> SyncOut:
    """Ask for a sync. The next tick of the sensor starts it, also where one is under way now."""
    source = context.source(source_id, token.tenant_id)
    with context.catalog.database.begin() as connection:
        asked_at = context.catalog.sources.make_due(connection, source.source_id, in_full=wanted.mode is SyncMode.FULL)
    return SyncOut(source_id=source.source_id, mode=wanted.mode, asked_at=asked_at)
