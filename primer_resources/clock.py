"""Clocks: where the time comes from. Everything that needs the time is given a clock."""

from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Tells the time."""

    def now(self) -> datetime:
        """The time, aware, in UTC."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """The time, aware, in UTC."""
        return datetime.now(UTC)
