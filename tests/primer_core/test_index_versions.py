"""Index versions: names that are safe everywhere, and every reason why one does not become the live one."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from primer_core.failures import PrimerError
from primer_core.index_versions import CheckResult, Standing, VersionState, check_name, refusals

NOW = datetime(2026, 1, 2, tzinfo=UTC)
HOUR, LAG = timedelta(hours=1), timedelta(minutes=5)
PASSED = CheckResult("agree", True, "", {}, NOW - HOUR)
READY = Standing("v2", VersionState.BUILDING, NOW - 2 * HOUR, None, [PASSED])


@pytest.mark.parametrize("name", ["v2", "minilm-256", "a_b", "v" * 32])
def test_a_plain_name_is_one(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize("name", ["", "V2", "2", "v|2", "v,2", "v..2", "../v2", "v 2", "v2\n", "v" * 33])
def test_a_name_that_a_path_or_a_partition_key_would_take_apart_is_none(name: str) -> None:
    with pytest.raises(PrimerError, match="cannot be called so"):
        check_name(name)


def test_a_version_that_is_filled_checked_and_in_step_may_become_live() -> None:
    assert refusals(READY, ["agree"], LAG, NOW) == []
    assert refusals(replace(READY, oldest_waiting=NOW - LAG), ["agree"], LAG, NOW) == []


@pytest.mark.parametrize(
    ("standing", "why"),
    [
        (replace(READY, state=VersionState.RETIRED), "retired"),
        (replace(READY, state=VersionState.RETIRING), "was live before; `primer rollback`"),
        (replace(READY, state=VersionState.LIVE), "live already"),
        (replace(READY, backfilled_at=None), "the backfill of v2 is not finished"),
        (replace(READY, oldest_waiting=NOW - HOUR), "a change has waited 3600 s for v2, more than 300 s"),
        (replace(READY, results=[]), "check agree was not made"),
        (replace(READY, results=[replace(PASSED, measured_at=NOW - 3 * HOUR)]), "check agree was not made since"),
        (replace(READY, results=[replace(PASSED, passed=False, words="3 rows missing")]), "check agree failed: 3 rows missing"),
        (replace(READY, results=[PASSED, replace(PASSED, name="more", passed=False, words="no")]), "check more failed: no"),
    ],
)
def test_every_other_standing_is_refused_with_its_reason(standing: Standing, why: str) -> None:
    (told,) = refusals(standing, ["agree"], LAG, NOW)
    assert why in told


def test_all_reasons_are_told_at_once() -> None:
    late = replace(READY, oldest_waiting=NOW - HOUR, results=[replace(PASSED, passed=False)])
    assert len(refusals(late, ["agree", "recall"], LAG, NOW)) == 3
