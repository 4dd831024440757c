"""Column types that mean the same in SQLite and Postgres."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, DateTime, Dialect, Integer, String
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import TypeDecorator


class UtcDateTime(TypeDecorator[datetime]):
    """An aware UTC time. A naive one is refused: its zone would be a guess."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """To the database: SQLite keeps no zone, so it gets naive UTC, which compares as text."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"time {value.isoformat()} has no zone; give an aware UTC time")
        value = value.astimezone(UTC)
        return value.replace(tzinfo=None) if dialect.name == "sqlite" else value

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        """From the database: always aware UTC."""
        if value is None:
            return None
        moment: datetime = value
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


BigInt = BigInteger().with_variant(Integer, "sqlite")
"""64 bits on both; SQLite only auto-increments a plain INTEGER."""

Json = JSON().with_variant(JSONB(), "postgresql")

Ulid = String().with_variant(String(collation="C"), "postgresql")
"""Compares by code point on both, as Python does: some languages' collations have another order of letters."""
