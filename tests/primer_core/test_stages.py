import pytest

from primer_core.stages import HELD, STAGES, TERMINAL, WAITING, Operation, State, entry_of, stage_of


def test_stages_follow_each_other_and_end_indexed() -> None:
    assert [stage.done for stage in STAGES[:-1]] == [stage.entry for stage in STAGES[1:]]
    assert STAGES[-1].done is State.INDEXED


def test_every_state_waits_is_held_or_is_terminal() -> None:
    groups = [set(WAITING), set(HELD), set(TERMINAL)]
    assert set().union(*groups) == set(State)
    assert sum(len(group) for group in groups) == len(State)


def test_a_state_knows_its_stage_and_a_terminal_one_has_none() -> None:
    for stage in STAGES:
        assert stage_of(stage.entry) is stage_of(stage.holding) is stage
    for state in TERMINAL:
        with pytest.raises(ValueError, match=state):
            stage_of(state)


def test_deletes_and_permission_changes_have_nothing_to_parse() -> None:
    assert entry_of(Operation.UPSERT) is State.PENDING_PARSE
    assert entry_of(Operation.DELETE) is entry_of(Operation.ACL) is State.PENDING_WRITE
