"""Pages to review, and what a decision makes of a parse; the pages that the lane of a content was decided by"""

import sqlalchemy as sa
from alembic import op

from primer_resources.catalog.types import UtcDateTime

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "reviews",
        sa.Column("content_hash", sa.String(), nullable=False),
        sa.Column("page", sa.Integer(), nullable=False),
        sa.Column("region", sa.Integer(), nullable=False),
        sa.Column("parser_version", sa.String(), nullable=False),
        sa.Column("confidence", sa.Float(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("object", sa.Text(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("decided_at", UtcDateTime(), nullable=True),
        sa.Column("decided_by", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(["content_hash"], ["contents.content_hash"], name=op.f("fk_reviews_content_hash")),
        sa.PrimaryKeyConstraint("content_hash", "page", "region", name=op.f("pk_reviews")),
    )
    with op.batch_alter_table("reviews", schema=None) as batch_op:
        batch_op.create_index(
            "ix_reviews_open",
            ["content_hash"],
            unique=False,
            sqlite_where=sa.text("state = 'open'"),
            postgresql_where=sa.text("state = 'open'"),
        )
    with op.batch_alter_table("contents", schema=None) as batch_op:
        batch_op.add_column(sa.Column("pages", sa.Integer(), nullable=True))
    with op.batch_alter_table("documents", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_documents_content_hash"), ["content_hash"], unique=False)
    with op.batch_alter_table("index_state", schema=None) as batch_op:
        batch_op.add_column(sa.Column("accepted_pages", sa.Text(), server_default="", nullable=False))
        batch_op.add_column(sa.Column("previous_accepted_pages", sa.Text(), server_default="", nullable=False))
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.add_column(sa.Column("accepted_pages", sa.Text(), server_default="", nullable=False))
