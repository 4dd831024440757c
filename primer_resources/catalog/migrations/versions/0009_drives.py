"""The drives of tenants"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.create_table(
        "drives",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("region", sa.String(), server_default="", nullable=False),
        sa.Column("endpoint", sa.Text(), server_default="", nullable=False),
        sa.Column("credentials_ref", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(["tenant_id"], ["accounts.tenant_id"], name=op.f("fk_drives_tenant_id")),
        sa.PrimaryKeyConstraint("tenant_id", "kind", name=op.f("pk_drives")),
    )
