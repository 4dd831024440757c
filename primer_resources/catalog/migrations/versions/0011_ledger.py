"""The ledger of indexing, and a ULID an attempt

What stands in the indexes and what died are carried over under the least ULID there is, which every attempt from now on overtakes.
"""

import sqlalchemy as sa
from alembic import op

from primer_core.ulids import LEAST_ULID
from primer_resources.catalog.types import BigInt, Ulid, UtcDateTime

revision = "0011"
down_revision = "0010"

STANDING = (
    "INSERT INTO ledger (doc_id, index_version, source_id, attempt_ulid, outcome, source_version, content_hash, ended_at, "
    "indexed_ulid, indexed_version, chunks, indexed_at) "
    "SELECT s.doc_id, s.index_version, d.source_id, :least, CASE WHEN {gone} THEN 'deleted' ELSE coalesce(s.outcome, 'indexed') END, "
    "s.indexed_version, s.content_hash, s.flipped_at, :least, CASE WHEN {gone} THEN NULL ELSE s.indexed_version END, "
    "(SELECT count(*) FROM {entries}), CASE WHEN {gone} THEN NULL ELSE s.flipped_at END "
    "FROM index_state s JOIN documents d ON d.doc_id = s.doc_id "
    "WHERE s.flipped_at IS NOT NULL AND s.indexed_version IS NOT NULL"
)
GONE = "(d.deleted_at IS NOT NULL AND s.outcome = 'empty')"
NEWEST = "SELECT max(job_id) FROM jobs WHERE state = 'dead' GROUP BY doc_id, index_version"
DEAD = (
    "INSERT INTO ledger (doc_id, index_version, source_id, attempt_ulid, outcome, source_version, content_hash, reason, error, job_id, "
    "ended_at, chunks) "
    "SELECT doc_id, index_version, source_id, :least, 'dead', source_version, content_hash, reason, error, job_id, "
    f"coalesce(finished_at, created_at), 0 FROM jobs WHERE job_id IN ({NEWEST}) "
    "ON CONFLICT (doc_id, index_version) DO UPDATE SET outcome = excluded.outcome, source_version = excluded.source_version, "
    "content_hash = excluded.content_hash, reason = excluded.reason, error = excluded.error, job_id = excluded.job_id, "
    "ended_at = excluded.ended_at"
)


def upgrade() -> None:
    op.create_table(
        "ledger",
        sa.Column("doc_id", sa.String(), nullable=False),
        sa.Column("index_version", sa.String(), nullable=False),
        sa.Column("source_id", sa.String(), nullable=False),
        sa.Column("attempt_ulid", Ulid, nullable=False),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.Column("source_version", sa.String(), nullable=False),
        sa.Column("content_hash", sa.String(), nullable=True),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("job_id", BigInt, nullable=True),
        sa.Column("ended_at", UtcDateTime(), nullable=False),
        sa.Column("indexed_ulid", Ulid, nullable=True),
        sa.Column("indexed_version", sa.String(), nullable=True),
        sa.Column("chunks", sa.Integer(), nullable=False),
        sa.Column("indexed_at", UtcDateTime(), nullable=True),
        sa.ForeignKeyConstraint(["doc_id"], ["documents.doc_id"], name=op.f("fk_ledger_doc_id")),
        sa.ForeignKeyConstraint(["index_version"], ["index_versions.name"], name=op.f("fk_ledger_index_version")),
        sa.PrimaryKeyConstraint("doc_id", "index_version", name=op.f("pk_ledger")),
    )
    op.create_index("ix_ledger_outcome", "ledger", ["index_version", "outcome", "doc_id", "ended_at"])
    op.create_index("ix_ledger_source_outcome", "ledger", ["index_version", "source_id", "outcome", "doc_id", "ended_at"])
    op.add_column("jobs", sa.Column("attempt_ulid", Ulid, nullable=True))
    entries = "json_each(s.manifest)" if op.get_context().dialect.name == "sqlite" else "jsonb_object_keys(s.manifest)"
    for statement in (
        STANDING.format(gone=GONE, entries=entries),
        DEAD,
        "UPDATE jobs SET attempt_ulid = :least WHERE state = 'writing' AND generation IS NOT NULL",
    ):
        op.get_bind().execute(sa.text(statement), {"least": LEAST_ULID})
    for column in ("outcome", "attempt_ulid", "indexed_version"):
        op.drop_column("index_state", column)
