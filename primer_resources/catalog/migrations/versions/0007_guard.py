"""Held deletes that a person decides; what a listing no longer shows is marked, not what it shows; documents by their ACL"""

import sqlalchemy as sa
from alembic import op

from primer_resources.catalog.types import BigInt, Json, UtcDateTime

revision = "0007"
down_revision = "0006"

LIVING = sa.text("deleted_at IS NULL")
CHANGING = sa.text("reason = 'changing'")
MISSING = sa.text("missing_scan IS NOT NULL")


def upgrade() -> None:
    op.create_table(
        "held_deletes",
        sa.Column("source_id", sa.String(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("scan", BigInt, nullable=False),
        sa.Column("documents", sa.Integer(), nullable=False),
        sa.Column("reasons", Json, nullable=False),
        sa.Column("held_at", UtcDateTime(), nullable=False),
        sa.Column("listed_at", UtcDateTime(), nullable=False),
        sa.Column("decided_at", UtcDateTime(), nullable=True),
        sa.Column("decided_by", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(["source_id"], ["sources.source_id"], name=op.f("fk_held_deletes_source_id")),
        sa.PrimaryKeyConstraint("source_id", "digest", name=op.f("pk_held_deletes")),
    )
    op.drop_index("ix_documents_unseen", table_name="documents")
    op.drop_column("documents", "seen_scan")
    op.add_column("documents", sa.Column("missing_scan", BigInt, nullable=True))
    op.create_index("ix_documents_living", "documents", ["source_id", "doc_id"], sqlite_where=LIVING, postgresql_where=LIVING)
    op.create_index("ix_documents_missing", "documents", ["source_id", "doc_id"], sqlite_where=MISSING, postgresql_where=MISSING)
    op.create_index("ix_documents_acl", "documents", ["acl_id"], sqlite_where=LIVING, postgresql_where=LIVING)
    op.create_index("ix_documents_changing", "documents", ["source_id"], sqlite_where=CHANGING, postgresql_where=CHANGING)
