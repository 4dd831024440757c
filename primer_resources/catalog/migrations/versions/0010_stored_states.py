"""Contents by tenant, stored states with their manifests, and the objects that are freed."""

import sqlalchemy as sa
from alembic import op

from primer_core.failures import PrimerError
from primer_resources.catalog.types import BigInt, Json, UtcDateTime

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

NO_BLANK = " AND ".join(f"trim({name}, ' \t\n\r') <> ''" for name in ("doc_id", "node", "tenant_id", "graph"))
NO_MIXED = (
    "(graph = 'intake:' || tenant_id AND node = 'intake' AND state <> 'superseded') OR "
    "(graph = 'intake:' || tenant_id AND node = 'intake/' || content_hash AND state = 'superseded') OR "
    "(graph = 'pipeline:' || tenant_id AND node NOT LIKE 'intake%' AND doc_id = content_hash AND state = 'live')"
)
STATE = "(state = 'live' AND doomed_at IS NULL) OR (state IN ('superseded', 'pending_purge') AND doomed_at IS NOT NULL)"
REFUSAL = "purge_proofs is append-only"
APPEND_ONLY = {
    "sqlite": [
        f"CREATE TRIGGER purge_proofs_{verb.lower()} BEFORE {verb} ON purge_proofs BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END"
        for verb in ("UPDATE", "DELETE")
    ]
    + [  # INSERT OR REPLACE deletes without asking the delete's trigger
        "CREATE TRIGGER purge_proofs_replace BEFORE INSERT ON purge_proofs "
        "WHEN EXISTS (SELECT 1 FROM purge_proofs WHERE purge_id = NEW.purge_id) "
        f"BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END"
    ],
    "postgresql": [
        f"CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION '{REFUSAL}'; END $$",
        "CREATE TRIGGER purge_proofs_kept BEFORE UPDATE OR DELETE ON purge_proofs FOR EACH ROW EXECUTE FUNCTION refuse_change()",
        "CREATE TRIGGER purge_proofs_all_kept BEFORE TRUNCATE ON purge_proofs FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()",
    ],
}


def _of_content(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["tenant_id", "content_hash"],
        ["contents.tenant_id", "contents.content_hash"],
        name=op.f(f"fk_{table}_tenant_id_content_hash"),
        ondelete="RESTRICT",
    )


