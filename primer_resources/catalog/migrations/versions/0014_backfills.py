"""Backfills, the checks of index versions, and jobs that give way to live ones"""

import sqlalchemy as sa
from alembic import op

from primer_resources.catalog.types import BigInt, Json, UtcDateTime

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    op.create_table(
        "backfills",
        sa.Column("backfill_id", BigInt, autoincrement=True, nullable=False),
        sa.Column("index_version", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("max_docs_per_s", sa.Float(), nullable=True),
        sa.Column("earned_since", UtcDateTime(), nullable=False),
        sa.Column("total", BigInt, nullable=False),
        sa.Column("taken_up", BigInt, nullable=False),
        sa.Column("standing", BigInt, nullable=False),
        sa.Column("asked", BigInt, nullable=False),
        sa.Column("begun_at", UtcDateTime(), nullable=False),
        sa.Column("ended_at", UtcDateTime(), nullable=True),
        sa.ForeignKeyConstraint(["index_version"], ["index_versions.name"], name=op.f("fk_backfills_index_version")),
        sa.PrimaryKeyConstraint("backfill_id", name=op.f("pk_backfills")),
        sqlite_autoincrement=True,
    )
    open_ = sa.text("state IN ('running', 'paused')")
    op.create_index("uq_backfills_open", "backfills", ["index_version"], unique=True, sqlite_where=open_, postgresql_where=open_)
    op.create_table(
        "backfill_buckets",
        sa.Column("backfill_id", BigInt, nullable=False),
        sa.Column("bucket", sa.String(), nullable=False),
        sa.Column("after", sa.String(), nullable=False),
        sa.Column("is_ended", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["backfill_id"], ["backfills.backfill_id"], name=op.f("fk_backfill_buckets_backfill_id")),
        sa.PrimaryKeyConstraint("backfill_id", "bucket", name=op.f("pk_backfill_buckets")),
    )
    op.create_table(
        "version_checks",
        sa.Column("index_version", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("passed", sa.Boolean(), nullable=False),
        sa.Column("words", sa.Text(), nullable=False),
        sa.Column("figures", Json, nullable=False),
        sa.Column("measured_at", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["index_version"], ["index_versions.name"], name=op.f("fk_version_checks_index_version")),
        sa.PrimaryKeyConstraint("index_version", "name", name=op.f("pk_version_checks")),
    )
    # No foreign key: SQLite cannot add one to a table that stands, and would copy all jobs.
    op.add_column("jobs", sa.Column("backfill_id", BigInt, nullable=True))
    op.add_column("jobs", sa.Column("gives_way", sa.Boolean(), server_default=sa.text("false"), nullable=False))
    of_backfill = sa.text("backfill_id IS NOT NULL")
    op.create_index("ix_jobs_backfill", "jobs", ["backfill_id", "state"], sqlite_where=of_backfill, postgresql_where=of_backfill)
    living = sa.text("deleted_at IS NULL")
    op.create_index("ix_documents_bucket", "documents", ["bucket", "doc_id"], sqlite_where=living, postgresql_where=living)
