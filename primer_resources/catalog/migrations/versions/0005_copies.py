"""One canonical document a content; rows carry every copy's ACL id

Documents that were indexed once each although their contents are equal get jobs that make one of them canonical and the others its copies.
"""

from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

from primer_resources.catalog.types import Json, UtcDateTime

revision = "0005"
down_revision = "0004"

FLAGS = ("is_copy", "previous_is_copy")
COPIES = {
    "is_copy": ("ix_index_state_copies", "content_hash"),
    "previous_is_copy": ("ix_index_state_previous_copies", "previous_content_hash"),
}
COPY = "deleted_at IS NULL AND canonical_doc_id <> doc_id"
JOB = (
    "INSERT INTO jobs (doc_id, source_id, source_version, content_hash, index_version, bucket, lane, operation, stage, state, not_before, "
    "event_time, created_at) "
    "SELECT d.doc_id, d.source_id, d.source_version, d.content_hash, v.name, d.bucket, 'fast', '{operation}', 'write', 'pending_write', "
    ":now, :now, :now FROM documents d CROSS JOIN index_versions v WHERE v.state <> 'retired' AND d.{which}"
)


def upgrade() -> None:
    op.create_table(
        "canonicals",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("library", sa.String(), nullable=False),
        sa.Column("content_hash", sa.String(), nullable=False),
        sa.Column("doc_id", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(["doc_id"], ["documents.doc_id"], name=op.f("fk_canonicals_doc_id")),
        sa.PrimaryKeyConstraint("tenant_id", "library", "content_hash", name=op.f("pk_canonicals")),
    )
    op.create_index(op.f("ix_canonicals_doc_id"), "canonicals", ["doc_id"])
    made = "json_array" if op.get_context().dialect.name == "sqlite" else "jsonb_build_array"
    for table in ("jobs", "index_state"):
        op.add_column(table, sa.Column("acl_ids", Json, nullable=True))
        op.execute(f"UPDATE {table} SET acl_ids = {made}(acl_id) WHERE acl_id IS NOT NULL")
        op.drop_column(table, "acl_id")
    for flag, (name, content) in COPIES.items():
        op.add_column("index_state", sa.Column(flag, sa.Boolean(), server_default=sa.text("false"), nullable=False))
        op.create_index(
            name, "index_state", ["index_version", content], sqlite_where=sa.text(f"{flag} = 1"), postgresql_where=sa.text(flag)
        )
    _link()


def _link() -> None:
    now = sa.bindparam("now", datetime.now(UTC), UtcDateTime())
    living = "deleted_at IS NULL AND content_hash IS NOT NULL"
    same = "c.tenant_id = documents.tenant_id AND c.library = documents.library AND c.content_hash = documents.content_hash"
    for statement in (
        "INSERT INTO canonicals (tenant_id, library, content_hash, doc_id) "
        f"SELECT tenant_id, library, content_hash, min(doc_id) FROM documents WHERE {living} GROUP BY tenant_id, library, content_hash",
        f"UPDATE documents SET canonical_doc_id = (SELECT c.doc_id FROM canonicals c WHERE {same}) WHERE {living}",
        f"UPDATE documents SET status = 'pending', reason = NULL WHERE {COPY}",
    ):
        op.execute(statement)
    op.get_bind().execute(
        sa.text(
            "UPDATE jobs SET state = 'superseded', finished_at = :now WHERE (state = 'dead' OR state LIKE 'pending%') "
            f"AND doc_id IN (SELECT doc_id FROM documents WHERE {COPY})"
        ).bindparams(now)
    )
    leads = f"doc_id IN (SELECT canonical_doc_id FROM documents WHERE {COPY})"
    for operation, which in (("acl", leads), ("copy", "deleted_at IS NULL AND d.canonical_doc_id <> d.doc_id")):
        op.get_bind().execute(sa.text(JOB.format(operation=operation, which=which)).bindparams(now))
