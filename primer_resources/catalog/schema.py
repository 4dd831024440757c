"""The tables, one schema for SQLite and Postgres. Names are the contract of the design; columns may grow through Alembic."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import (
    Boolean,
    Column,
    ColumnElement,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    literal_column,
    text,
)

from primer_core.events import EventState
from primer_core.stages import HELD, WAITING
from primer_resources.catalog.types import BigInt, Json, Ulid, UtcDateTime

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

LIVE_STATES = tuple(state.value for state in (*WAITING, *HELD))
_LIVE = "state IN ({})".format(", ".join(f"'{state}'" for state in LIVE_STATES))


def in_states(column: ColumnElement[str], states: Iterable[str]) -> ColumnElement[bool]:
    """`column IN (…)`, or `column = …` for one, with the states spelled out: SQLite uses a partial index only where the statement repeats
    its condition word for word, which a bound parameter is not."""
    words: list[ColumnElement[str]] = [literal_column(f"'{state}'") for state in states]
    return column == words[0] if len(words) == 1 else column.in_(words)


def partial_index(where: str) -> dict[str, Any]:
    """The options of a partial index on both databases."""
    return {"sqlite_where": text(where), "postgresql_where": text(where)}


def _flagged(column: str) -> dict[str, Any]:
    """The options of a partial index over a true flag, which SQLite writes as a number."""
    return {"sqlite_where": text(f"{column} = 1"), "postgresql_where": text(column)}


deployment = Table(
    "deployment",
    metadata,
    Column("key", String, primary_key=True),
    Column("value", String, nullable=False),
)
"""What was fixed when the deployment was created, such as the number of buckets."""

accounts = Table(
    "accounts",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("active", Boolean, nullable=False),
)

drives = Table(
    "drives",
    metadata,
    Column("tenant_id", ForeignKey("accounts.tenant_id"), primary_key=True),
    Column("kind", String, primary_key=True),
    Column("url", Text, nullable=False),
    Column("region", String, nullable=False, server_default=""),
    Column("endpoint", Text, nullable=False, server_default=""),
    Column("credentials_ref", String),
)
"""Where a tenant's objects are: `kind` is intake or pipeline, the rest as in primer_core/drives.py."""

sources = Table(
    "sources",
    metadata,
    Column("source_id", String, primary_key=True),
    Column("tenant_id", ForeignKey("accounts.tenant_id"), nullable=False),
    Column("library", String, nullable=False),
    Column("type", String, nullable=False),
    Column("settings", Json, nullable=False),
    Column("credentials_ref", String),
    Column("webhook_secret_ref", String),
    Column("sync", String, nullable=False),
    Column("poll_interval_s", Integer, nullable=False),
    Column("cursor", Json),
    Column("scan", BigInt, nullable=False, server_default="0"),
    Column("lease_owner", String),
    Column("lease_epoch", BigInt, nullable=False, server_default="0"),
    Column("lease_until", UtcDateTime),
    Column("held_digest", String),
    Column("held_count", Integer, nullable=False, server_default="0"),
    Column("held_at", UtcDateTime),
    Column("last_synced_at", UtcDateTime),
    Column("last_began_at", UtcDateTime),
    Column("last_good_at", UtcDateTime),
    Column("turn_began_at", UtcDateTime),
    Column("progressed_at", UtcDateTime),
    Column("last_reconciled_at", UtcDateTime),
    Column("asked_at", UtcDateTime),
    Column("last_error", Text),
    Column("removed_at", UtcDateTime),
)
"""`last_good_at` is when the last sync ended that read all of the source without a problem. `turn_began_at` is when the newest sync took
the source, and `progressed_at` when it last committed something; it is under way while the lease holds."""

held_deletes = Table(
    "held_deletes",
    metadata,
    Column("source_id", ForeignKey("sources.source_id"), primary_key=True),
    Column("digest", String, primary_key=True),
    Column("state", String, nullable=False),
    Column("scan", BigInt, nullable=False),
    Column("documents", Integer, nullable=False),
    Column("reasons", Json, nullable=False),
    Column("held_at", UtcDateTime, nullable=False),
    Column("listed_at", UtcDateTime, nullable=False),
    Column("decided_at", UtcDateTime),
    Column("decided_by", String),
)
"""Sets of documents that a listing would have deleted and that were held, by the digest of their ids (primer_core/delete_guard.py).
`scan` is the newest listing that held the set, `held_at` when the first one did, `decided_by` the person who approved or rejected it."""

