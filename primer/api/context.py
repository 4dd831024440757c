"""What the routes work on, and what they share."""

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, HTTPException, Request
from limits.strategies import RateLimiter

from primer.api.models import Problem
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.sources import Source
from primer_resources.connectors.registry import Connectors
from primer_resources.settings import Settings


@dataclass(frozen=True, slots=True)
class Context:
    """A deployment as the API sees it."""

    settings: Settings
    catalog: Catalog
    connectors: Connectors
    limiter: RateLimiter

    def source(self, source_id: str, tenant_id: str) -> Source:
        """The tenant's source of that name; answers 404 where there is none."""
        source = self.catalog.sources.find(source_id)
        if source is None or source.removed_at is not None or source.tenant_id != tenant_id:
            raise HTTPException(404, f"there is no source {source_id}")
        return source

    def sources(self, tenant_id: str) -> list[Source]:
        """The tenant's sources."""
        return [source for source in self.catalog.sources.all() if source.tenant_id == tenant_id]

    def versions(self) -> list[str]:
        """The index versions that changes are written to."""
        return [version.name for version in self.catalog.deployments.open_versions()]


def _context(request: Request) -> Context:
    context: Context = request.app.state.context
    return context


InContext = Annotated[Context, Depends(_context)]


async def _raw_body(request: Request) -> bytes:
    return await request.body()


RawBody = Annotated[bytes, Depends(_raw_body)]


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The answers of a route beside the good one; those that every route may give are among them."""
    return {status: {"model": Problem} for status in sorted({*statuses, 400, 408, 413, 429, 503})}
