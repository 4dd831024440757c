import pytest

from primer_core.outcomes import Outcome, outcome_of
from primer_core.stages import Operation


@pytest.mark.parametrize(
    ("operation", "is_copy", "chunks", "outcome"),
    [
        (Operation.UPSERT, False, 3, Outcome.INDEXED),
        (Operation.UPSERT, False, 0, Outcome.EMPTY),
        (Operation.ACL, False, 3, Outcome.INDEXED),
        (Operation.ACL, True, 0, Outcome.COPY),
        (Operation.COPY, True, 0, Outcome.COPY),
        (Operation.DELETE, False, 0, Outcome.DELETED),
    ],
)
def test_what_a_write_makes_of_a_document(operation: Operation, is_copy: bool, chunks: int, outcome: Outcome) -> None:
    assert outcome_of(operation, is_copy, chunks) is outcome
