"""The route of replays: a line a candidate, as it is found."""

import json
from collections.abc import Iterator

from fastapi import APIRouter, HTTPException
from fastapi.responses import StreamingResponse

from primer.api.auth import Operator
from primer.api.context import InContext, problems
from primer.api.models import ReplayIn
from primer.replaying import Replaying, to_json
from primer_core.failures import PrimerError
from primer_core.replay import Selectors

router = APIRouter(prefix="/v1/replays", tags=["replays"])
NDJSON = "application/x-ndjson"
_LINES = {"description": "A line a candidate, and a last one with the totals, or with the error that ended it", "content": {NDJSON: {}}}


@router.post("", response_class=StreamingResponse, responses={200: _LINES, **problems(401, 403, 404, 422)})
def replay(context: InContext, token: Operator, wanted: ReplayIn) -> StreamingResponse:
    """Say which documents can go through a stage again, and without `dry_run` let them. Selectors are ANDed, and one must be given."""
    if wanted.source_id is not None:
        source = context.catalog.sources.find(wanted.source_id)
        if source is None or source.tenant_id != token.tenant_id:
            raise HTTPException(404, f"there is no source {wanted.source_id}")
    if wanted.index_version not in (None, *context.versions()):
        raise HTTPException(404, f"there is no index version {wanted.index_version} that is written to")
    selectors = Selectors(tuple(wanted.doc_ids), wanted.source_id, wanted.since, wanted.until, wanted.outcome, wanted.index_version)
    replaying = Replaying.of(context.catalog, token.tenant_id, selectors, wanted.to_stage, not wanted.dry_run)
    return StreamingResponse(_lines(replaying), media_type=NDJSON)


def _lines(replaying: Replaying) -> Iterator[str]:
    try:
        for candidate in replaying.run():
            yield _line(to_json(candidate))
    except PrimerError as error:  # the answer has begun, so only a line can tell
        yield _line({"error": str(error)})
    else:
        yield _line({"totals": replaying.totals()})


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"
