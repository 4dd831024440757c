import pytest
from sqlalchemy import select

from primer_core.failures import PrimerError
from primer_resources.catalog.schema import api_tokens
from primer_resources.catalog.tokens import Role
from tests.primer_resources.catalog.world import TENANT, World


def test_a_token_is_known_by_its_secret_which_is_nowhere(world: World) -> None:
    tokens = world.catalog.tokens
    made = tokens.add(TENANT, "ci", Role.CONNECTOR)
    found = tokens.check(made)
    assert found is not None
    assert (found.tenant_id, found.name, found.role) == (TENANT, "ci", Role.CONNECTOR)
    secret = made.rpartition(f"{found.token_id}_")[2]
    with world.catalog.database.read() as connection:
        assert secret not in str(connection.execute(select(api_tokens)).one())


def test_what_is_not_quite_a_token_is_none(world: World) -> None:
    made = world.catalog.tokens.add(TENANT, "ci", Role.READER)
    for wrong in ("", made[:-1], made[:-1] + ("x" if made[-1] != "x" else "y"), made.upper(), f" {made}", "primer__", "\ud800"):
        assert world.catalog.tokens.check(wrong) is None


def test_a_revoked_token_is_none_and_its_name_is_free(world: World) -> None:
    tokens = world.catalog.tokens
    made = tokens.add(TENANT, "ci", Role.READER)
    with pytest.raises(PrimerError, match="exists already"):
        tokens.add(TENANT, "ci", Role.READER)
    tokens.revoke(TENANT, "ci")
    assert tokens.check(made) is None
    with pytest.raises(PrimerError, match="revoked already"):
        tokens.revoke(TENANT, "ci")
    assert tokens.check(tokens.add(TENANT, "ci", Role.OPERATOR)) is not None


def test_roles_contain_each_other() -> None:
    assert [[role.may(least) for least in Role] for role in Role] == [[True, False, False], [True, True, False], [True, True, True]]
