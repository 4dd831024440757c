"""Alembic's entry: runs the migrations on the connection that it is handed, and writes our column types by their names."""

from typing import Any, Literal

from alembic import context
from sqlalchemy import Connection

from primer_resources.catalog.schema_versions import metadata
from primer_resources.catalog.types import BigInt, Json, UtcDateTime

connection: Connection = context.config.attributes["connection"]


def _render(kind: str, item: Any, _context: Any) -> str | Literal[False]:
    if kind != "type":
        return False
    if isinstance(item, UtcDateTime):
        return "UtcDateTime()"
    if item is BigInt:
        return "BigInt"
    return "Json" if item is Json else False


context.configure(connection=connection, target_metadata=metadata, render_as_batch=True, compare_type=True, render_item=_render)
with context.begin_transaction():
    context.run_migrations()
