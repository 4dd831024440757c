"""Owners by the keys of their objects, and the newest look at each drive."""

import sqlalchemy as sa
from alembic import op

from primer_resources.catalog.types import Json, UtcDateTime

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.create_index("ix_contents_tenant_id_object", "contents", ["tenant_id", "object"])
    op.create_index("ix_stored_states_graph_node_id", "stored_states", ["graph", "node_id"])
    op.create_table(
        "coherence",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("checked_at", UtcDateTime(), nullable=False),
        sa.Column("figures", Json, nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["accounts.tenant_id"], name=op.f("fk_coherence_tenant_id")),
        sa.PrimaryKeyConstraint("tenant_id", "kind", name=op.f("pk_coherence")),
    )
