"""INSERT … ON CONFLICT for both databases: SQLAlchemy has one construct a dialect, with the same methods."""

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Insert, Table
from sqlalchemy.dialects import postgresql, sqlite

from primer_resources.catalog.database import Database


def _insert(database: Database, table: Table) -> sqlite.Insert | postgresql.Insert:
    return sqlite.insert(table) if database.is_sqlite else postgresql.insert(table)


def insert_if_absent(database: Database, table: Table, key: Sequence[str] = ()) -> Insert:
    """An INSERT that leaves a row of the same key as it is: the primary one, or the columns of a unique index."""
    return _insert(database, table).on_conflict_do_nothing(index_elements=list(key) or list(table.primary_key))


def insert_unless_taken(database: Database, table: Table) -> Insert:
    """An INSERT that does nothing where any unique key is taken. For tables that have two: of two that insert the same row at once, the
    second would fail at the key that is not named."""
    return _insert(database, table).on_conflict_do_nothing()


def insert_or_update(database: Database, table: Table, columns: Sequence[str], where: ColumnElement[bool] | None = None) -> Insert:
    """An INSERT that sets `columns` on a row of the same primary key, where that row meets the condition."""
    statement = _insert(database, table)
    return statement.on_conflict_do_update(
        index_elements=list(table.primary_key), set_={name: statement.excluded[name] for name in columns}, where=where
    )


def insert_or_set(
    database: Database, table: Table, change: Callable[[Any], tuple[dict[str, ColumnElement[Any]], ColumnElement[bool]]]
) -> Insert:
    """An INSERT that changes a row of the same primary key: `change` gives, for the columns of the row that was to be inserted, the values
    to set and the condition under which they are."""
    statement = _insert(database, table)
    values, where = change(statement.excluded)
    return statement.on_conflict_do_update(index_elements=list(table.primary_key), set_=values, where=where)
