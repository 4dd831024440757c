"""The API in this process, over a small catalog of one source whose events are signed."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi.testclient import TestClient

from primer.api.app import make_app
from primer_resources.catalog.tokens import Role
from primer_resources.settings import load_settings
from tests.primer_resources.catalog.conftest import sqlite_template
from tests.primer_resources.catalog.world import SOURCE, TENANT, World, facts, place, source
from tests.signing import signature_header

__all__ = ["sqlite_template"]

SECRET = "the secret of the handbook"


@dataclass
class Api:
    """A client, and the catalog behind it."""

    world: World
    client: TestClient
    tokens: dict[Role, str]

    def request(self, method: str, path: str, role: Role | None = Role.OPERATOR, **more: Any) -> httpx2.Response:
        """A request with a token of the role."""
        headers = {} if role is None else {"Authorization": f"Bearer {self.tokens[role]}"}
        return self.client.request(method, path, headers=headers | more.pop("headers", {}), **more)

    def send(self, *events: dict[str, Any], secret: str = SECRET, at: float | None = None) -> httpx2.Response:
        """A batch of events, signed."""
        body = json.dumps({"events": events}).encode()
        moment = int(self.world.catalog.now().timestamp() if at is None else at)
        headers = {"X-Primer-Signature": signature_header(secret, moment, body)}
        return self.client.post("/internal/events", content=body, headers=headers)

    def event(self, path: str = "a.md", **changes: Any) -> dict[str, Any]:
        """An upsert of a path, as it is sent."""
        at = self.world.catalog.now().isoformat()
        return {"source_id": SOURCE, "doc_id": path, "op": "upsert", "source_version": "v1", "event_time": at} | changes

    def add_document(self, doc_id: str, path: str, source_id: str = SOURCE) -> None:
        """A document that is known."""
        catalog = self.world.catalog
        with catalog.database.begin() as connection:
            assert catalog.documents.add(connection, catalog.sources.get(source_id), doc_id, place(path), facts(1))

    def waiting(self, source_id: str = SOURCE) -> Sequence[Any]:
        """The events that wait."""
        return self.world.catalog.events.due(source_id, self.world.catalog.now(), 0, 100)


@pytest.fixture
def limits() -> dict[str, int]:
    """Settings of a test that needs other limits."""
    return {}


@pytest.fixture
def api(sqlite_template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: dict[str, int]) -> Iterator[Api]:
    """The API with a token of each role."""
    (tmp_path / "catalog.sqlite").write_bytes(sqlite_template.read_bytes())
    world = World(f"sqlite:///{tmp_path / 'catalog.sqlite'}")
    monkeypatch.setenv("HANDBOOK_SECRET", SECRET)
    world.catalog.sources.change(source(sync="webhook", webhook_secret_ref="env:HANDBOOK_SECRET"))
    tokens = {role: world.catalog.tokens.add(TENANT, role.value, role) for role in Role}
    settings = load_settings(home=tmp_path / "home", tenant=TENANT, **limits)
    with TestClient(make_app(settings, world.catalog), raise_server_exceptions=False) as client:
        yield Api(world, client, tokens)
    world.catalog.close()
