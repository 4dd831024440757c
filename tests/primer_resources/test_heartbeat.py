from datetime import timedelta
from threading import Event
from threading import enumerate as enumerate_threads

import pytest

from primer_core.failures import SystemFault
from primer_resources.heartbeat import BEATS_A_LEASE, Heartbeat

SHORT = timedelta(milliseconds=30)
LONG = timedelta(hours=1)
PATIENCE_S = 20.0


def test_leases_are_renewed_again_and_again_while_it_is_entered() -> None:
    beats, enough = [0, 0], Event()

    def first() -> None:
        beats[0] += 1

    def second() -> None:
        beats[1] += 1
        if beats[1] >= 3:
            enough.set()

    with Heartbeat(SHORT, first, second):
        assert enough.wait(PATIENCE_S)
    assert min(beats) >= 3


def test_a_renewal_that_fails_is_tried_again_and_does_not_stop_the_others() -> None:
    tries, enough = [0], Event()

    def fails() -> None:
        tries[0] += 1
        raise SystemFault("the catalog is away")

    def works() -> None:
        if tries[0] >= 2:
            enough.set()

    with Heartbeat(SHORT, fails, works):
        assert enough.wait(PATIENCE_S)


def test_after_the_end_nothing_beats_any_more() -> None:
    begun, ended, first = [0], [0], Event()

    def renew() -> None:
        begun[0] += 1
        first.set()
        ended[0] += 1

    with Heartbeat(SHORT, renew):
        assert first.wait(PATIENCE_S)
    assert begun == ended
    assert "heartbeat" not in {thread.name for thread in enumerate_threads()}


def test_the_next_step_finds_a_whole_lease() -> None:
    beats: list[str] = []
    with Heartbeat(LONG, lambda: beats.append("beat")):
        assert beats == []
    assert beats == ["beat"]


def test_an_end_does_not_wait_for_the_next_beat_and_lets_the_error_through() -> None:
    with pytest.raises(LookupError), Heartbeat(LONG, lambda: None):
        raise LookupError


def test_two_beats_may_be_missed_before_a_lease_runs_out() -> None:
    assert BEATS_A_LEASE >= 3
