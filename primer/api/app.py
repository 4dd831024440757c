"""The application: routes, limits, and how an error becomes an answer."""

import sys
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from primer.api import backfills, documents, events, health, replays, sources, storage
from primer.api.context import Context
from primer.api.limits import Limits, make_limiter
from primer.api.models import EventsIn
from primer_core.failures import Deferred, PrimerError, SystemFault, Transient
from primer_resources.catalog.catalog import Catalog
from primer_resources.connectors.registry import Connectors
from primer_resources.settings import Settings

MIB = 1 << 20


def make_app(settings: Settings, catalog: Catalog) -> FastAPI:
    """The API over a catalog, which the caller closes."""
    # Its pages of documentation would load scripts from elsewhere; /openapi.json is there.
    app = FastAPI(title="Primer", version="1", docs_url=None, redoc_url=None)
    limiter = make_limiter()
    app.state.context = Context(settings, catalog, Connectors(settings.source_folders), limiter)
    for group in (sources, events, documents, replays, backfills, storage, health):
        app.include_router(group.router)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _not_valid)
    app.add_exception_handler(PrimerError, _failed)
    app.add_middleware(Limits, limiter, settings.api_requests_per_minute, settings.api_max_body_mb * MIB)
    _describe_events(app)
    return app


def _describe_events(app: FastAPI) -> None:
    """Put the shape of a batch into the OpenAPI document: its route reads the body by itself, so that one bad event refuses no other."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        document = plain()
        schema = EventsIn.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas = document["components"]["schemas"]
        for name, shape in {**schema.pop("$defs", {}), EventsIn.__name__: schema}.items():
            schemas.setdefault(name, shape)
        return document

    app.openapi = openapi  # type: ignore[method-assign]


def _answer(status: int, detail: str, headers: Any = None) -> JSONResponse:
    return JSONResponse({"detail": detail}, status_code=status, headers=headers)


def _refused(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return _answer(error.status_code, str(error.detail), error.headers)


def _not_valid(_request: Request, error: Exception) -> JSONResponse:
    """Where the fault is, and the rule; never the value, which may be a secret in the wrong place."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    return _answer(422, f"{place}: {first['msg']}")


def _failed(_request: Request, error: Exception) -> JSONResponse:
    """What is not the caller's mistake is told on stderr, and to him only that it is not."""
    if isinstance(error, (SystemFault, Transient, Deferred)):
        sys.stderr.write(f"primer: {' '.join(str(error).split())}\n")
        return _answer(503, "Primer cannot do this now; its log says why. Try again later")
    return _answer(422, str(error))
