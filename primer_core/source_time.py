"""Times that sources tell: always aware, always UTC. A time without a zone is refused, since guessing one skips or repeats hours."""

from datetime import UTC, datetime, timedelta

EPOCH = datetime.fromtimestamp(0, UTC)


def check_aware(moment: datetime) -> datetime:
    """The same moment in UTC. Raises ValueError for one without a zone."""
    if moment.utcoffset() is None:
        raise ValueError(f"time {moment.isoformat()} has no zone; the source must say which, as in 2026-01-31T12:00:00Z")
    return moment.astimezone(UTC)


def parse_time(text: str) -> datetime:
    """An ISO 8601 time with its zone ("2026-01-31T12:00:00Z", "…+05:30"), in UTC. Raises ValueError for any other text."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"time {text!r} is no ISO 8601 time; the source must write it as 2026-01-31T12:00:00Z") from error
    return check_aware(moment)


def to_ns(moment: datetime) -> int:
    """Nanoseconds since the epoch; a whole number of microseconds, since datetime keeps no more."""
    return (check_aware(moment) - EPOCH) // timedelta(microseconds=1) * 1000


def from_ns(nanoseconds: int) -> datetime:
    """The moment, in UTC, cut to microseconds."""
    return EPOCH + timedelta(microseconds=nanoseconds // 1000)
