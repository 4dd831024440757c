"""When source bytes may go, and which outputs are in use."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primer_core.body_policies import LEAST_RETENTION, Claim, check_retention, may_go, outputs_in_use
from primer_core.ids import recipe_key
from primer_core.reviews import output_version

VERSIONS = ("v1", "v2")
claims = st.builds(Claim, st.booleans(), st.booleans(), st.frozensets(st.sampled_from(VERSIONS)))
versions = st.frozensets(st.sampled_from(VERSIONS))


@given(st.lists(claims, max_size=4), versions, st.booleans())
def test_bytes_go_only_when_every_claim_is_present_at_rest_and_indexed_everywhere(
    held: list[Claim], open_versions: frozenset[str], is_under_review: bool
) -> None:
    expected = bool(held) and bool(open_versions) and not is_under_review
    for claim in held:
        expected = expected and claim.is_present and not claim.is_under_way and open_versions <= claim.indexed_in
    assert may_go(held, open_versions, is_under_review) == expected


@given(st.lists(claims, max_size=4), claims, versions)
def test_one_claim_more_never_lets_bytes_go(held: list[Claim], more: Claim, open_versions: frozenset[str]) -> None:
    if held and may_go([*held, more], open_versions, False):
        assert may_go(held, open_versions, False)


def test_outputs_in_use_are_those_of_every_label_and_of_none() -> None:
    made = {recipe_key(output_version("p1", label)) for label in ("", "3", "3,7")}
    assert outputs_in_use(["p1"], ["3", "3,7"]) == made
    assert outputs_in_use([], ["3"]) == set()


def test_a_retention_under_a_day_is_refused() -> None:
    assert check_retention(LEAST_RETENTION) == timedelta(days=1)
    with pytest.raises(ValueError, match="shorter than a day"):
        check_retention(LEAST_RETENTION - timedelta(microseconds=1))
