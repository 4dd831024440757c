"""The OpenAPI document says what the API does: requests made from it are answered as it says."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import Case
from schemathesis.generation import GenerationMode

from primer.api.app import make_app
from primer_resources.catalog.tokens import Role
from primer_resources.settings import load_settings
from tests.primer_resources.catalog.world import TENANT, World, source

ROUTES, ROUTES_WITH_RULES = 13, 9
EXAMPLES = 12
"""A route: enough to meet each kind of parameter with good and bad values."""


@pytest.fixture(scope="module")
def openapi(tmp_path_factory: pytest.TempPathFactory) -> Iterator[schemathesis.BaseSchema]:
    """The document of an application over a catalog, which answers in this process."""
    folder: Path = tmp_path_factory.mktemp("openapi")
    world = World(f"sqlite:///{folder / 'catalog.sqlite'}")
    world.make()
    world.catalog.sources.change(source(sync="webhook", webhook_secret_ref="env:NOWHERE"))
    token = world.catalog.tokens.add(TENANT, "tests", Role.OPERATOR)
    app = make_app(load_settings(home=folder / "home", tenant=TENANT, api_requests_per_minute=100_000), world.catalog)
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    schema.config.update(headers={"Authorization": f"Bearer {token}"})
    yield schema
    world.catalog.close()


@pytest.mark.parametrize("mode", list(GenerationMode))
def test_every_route_answers_as_its_document_says(openapi: schemathesis.BaseSchema, mode: GenerationMode) -> None:
    routes = [found.ok() for found in openapi.get_all_operations()]
    assert len(routes) == ROUTES

    def check(operation: Any) -> None:
        @settings(
            max_examples=EXAMPLES,
            derandomize=True,
            database=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def answers(case: Case) -> None:
            case.call_and_validate()

        answers()

    tried = 0
    for operation in routes:
        try:
            check(operation)
        except Unsatisfiable:
            continue  # what takes anything has no wrong request
        tried += 1
    assert tried >= (len(routes) if mode is GenerationMode.POSITIVE else ROUTES_WITH_RULES)