documents = Table(
    "documents",
    metadata,
    Column("doc_id", String, primary_key=True),
    Column("source_id", ForeignKey("sources.source_id"), nullable=False),
    Column("tenant_id", String, nullable=False),
    Column("library", String, nullable=False),
    Column("path", Text, nullable=False),
    Column("uri", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("container", Text),
    Column("mime", String),
    Column("source_version", String, nullable=False),
    Column("version_order", BigInt, nullable=False),
    Column("fingerprint", String, nullable=False),
    Column("content_hash", String),
    Column("canonical_doc_id", String, nullable=False),
    Column("bucket", String),
    Column("acl_id", String, nullable=False),
    Column("acl_error", Text),
    Column("told_acl_id", String),
    Column("acl_told_at", UtcDateTime),
    Column("status", String, nullable=False),
    Column("reason", String),
    Column("event_time", UtcDateTime, nullable=False),
    Column("missing_scan", BigInt),
    Column("fetch_again", Boolean, nullable=False, server_default=text("false")),
    Column("deleted_at", UtcDateTime),
    Index(None, "source_id", "path"),
    Index(None, "uri"),
    Index(None, "source_id", "content_hash"),
    Index(None, "content_hash"),
    Index("ix_documents_members", "source_id", "container", **partial_index("container IS NOT NULL")),
    Index("ix_documents_living", "source_id", "doc_id", **partial_index("deleted_at IS NULL")),
    Index("ix_documents_missing", "source_id", "doc_id", **partial_index("missing_scan IS NOT NULL")),
    Index("ix_documents_changing", "source_id", **partial_index("reason = 'changing'")),
    Index("ix_documents_acl", "acl_id", **partial_index("deleted_at IS NULL")),
    Index("ix_documents_bucket", "bucket", "doc_id", **partial_index("deleted_at IS NULL")),
)
"""`version_order` orders a document's versions: a newer one wins by compare-and-set, and a tombstone keeps its own.
`acl_error` says why the document's permissions could not be read; while it stands the document is hidden.
`missing_scan` is the scan since which complete listings do not show the document, while its delete is held.
`fetch_again` says that a replay waits for its bytes: the next sync that sees it fetches it, whatever it looks like.
`told_acl_id` is the ACL that an event gave the document, which then stands before what the source's own rules say; `acl_told_at` is the
time of the newest such event, whether it gave one or handed the document back to those rules.
`container` is the path of the listed mail or archive that the document is a member of, None for what is listed itself.
`canonical_doc_id` is the document whose rows stand for this one's content: the document itself, unless it is a copy."""

canonicals = Table(
    "canonicals",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("library", String, primary_key=True),
    Column("content_hash", String, primary_key=True),
    Column("doc_id", ForeignKey("documents.doc_id")),
    Index(None, "doc_id"),
)
"""The document whose rows stand for a content in a library; the other documents with that content are its copies. A row without a
document is locked by a transaction that has yet to choose one."""

acls = Table(
    "acls",
    metadata,
    Column("acl_id", String, primary_key=True),
    Column("tenant_id", String, nullable=False),
    Column("source_id", String, nullable=False),
    Column("scope", Text, nullable=False),
    Column("allow_groups", Json, nullable=False),
    Column("readable", Boolean, nullable=False),
    Column("error", Text, nullable=False, server_default=""),
    Column("updated_at", UtcDateTime, nullable=False),
)

acl_groups = Table(
    "acl_groups",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("group_name", String, primary_key=True),
    Column("acl_id", ForeignKey("acls.acl_id"), primary_key=True),
    Index(None, "acl_id"),
)
"""`acls.allow_groups` turned round, so that the ACL ids of a person's groups are one indexed look-up."""

index_versions = Table(
    "index_versions",
    metadata,
    Column("name", String, primary_key=True),
    Column("recipe", Json, nullable=False),
    Column("state", String, nullable=False),
    Column("sample", Text),
    Column("created_at", UtcDateTime, nullable=False),
    Column("retire_at", UtcDateTime),
)

aliases = Table(
    "aliases",
    metadata,
    Column("alias", String, primary_key=True),
    Column("index_version", ForeignKey("index_versions.name"), nullable=False),
)

lanes = Table(
    "lanes",
    metadata,
    Column("index_version", ForeignKey("index_versions.name"), primary_key=True),
    Column("bucket", String, primary_key=True),
    Column("owner", String),
    Column("epoch", BigInt, nullable=False),
    Column("until", UtcDateTime),
)
"""One writer a (index version, bucket); the epoch fences a holder that lost it."""

holders = Table(
    "holders",
    metadata,
    Column("owner", String, primary_key=True),
    Column("until", UtcDateTime, nullable=False),
)
"""The runs that are alive: each beats here while a step of it works, whatever it holds at that moment."""

jobs = Table(
    "jobs",
    metadata,
    Column("job_id", BigInt, primary_key=True, autoincrement=True),
    Column("doc_id", ForeignKey("documents.doc_id"), nullable=False),
    Column("source_id", String, nullable=False),
    Column("source_version", String, nullable=False),
    Column("content_hash", String),
    Column("index_version", ForeignKey("index_versions.name"), nullable=False),
    Column("bucket", String),
    Column("lane", String, nullable=False),
    Column("operation", String, nullable=False),
    Column("stage", String, nullable=False),
    Column("state", String, nullable=False),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("not_before", UtcDateTime, nullable=False),
    Column("lease_owner", String),
    Column("lease_epoch", BigInt, nullable=False, server_default="0"),
    Column("lease_until", UtcDateTime),
    Column("reason", String),
    Column("error", Text),
    Column("event_time", UtcDateTime, nullable=False),
    Column("changed_at", UtcDateTime),
    Column("created_at", UtcDateTime, nullable=False),
    Column("finished_at", UtcDateTime),
    Column("generation", BigInt),
    Column("attempt_ulid", Ulid),
    Column("acl_ids", Json),
    Column("accepted_pages", Text, nullable=False, server_default=""),
    Column("parsed", Integer, nullable=False, server_default="0"),
    Column("chunks_new", Integer, nullable=False, server_default="0"),
    Column("chunks_kept", Integer, nullable=False, server_default="0"),
    Column("chunks_gone", Integer, nullable=False, server_default="0"),
    Column("embedded", Integer, nullable=False, server_default="0"),
    Column("cache_hits", Integer, nullable=False, server_default="0"),
    Column("backfill_id", BigInt),
    Column("gives_way", Boolean, nullable=False, server_default=text("false")),
    Index("ix_jobs_live", "index_version", "bucket", "state", "not_before", **partial_index(_LIVE)),
    Index(None, "doc_id", "index_version"),
    Index(None, "source_id", "finished_at"),
    Index("ix_jobs_access", "index_version", "bucket", "state", **partial_index(f"lane = 'access' AND {_LIVE}")),
    Index("ix_jobs_finished", "finished_at", **partial_index("state IN ('indexed', 'superseded')")),
    Index("ix_jobs_fresh", "index_version", "finished_at", **partial_index("state = 'indexed' AND changed_at IS NOT NULL")),
    Index("ix_jobs_dead", "source_id", **partial_index("state = 'dead'")),
    Index("ix_jobs_backfill", "backfill_id", "state", **partial_index("backfill_id IS NOT NULL")),
    sqlite_autoincrement=True,  # ids are never reused, so "the newer job" stays true after pruning
)
"""`event_time` is the source's clock. `changed_at` is from when freshness counts: the event, or the begin of the sync before the one that
learned of it where that is later, since the change was in the source's sight only after that one (a file keeps its old time when it is
moved in). It is null for what the first sync of a source finds, for what a person put back, and for a backfill's.
`backfill_id` is the backfill that made the job; with `gives_way` it waits while live work is late. A live copy that needs the job takes
that from it."""

index_state = Table(
    "index_state",
    metadata,
    Column("doc_id", ForeignKey("documents.doc_id"), primary_key=True),
    Column("index_version", ForeignKey("index_versions.name"), primary_key=True),
    Column("generation", BigInt, nullable=False),
    Column("previous_generation", BigInt, nullable=False),
    Column("claimed_generation", BigInt, nullable=False),
    Column("manifest", Json, nullable=False),
    Column("acl_ids", Json),
    Column("content_hash", String),
    Column("previous_content_hash", String),
    Column("accepted_pages", Text, nullable=False, server_default=""),
    Column("previous_accepted_pages", Text, nullable=False, server_default=""),
    Column("flipped_at", UtcDateTime),
    Column("previous_flipped_at", UtcDateTime),
    Column("is_copy", Boolean, nullable=False, server_default=text("false")),
    Column("previous_is_copy", Boolean, nullable=False, server_default=text("false")),
    Index("ix_index_state_copies", "index_version", "content_hash", **_flagged("is_copy")),
    Index("ix_index_state_previous_copies", "index_version", "previous_content_hash", **_flagged("previous_is_copy")),
)
"""`manifest` maps chunk_id → added_gen. `acl_ids`, `content_hash` and `accepted_pages` (the label of the pages that a person let through)
are what the rows of `generation` were written with. A document with `is_copy` has no rows: those of its content's canonical document
stand for it."""

ledger = Table(
    "ledger",
    metadata,
    Column("doc_id", ForeignKey("documents.doc_id"), primary_key=True),
    Column("index_version", ForeignKey("index_versions.name"), primary_key=True),
    Column("source_id", String, nullable=False),
    Column("attempt_ulid", Ulid, nullable=False),
    Column("outcome", String, nullable=False),
    Column("source_version", String, nullable=False),
    Column("content_hash", String),
    Column("reason", String),
    Column("error", Text),
    Column("job_id", BigInt),
    Column("ended_at", UtcDateTime, nullable=False),
    Column("indexed_ulid", Ulid),
    Column("indexed_version", String),
    Column("chunks", Integer, nullable=False),
    Column("indexed_at", UtcDateTime),
    Index("ix_ledger_outcome", "index_version", "outcome", "doc_id", "ended_at"),
    Index("ix_ledger_source_outcome", "index_version", "source_id", "outcome", "doc_id", "ended_at"),
)
"""How the newest attempt to index a document ended (`attempt_ulid` to `ended_at`), and what stands of it in the indexes since the newest
attempt that changed them (`indexed_ulid` to `indexed_at`). Each half only moves on to a greater ULID. `chunks` are the document's own
passages; a copy has none."""

chunks = Table(
    "chunks",
    metadata,
    Column("index_version", ForeignKey("index_versions.name"), primary_key=True),
    Column("chunk_id", String, primary_key=True),
    Column("added_gen", BigInt, nullable=False),
    Column("doc_id", ForeignKey("documents.doc_id"), nullable=False),
    Column("text_hash", String, nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("heading_path", Json, nullable=False),
    Column("page", Integer),
    Column("token_count", Integer, nullable=False),
    Column("near_dup_group", String),
    Column("suppressed", Boolean, nullable=False, server_default="0"),
    Index(None, "doc_id", "index_version"),
    Index(None, "text_hash"),
)
"""The passages that the indexes hold of a document. `text_hash` is of the string that was embedded: it says whether a vector is still
somebody's."""

intents = Table(
    "intents",
    metadata,
    Column("index_version", ForeignKey("index_versions.name"), primary_key=True),
    Column("row_id", String, primary_key=True),
    Column("doc_id", String, nullable=False),
    Column("bucket", String, nullable=False),
    Column("generation", BigInt, nullable=False),
    Index(None, "doc_id", "index_version"),
)
"""Rows about to be written: what a crash may have left in an index without a flip."""

purges_due = Table(
    "purges_due",
    metadata,
    Column("index_version", ForeignKey("index_versions.name"), primary_key=True),
    Column("row_id", String, primary_key=True),
    Column("doc_id", String, nullable=False),
    Column("bucket", String, nullable=False),
    Column("dead_gen", BigInt, nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("done_at", UtcDateTime),
    Index("ix_purges_due_waiting", "index_version", "bucket", "at", **partial_index("done_at IS NULL")),
    Index("ix_purges_due_done", "done_at", **partial_index("done_at IS NOT NULL")),
    Index(None, "doc_id"),
)

events = Table(
    "events",
    metadata,
    Column("seq", BigInt, primary_key=True, autoincrement=True),
    Column("source_id", ForeignKey("sources.source_id"), nullable=False),
    Column("event_id", String, nullable=False),
    Column("path", Text, nullable=False),
    Column("doc_id", String),
    Column("op", String, nullable=False),
    Column("source_version", String, nullable=False),
    Column("acl_groups", Json),
    Column("content_uri", Text),
    Column("event_time", UtcDateTime, nullable=False),
    Column("received_at", UtcDateTime, nullable=False),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("not_before", UtcDateTime, nullable=False),
    Column("state", String, nullable=False),
    Column("error", Text),
    Column("finished_at", UtcDateTime),
    Index("uq_events_source_id_event_id", "source_id", "event_id", unique=True),
    Index("ix_events_waiting", "source_id", "not_before", **partial_index(f"state = '{EventState.WAITING}'")),
    Index("ix_events_waiting_path", "source_id", "path", **partial_index(f"state = '{EventState.WAITING}'")),
    Index("ix_events_dead", "source_id", "seq", **partial_index(f"state = '{EventState.DEAD}'")),
    Index("ix_events_done", "finished_at", **partial_index(f"state = '{EventState.DONE}'")),
    sqlite_autoincrement=True,  # ids are never reused: operators name them
)
"""The inbox: what was told and when, until the source was asked. `path` is where the document stood when the event came; `doc_id` is set
where it was known then. `acl_groups` is JSON null where an acl event hands the document back to the source's own rules."""

api_tokens = Table(
    "api_tokens",
    metadata,
    Column("token_id", String, primary_key=True),
    Column("tenant_id", ForeignKey("accounts.tenant_id"), nullable=False),
    Column("name", String, nullable=False),
    Column("role", String, nullable=False),
    Column("secret_hash", String, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("revoked_at", UtcDateTime),
    Index("uq_api_tokens_name", "tenant_id", "name", unique=True, **partial_index("revoked_at IS NULL")),
)
"""Bearer tokens of the HTTP API. `token_id` is the part of a token that finds it, `secret_hash` the SHA-256 of the part that proves it."""
