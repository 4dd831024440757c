from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primer_core.ulids import ALPHABET, LEAST_ULID, RANDOM_BITS, moment_of, next_ulid

START = datetime(2026, 1, 1, tzinfo=UTC)
moments = st.datetimes(datetime(1970, 1, 1), datetime(2999, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


class Bits(Random):
    """Always rolls these bits."""

    def __init__(self, bits: int) -> None:
        super().__init__(0)
        self.bits = bits

    def getrandbits(self, k: int) -> int:
        assert k == RANDOM_BITS
        return self.bits


def test_a_ulid_is_written_as_the_specification_says() -> None:
    # The time of the specification's own example, 1469918176385 ms; the bits are 0 and 1.
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=1469918176385)
    assert next_ulid(moment, Bits(1)) == "01ARYZ6S41" + "0" * 15 + "1"
    assert moment_of("01ARYZ6S41TSV4RRFFQ69G5FAV") == moment


@given(st.lists(moments, min_size=1, max_size=20), st.integers())
def test_each_is_greater_than_the_one_before_whatever_the_clock_does(clock: list[datetime], seed: int) -> None:
    random, made = Random(seed), [LEAST_ULID]
    for moment in clock:
        made.append(next_ulid(moment, random, made[-1]))
    assert made == sorted(set(made))
    assert all(len(ulid) == 26 and set(ulid) <= set(ALPHABET) for ulid in made)


@given(moments, moments, st.integers())
def test_they_sort_by_the_milliseconds_of_their_times(one: datetime, other: datetime, seed: int) -> None:
    a, b = next_ulid(one, Random(seed)), next_ulid(other, Random(seed + 1))
    assert timedelta() <= one - moment_of(a) < timedelta(milliseconds=1)
    if moment_of(a) != moment_of(b):
        assert (a < b) == (one < other)


def test_random_bits_that_are_used_up_carry_into_the_time() -> None:
    last = next_ulid(START, Bits((1 << RANDOM_BITS) - 1))
    after = next_ulid(START, Bits(0), last)
    assert after > last
    assert moment_of(after) == START + timedelta(milliseconds=1)


@pytest.mark.parametrize("wrong", ["", "0" * 25, "8" + "0" * 25, "U" * 26, "01aryz6s41tsv4rrffq69g5fav"])
def test_what_is_no_ulid_is_named(wrong: str) -> None:
    with pytest.raises(ValueError, match="is no ULID"):
        next_ulid(START, Random(1), wrong)


@pytest.mark.parametrize(
    ("moment", "words"), [(START.replace(tzinfo=None), "has no zone"), (datetime(1969, 12, 31, tzinfo=UTC), "is before 1970")]
)
def test_a_time_that_gives_no_ulid_is_named(moment: datetime, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        next_ulid(moment, Random(1))


def test_after_the_last_there_is_none() -> None:
    with pytest.raises(ValueError, match="no greater ULID"):
        next_ulid(START, Random(1), "7" + "Z" * 25)
