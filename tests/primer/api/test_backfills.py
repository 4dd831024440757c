"""`/v1/backfills`: begun by operators of the deployment's own tenant, and watched to the end."""

from typing import Any

from primer_core.index_versions import VersionState
from primer_resources.catalog.tokens import Role
from tests.primer.api.conftest import Api
from tests.primer_resources.catalog.world import BUCKETS, REMODELLED, drives_of


def begin(api: Api, role: Role = Role.OPERATOR, **body: Any) -> Any:
    return api.request("POST", "/v1/backfills", role, json={"reason": "embedding_model", "target_index": "v2", **body})


def test_a_backfill_is_begun_and_tells_how_far_it_is(api: Api) -> None:
    api.world.document("a.md")
    api.world.catalog.deployments.add_version("v2", REMODELLED, VersionState.BUILDING, len(BUCKETS))
    answer = begin(api, max_docs_per_s=5)
    assert answer.status_code == 202, answer.text
    made = answer.json()
    assert (made["state"], made["total"], made["done"], made["failed"], made["eta_s"]) == ("running", 1, 0, 0, None)
    found = api.request("GET", f"/v1/backfills/{made['backfill_id']}")
    assert found.json() == made
    assert begin(api).status_code == 409, "it is being filled already"


def test_a_reason_that_is_not_the_recipes_difference_and_an_unknown_backfill_are_refused(api: Api) -> None:
    api.world.catalog.deployments.add_version("v2", REMODELLED, VersionState.BUILDING, len(BUCKETS))
    answer = begin(api, reason="parser")
    assert (answer.status_code, "say --reason embedding_model" in answer.text) == (409, True)
    assert api.request("GET", "/v1/backfills/9").status_code == 404


def test_only_an_operator_of_the_deployments_own_tenant_may(api: Api) -> None:
    assert begin(api, Role.READER).status_code == 403
    api.world.catalog.tenants.add("other", drives_of("other"))
    api.tokens[Role.OPERATOR] = api.world.catalog.tokens.add("other", "them", Role.OPERATOR)
    answer = begin(api)
    assert (answer.status_code, "deployment's own tenant" in answer.text) == (403, True)
