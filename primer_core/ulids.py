"""ULIDs: ids that sort by the time they were made. 48 bits of milliseconds, then 80 random ones, as 26 letters of Crockford's base 32
(https://github.com/ulid/spec). The time and the random source are passed in."""

from datetime import UTC, datetime, timedelta
from random import Random

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
LETTERS = 26
RANDOM_BITS = 80
MOST = (1 << 128) - 1
LEAST_ULID = ALPHABET[0] * LETTERS
"""Less than any other: what everything else overtakes."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_VALUES = {letter: value for value, letter in enumerate(ALPHABET)}


def next_ulid(moment: datetime, random: Random, after: str = LEAST_ULID) -> str:
    """A ULID of the moment that is greater than `after`: where `after` is of the same millisecond or a later one, it is counted up.

    Raises ValueError for a time without a zone, a time before 1970 or too late for 48 bits, and for an `after` that is no ULID.
    """
    if moment.tzinfo is None:
        raise ValueError(f"time {moment.isoformat()} has no zone; give an aware time")
    milliseconds = (moment - _EPOCH) // timedelta(milliseconds=1)
    if milliseconds < 0:
        raise ValueError(f"time {moment.isoformat()} is before 1970, where ULIDs begin")
    last = _number(after)
    if last >> RANDOM_BITS >= milliseconds:
        # Random bits that are all set carry into the time: still greater, and no reason to fail.
        return _letters(last + 1)
    return _letters(milliseconds << RANDOM_BITS | random.getrandbits(RANDOM_BITS))


def moment_of(ulid: str) -> datetime:
    """The millisecond in which a ULID was made, aware, in UTC. Raises ValueError where it is none."""
    return _EPOCH + timedelta(milliseconds=_number(ulid) >> RANDOM_BITS)


def _number(ulid: str) -> int:
    if len(ulid) != LETTERS or not _VALUES.keys() >= set(ulid) or ulid[0] > "7":
        raise ValueError(f"{ulid!r} is no ULID: {LETTERS} of the letters {ALPHABET}, the first at most 7")
    number = 0
    for letter in ulid:
        number = number << 5 | _VALUES[letter]
    return number


def _letters(number: int) -> str:
    if number > MOST:
        raise ValueError("there is no greater ULID: its 128 bits are used up")
    return "".join(ALPHABET[number >> shift & 31] for shift in range(5 * (LETTERS - 1), -1, -5))
