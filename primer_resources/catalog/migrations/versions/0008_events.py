"""The inbox of events, permissions that events tell, and the tokens of the HTTP API"""

import sqlalchemy as sa
from alembic import op

from primer_resources.catalog.types import BigInt, Json, UtcDateTime

revision = "0008"
down_revision = "0007"

WAITING, DEAD, DONE = (sa.text(f"state = '{state}'") for state in ("waiting", "dead", "done"))
NOT_REVOKED = sa.text("revoked_at IS NULL")


def upgrade() -> None:
    op.add_column("sources", sa.Column("webhook_secret_ref", sa.String(), nullable=True))
    op.add_column("sources", sa.Column("asked_at", UtcDateTime(), nullable=True))
    op.add_column("documents", sa.Column("told_acl_id", sa.String(), nullable=True))
    op.add_column("documents", sa.Column("acl_told_at", UtcDateTime(), nullable=True))
    op.create_table(
        "events",
        sa.Column("seq", BigInt, autoincrement=True, nullable=False),
        sa.Column("source_id", sa.String(), nullable=False),
        sa.Column("event_id", sa.String(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("doc_id", sa.String(), nullable=True),
        sa.Column("op", sa.String(), nullable=False),
        sa.Column("source_version", sa.String(), nullable=False),
        sa.Column("acl_groups", Json, nullable=True),
        sa.Column("content_uri", sa.Text(), nullable=True),
        sa.Column("event_time", UtcDateTime(), nullable=False),
        sa.Column("received_at", UtcDateTime(), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("not_before", UtcDateTime(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("finished_at", UtcDateTime(), nullable=True),
        sa.ForeignKeyConstraint(["source_id"], ["sources.source_id"], name=op.f("fk_events_source_id")),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_events")),
        sqlite_autoincrement=True,
    )
    op.create_index("uq_events_source_id_event_id", "events", ["source_id", "event_id"], unique=True)
    for name, columns, where in (
        ("ix_events_waiting", ["source_id", "not_before"], WAITING),
        ("ix_events_waiting_path", ["source_id", "path"], WAITING),
        ("ix_events_dead", ["source_id", "seq"], DEAD),
        ("ix_events_done", ["finished_at"], DONE),
    ):
        op.create_index(name, "events", columns, sqlite_where=where, postgresql_where=where)
    op.create_table(
        "api_tokens",
        sa.Column("token_id", sa.String(), nullable=False),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("secret_hash", sa.String(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("revoked_at", UtcDateTime(), nullable=True),
        sa.ForeignKeyConstraint(["tenant_id"], ["accounts.tenant_id"], name=op.f("fk_api_tokens_tenant_id")),
        sa.PrimaryKeyConstraint("token_id", name=op.f("pk_api_tokens")),
    )
    op.create_index(
        "uq_api_tokens_name", "api_tokens", ["tenant_id", "name"], unique=True, sqlite_where=NOT_REVOKED, postgresql_where=NOT_REVOKED
    )
