"""The main job: documents, jobs, generations, leases"""

import sqlalchemy as sa
from alembic import op

from primer_resources.catalog.types import BigInt, Json, UtcDateTime

revision = "0001"
down_revision = None

_LIVE = "state IN ('pending_parse', 'pending_chunk', 'pending_embed', 'pending_write', 'parsing', 'chunking', 'embedding', 'writing')"


def upgrade() -> None:
    op.create_table(
        "accounts",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", name=op.f("pk_accounts")),
    )
    op.create_table(
        "acls",
        sa.Column("acl_id", sa.String(), nullable=False),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("source_id", sa.String(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("allow_groups", Json, nullable=False),
        sa.Column("readable", sa.Boolean(), nullable=False),
        sa.Column("error", sa.Text(), server_default="", nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("acl_id", name=op.f("pk_acls")),
    )
    op.create_table(
        "contents",
        sa.Column("content_hash", sa.String(), nullable=False),
        sa.Column("size", BigInt, nullable=False),
        sa.Column("mime", sa.String(), nullable=False),
        sa.Column("lane", sa.String(), nullable=False),
        sa.Column("object", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("content_hash", name=op.f("pk_contents")),
    )
    op.create_table(
        "deployment",
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("value", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_deployment")),
    )
    op.create_table(
        "holders",
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("until", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("owner", name=op.f("pk_holders")),
    )
    op.create_table(
        "index_versions",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("recipe", Json, nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("sample", sa.Text(), nullable=True),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("retire_at", UtcDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_index_versions")),
    )
    op.create_table(
        "acl_groups",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("group_name", sa.String(), nullable=False),
        sa.Column("acl_id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["acl_id"], ["acls.acl_id"], name=op.f("fk_acl_groups_acl_id")),
        sa.PrimaryKeyConstraint("tenant_id", "group_name", "acl_id", name=op.f("pk_acl_groups")),
    )
    with op.batch_alter_table("acl_groups", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_acl_groups_acl_id"), ["acl_id"], unique=False)

    op.create_table(
        "aliases",
        sa.Column("alias", sa.String(), nullable=False),
        sa.Column("index_version", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["index_version"], ["index_versions.name"], name=op.f("fk_aliases_index_version")),
        sa.PrimaryKeyConstraint("alias", name=op.f("pk_aliases")),
    )
    op.create_table(
        "intents",
        sa.Column("index_version", sa.String(), nullable=False),
        sa.Column("row_id", sa.String(), nullable=False),
        sa.Column("doc_id", sa.String(), nullable=False),
        sa.Column("bucket", sa.String(), nullable=False),
        sa.Column("generation", BigInt, nullable=False),
        sa.ForeignKeyConstraint(["index_version"], ["index_versions.name"], name=op.f("fk_intents_index_version")),
        sa.PrimaryKeyConstraint("index_version", "row_id", name=op.f("pk_intents")),
    )
    with op.batch_alter_table("intents", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_intents_doc_id_index_version"), ["doc_id", "index_version"], unique=False)

    op.create_table(
        "lanes",
        sa.Column("index_version", sa.String(), nullable=False),
        sa.Column("bucket", sa.String(), nullable=False),
        sa.Column("owner", sa.String(), nullable=True),
        sa.Column("epoch", BigInt, nullable=False),
        sa.Column("until", UtcDateTime(), nullable=True),
        sa.ForeignKeyConstraint(["index_version"], ["index_versions.name"], name=op.f("fk_lanes_index_version")),
        sa.PrimaryKeyConstraint("index_version", "bucket", name=op.f("pk_lanes")),
    )
    op.create_table(
        "parsed",
        sa.Column("content_hash", sa.String(), nullable=False),
        sa.Column("parser_version", sa.String(), nullable=False),
        sa.Column("elements", sa.Integer(), nullable=True),
        sa.Column("pages", sa.Integer(), nullable=True),
        sa.Column("ocr_confidence", sa.Integer(), nullable=True),
        sa.Column("reason", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(["content_hash"], ["contents.content_hash"], name=op.f("fk_parsed_content_hash")),
        sa.PrimaryKeyConstraint("content_hash", "parser_version", name=op.f("pk_parsed")),
    )
    op.create_table(
        "purges_due",
        sa.Column("index_version", sa.String(), nullable=False),
        sa.Column("row_id", sa.String(), nullable=False),
        sa.Column("doc_id", sa.String(), nullable=False),
        sa.Column("bucket", sa.String(), nullable=False),
        sa.Column("dead_gen", BigInt, nullable=False),
        sa.Column("at", UtcDateTime(), nullable=False),
        sa.Column("done_at", UtcDateTime(), nullable=True),
        sa.ForeignKeyConstraint(["index_version"], ["index_versions.name"], name=op.f("fk_purges_due_index_version")),
        sa.PrimaryKeyConstraint("index_version", "row_id", name=op.f("pk_purges_due")),
    )
    with op.batch_alter_table("purges_due", schema=None) as batch_op:
        batch_op.create_index(
            "ix_purges_due_done",
            ["done_at"],
            unique=False,
            sqlite_where=sa.text("done_at IS NOT NULL"),
            postgresql_where=sa.text("done_at IS NOT NULL"),
        )
        batch_op.create_index(
            "ix_purges_due_waiting",
            ["index_version", "bucket", "at"],
            unique=False,
            sqlite_where=sa.text("done_at IS NULL"),
            postgresql_where=sa.text("done_at IS NULL"),
        )

    op.create_table(
        "sources",
        sa.Column("source_id", sa.String(), nullable=False),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("library", sa.String(), nullable=False),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("settings", Json, nullable=False),
        sa.Column("credentials_ref", sa.String(), nullable=True),
        sa.Column("sync", sa.String(), nullable=False),
        sa.Column("poll_interval_s", sa.Integer(), nullable=False),
        sa.Column("cursor", Json, nullable=True),
        sa.Column("scan", BigInt, server_default="0", nullable=False),
        sa.Column("lease_owner", sa.String(), nullable=True),
        sa.Column("lease_epoch", BigInt, server_default="0", nullable=False),
        sa.Column("lease_until", UtcDateTime(), nullable=True),
        sa.Column("held_digest", sa.String(), nullable=True),
        sa.Column("held_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column("held_at", UtcDateTime(), nullable=True),
        sa.Column("last_synced_at", UtcDateTime(), nullable=True),
        sa.Column("last_began_at", UtcDateTime(), nullable=True),
        sa.Column("last_reconciled_at", UtcDateTime(), nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("removed_at", UtcDateTime(), nullable=True),
        sa.ForeignKeyConstraint(["tenant_id"], ["accounts.tenant_id"], name=op.f("fk_sources_tenant_id")),
        sa.PrimaryKeyConstraint("source_id", name=op.f("pk_sources")),
    )
    op.create_table(
        "documents",
        sa.Column("doc_id", sa.String(), nullable=False),
        sa.Column("source_id", sa.String(), nullable=False),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("library", sa.String(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("uri", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("mime", sa.String(), nullable=True),
        sa.Column("source_version", sa.String(), nullable=False),
        sa.Column("version_order", BigInt, nullable=False),
        sa.Column("fingerprint", sa.String(), nullable=False),
        sa.Column("content_hash", sa.String(), nullable=True),
        sa.Column("canonical_doc_id", sa.String(), nullable=False),
        sa.Column("bucket", sa.String(), nullable=True),
        sa.Column("acl_id", sa.String(), nullable=False),
        sa.Column("acl_error", sa.Text(), nullable=True),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("event_time", UtcDateTime(), nullable=False),
        sa.Column("seen_scan", BigInt, server_default="0", nullable=False),
        sa.Column("deleted_at", UtcDateTime(), nullable=True),
        sa.ForeignKeyConstraint(["source_id"], ["sources.source_id"], name=op.f("fk_documents_source_id")),
        sa.PrimaryKeyConstraint("doc_id", name=op.f("pk_documents")),
    )
    with op.batch_alter_table("documents", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_documents_source_id_content_hash"), ["source_id", "content_hash"], unique=False)
        batch_op.create_index(batch_op.f("ix_documents_source_id_path"), ["source_id", "path"], unique=False)
        batch_op.create_index(
            "ix_documents_unseen",
            ["source_id", "seen_scan"],
            unique=False,
            sqlite_where=sa.text("deleted_at IS NULL"),
            postgresql_where=sa.text("deleted_at IS NULL"),
        )
        batch_op.create_index(batch_op.f("ix_documents_uri"), ["uri"], unique=False)

    op.create_table(
        "chunks",
        sa.Column("index_version", sa.String(), nullable=False),
        sa.Column("chunk_id", sa.String(), nullable=False),
        sa.Column("added_gen", BigInt, nullable=False),
        sa.Column("doc_id", sa.String(), nullable=False),
        sa.Column("text_hash", sa.String(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("heading_path", Json, nullable=False),
        sa.Column("page", sa.Integer(), nullable=True),
        sa.Column("token_count", sa.Integer(), nullable=False),
        sa.Column("near_dup_group", sa.String(), nullable=True),
        sa.Column("suppressed", sa.Boolean(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(["doc_id"], ["documents.doc_id"], name=op.f("fk_chunks_doc_id")),
        sa.ForeignKeyConstraint(["index_version"], ["index_versions.name"], name=op.f("fk_chunks_index_version")),
        sa.PrimaryKeyConstraint("index_version", "chunk_id", name=op.f("pk_chunks")),
    )
    with op.batch_alter_table("chunks", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_chunks_doc_id_index_version"), ["doc_id", "index_version"], unique=False)

    op.create_table(
        "index_state",
        sa.Column("doc_id", sa.String(), nullable=False),
        sa.Column("index_version", sa.String(), nullable=False),
        sa.Column("generation", BigInt, nullable=False),
        sa.Column("previous_generation", BigInt, nullable=False),
        sa.Column("claimed_generation", BigInt, nullable=False),
        sa.Column("manifest", Json, nullable=False),
        sa.Column("acl_id", sa.String(), nullable=True),
        sa.Column("previous_content_hash", sa.String(), nullable=True),
        sa.Column("content_hash", sa.String(), nullable=True),
        sa.Column("indexed_version", sa.String(), nullable=True),
        sa.Column("outcome", sa.String(), nullable=True),
        sa.Column("attempt_ulid", sa.String(), nullable=True),
        sa.Column("flipped_at", UtcDateTime(), nullable=True),
        sa.Column("previous_flipped_at", UtcDateTime(), nullable=True),
        sa.ForeignKeyConstraint(["doc_id"], ["documents.doc_id"], name=op.f("fk_index_state_doc_id")),
        sa.ForeignKeyConstraint(["index_version"], ["index_versions.name"], name=op.f("fk_index_state_index_version")),
        sa.PrimaryKeyConstraint("doc_id", "index_version", name=op.f("pk_index_state")),
    )
    op.create_table(
        "jobs",
        sa.Column("job_id", BigInt, autoincrement=True, nullable=False),
        sa.Column("doc_id", sa.String(), nullable=False),
        sa.Column("source_id", sa.String(), nullable=False),
        sa.Column("source_version", sa.String(), nullable=False),
        sa.Column("content_hash", sa.String(), nullable=True),
        sa.Column("index_version", sa.String(), nullable=False),
        sa.Column("bucket", sa.String(), nullable=True),
        sa.Column("lane", sa.String(), nullable=False),
        sa.Column("operation", sa.String(), nullable=False),
        sa.Column("stage", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("not_before", UtcDateTime(), nullable=False),
        sa.Column("lease_owner", sa.String(), nullable=True),
        sa.Column("lease_epoch", BigInt, server_default="0", nullable=False),
        sa.Column("lease_until", UtcDateTime(), nullable=True),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("event_time", UtcDateTime(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("finished_at", UtcDateTime(), nullable=True),
        sa.Column("generation", BigInt, nullable=True),
        sa.Column("acl_id", sa.String(), nullable=True),
        sa.Column("parsed", sa.Integer(), server_default="0", nullable=False),
        sa.Column("chunks_new", sa.Integer(), server_default="0", nullable=False),
        sa.Column("chunks_kept", sa.Integer(), server_default="0", nullable=False),
        sa.Column("chunks_gone", sa.Integer(), server_default="0", nullable=False),
        sa.Column("embedded", sa.Integer(), server_default="0", nullable=False),
        sa.Column("cache_hits", sa.Integer(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(["doc_id"], ["documents.doc_id"], name=op.f("fk_jobs_doc_id")),
        sa.ForeignKeyConstraint(["index_version"], ["index_versions.name"], name=op.f("fk_jobs_index_version")),
        sa.PrimaryKeyConstraint("job_id", name=op.f("pk_jobs")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.create_index(
            "ix_jobs_dead", ["source_id"], unique=False, sqlite_where=sa.text("state = 'dead'"), postgresql_where=sa.text("state = 'dead'")
        )
        batch_op.create_index(batch_op.f("ix_jobs_doc_id_index_version"), ["doc_id", "index_version"], unique=False)
        batch_op.create_index(
            "ix_jobs_finished",
            ["finished_at"],
            unique=False,
            sqlite_where=sa.text("state IN ('indexed', 'superseded')"),
            postgresql_where=sa.text("state IN ('indexed', 'superseded')"),
        )
        batch_op.create_index(
            "ix_jobs_live",
            ["index_version", "bucket", "state", "not_before"],
            unique=False,
            sqlite_where=sa.text(_LIVE),
            postgresql_where=sa.text(_LIVE),
        )
        batch_op.create_index(batch_op.f("ix_jobs_source_id_finished_at"), ["source_id", "finished_at"], unique=False)