def upgrade() -> None:
    if op.get_bind().execute(sa.text("SELECT 1 FROM contents LIMIT 1")).first() is not None:
        raise PrimerError(
            "this deployment keeps its bodies in the layout of an older Primer, without manifests; "
            "run `primer reset`, add its sources again and run `primer sync`: everything is read from the sources"
        )
    for table in ("reviews", "parsed", "contents"):
        op.drop_table(table)
    op.create_table(
        "contents",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("content_hash", sa.String(), nullable=False),
        sa.Column("size", BigInt, nullable=False),
        sa.Column("mime", sa.String(), nullable=False),
        sa.Column("lane", sa.String(), nullable=False),
        sa.Column("pages", sa.Integer(), nullable=True),
        sa.Column("object", sa.Text(), nullable=True),
        sa.Column("unowned_at", UtcDateTime(), nullable=True),
        sa.ForeignKeyConstraint(["tenant_id"], ["accounts.tenant_id"], name=op.f("fk_contents_tenant_id")),
        sa.PrimaryKeyConstraint("tenant_id", "content_hash", name=op.f("pk_contents")),
    )
    unowned = sa.text("unowned_at IS NOT NULL")
    op.create_index("ix_contents_unowned", "contents", ["unowned_at"], sqlite_where=unowned, postgresql_where=unowned)
    op.create_table(
        "parsed",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("content_hash", sa.String(), nullable=False),
        sa.Column("parser_version", sa.String(), nullable=False),
        sa.Column("elements", sa.Integer(), nullable=True),
        sa.Column("pages", sa.Integer(), nullable=True),
        sa.Column("ocr_confidence", sa.Integer(), nullable=True),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("text_kept", sa.Float(), nullable=True),
        sa.Column("losses", Json, nullable=True),
        _of_content("parsed"),
        sa.PrimaryKeyConstraint("tenant_id", "content_hash", "parser_version", name=op.f("pk_parsed")),
    )
    op.create_table(
        "reviews",
        sa.Column("tenant_id", sa.String(), nullable=False),
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
        _of_content("reviews"),
        sa.PrimaryKeyConstraint("tenant_id", "content_hash", "page", "region", name=op.f("pk_reviews")),
    )
    is_open = sa.text("state = 'open'")
    op.create_index("ix_reviews_open", "reviews", ["tenant_id", "content_hash"], sqlite_where=is_open, postgresql_where=is_open)
    op.create_table(
        "stored_states",
        sa.Column("node_id", sa.String(), nullable=False),
        sa.Column("doc_id", sa.String(), nullable=False),
        sa.Column("node", sa.String(), nullable=False),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("graph", sa.String(), nullable=False),
        sa.Column("content_hash", sa.String(), nullable=False),
        sa.Column("manifest", Json, nullable=False),
        sa.Column("revision", BigInt, nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=False),
        sa.Column("doomed_at", UtcDateTime(), nullable=True),
        sa.Column("look_at", UtcDateTime(), nullable=True),
        _of_content("stored_states"),
        sa.CheckConstraint(NO_BLANK, name="ck_no_blank_identity"),
        sa.CheckConstraint(NO_MIXED, name="ck_no_mixed_identity"),
        sa.CheckConstraint(STATE, name="ck_state"),
        sa.PrimaryKeyConstraint("node_id", name=op.f("pk_stored_states")),
    )
    op.create_index("uq_stored_states_identity", "stored_states", ["doc_id", "node", "tenant_id", "graph"], unique=True)
    op.create_index("ix_stored_states_tenant_id_content_hash", "stored_states", ["tenant_id", "content_hash"])
    doomed = sa.text("look_at IS NOT NULL")
    op.create_index("ix_stored_states_doomed", "stored_states", ["look_at"], sqlite_where=doomed, postgresql_where=doomed)
    op.create_table(
        "purges",
        sa.Column("purge_id", BigInt, nullable=False),
        sa.Column("facts", Json, nullable=False),
        sa.Column("released_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("purge_id", name=op.f("pk_purges")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_purges_released_at"), "purges", ["released_at"])
    op.create_table(
        "purge_proofs",
        sa.Column("purge_id", BigInt, autoincrement=False, nullable=False),
        sa.Column("doc_id", sa.String(), nullable=False),
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("source_id", sa.String(), nullable=False),
        sa.Column("library", sa.String(), nullable=False),
        sa.Column("uri", sa.Text(), nullable=False),
        sa.Column("contents", Json, nullable=False),
        sa.Column("looked_at", Json, nullable=False),
        sa.Column("deleted_at", UtcDateTime(), nullable=False),
        sa.Column("purged_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("purge_id", name=op.f("pk_purge_proofs")),
    )
    op.create_index(op.f("ix_purge_proofs_doc_id"), "purge_proofs", ["doc_id"])
    op.create_index(op.f("ix_purge_proofs_tenant_id_purged_at"), "purge_proofs", ["tenant_id", "purged_at"])
    for statement in APPEND_ONLY[op.get_bind().dialect.name]:
        op.execute(statement)
    op.create_table(
        "freed_objects",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("object_key", sa.Text(), nullable=False),
        sa.Column("freed_at", UtcDateTime(), nullable=False),
        sa.Column("purge_id", BigInt, nullable=True),
        sa.Column("forgotten_at", UtcDateTime(), nullable=True),
        sa.Column("forgotten_vectors", BigInt, nullable=True),
        sa.ForeignKeyConstraint(["purge_id"], ["purges.purge_id"], name=op.f("fk_freed_objects_purge_id")),
        sa.PrimaryKeyConstraint("tenant_id", "kind", "object_key", name=op.f("pk_freed_objects")),
    )
    alone = sa.text("purge_id IS NULL")
    op.create_index("ix_freed_objects_alone", "freed_objects", ["freed_at"], sqlite_where=alone, postgresql_where=alone)
    op.create_index(op.f("ix_freed_objects_purge_id"), "freed_objects", ["purge_id"])
    op.create_index(op.f("ix_purges_due_doc_id"), "purges_due", ["doc_id"])
    op.create_index(op.f("ix_chunks_text_hash"), "chunks", ["text_hash"])
