"""Members of mails and archives are documents of their own"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

MEMBERS = sa.text("container IS NOT NULL")


def upgrade() -> None:
    op.add_column("documents", sa.Column("container", sa.Text(), nullable=True))
    op.create_index("ix_documents_members", "documents", ["source_id", "container"], sqlite_where=MEMBERS, postgresql_where=MEMBERS)
