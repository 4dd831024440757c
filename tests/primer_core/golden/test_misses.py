"""A miss is put down to the first step that its answer did not pass."""

import pytest

from primer_core.golden.misses import Cause, Evidence


@pytest.mark.parametrize(
    ("evidence", "cause"),
    [
        (Evidence(is_known=False), Cause.NO_DOCUMENT),
        (Evidence(is_known=True), Cause.NOT_INDEXED),
        (Evidence(True, is_indexed=True), Cause.PARSE),
        (Evidence(True, True, in_elements=True), Cause.CHUNK),
        (Evidence(True, True, in_elements=True, in_passages=True), Cause.MODEL),
        (Evidence(True, True, True, True, deep_rank=11), Cause.RANKING),
        # An older version stands while the newest waits: what is found counts.
        (Evidence(True, is_indexed=False, deep_rank=40), Cause.RANKING),
    ],
)
def test_the_first_step_not_passed_is_the_cause(evidence: Evidence, cause: Cause) -> None:
    assert evidence.cause is cause
