"""The tables of bodies: contents, what was made of them, and the stored states that own their objects. Whose a content is, is always told
with its tenant: two tenants with equal bytes have two contents, on drives of their own."""

from sqlalchemy import CheckConstraint, Column, Float, ForeignKey, ForeignKeyConstraint, Index, Integer, String, Table, Text

from primer_core.reviews import ReviewState
from primer_core.stored_states import INTAKE_NODE, DriveKind
from primer_resources.catalog.schema import metadata as metadata
from primer_resources.catalog.schema import partial_index
from primer_resources.catalog.types import BigInt, Json, UtcDateTime


def _of_content() -> ForeignKeyConstraint:
    """The rows of a content. RESTRICT: a content goes only when nothing refers to it any more, and the database decides that."""
    return ForeignKeyConstraint(["tenant_id", "content_hash"], ["contents.tenant_id", "contents.content_hash"], ondelete="RESTRICT")


contents = Table(
    "contents",
    metadata,
    Column("tenant_id", ForeignKey("accounts.tenant_id"), primary_key=True),
    Column("content_hash", String, primary_key=True),
    Column("size", BigInt, nullable=False),
    Column("mime", String, nullable=False),
    Column("lane", String, nullable=False),
    Column("pages", Integer),
    Column("object", Text),
    Column("unowned_at", UtcDateTime),
    Index(None, "tenant_id", "object"),
    Index("ix_contents_unowned", "unowned_at", **partial_index("unowned_at IS NOT NULL")),
)
"""`lane` is where a content is parsed; `pages` its number of pages, where they were counted before the parse. `object` is the key of its
bytes on the tenant's intake drive, null where they were deleted after they were indexed; a content that comes back after it was freed, or
whose bytes do, gets another one. `unowned_at` is since when perhaps no
document has it: a sync has just stored it, or a document has left it."""

parsed = Table(
    "parsed",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("content_hash", String, primary_key=True),
    Column("parser_version", String, primary_key=True),
    Column("elements", Integer),
    Column("pages", Integer),
    Column("ocr_confidence", Integer),
    Column("reason", String),
    Column("text_kept", Float),
    Column("losses", Json),
    _of_content(),
)
"""`parser_version` here is that of the output: the parser's own, and the pages that a person let through (primer_core/reviews.py).
`text_kept` is the share (0 to 1) of the source's words that are in the elements or in a named loss; `losses` are those, name → words."""

reviews = Table(
    "reviews",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("content_hash", String, primary_key=True),
    Column("page", Integer, primary_key=True),
    Column("region", Integer, primary_key=True),
    Column("parser_version", String, nullable=False),
    Column("confidence", Float, nullable=False),
    Column("text", Text, nullable=False),
    Column("object", Text, nullable=False),
    Column("state", String, nullable=False),
    Column("decided_at", UtcDateTime),
    Column("decided_by", String),
    _of_content(),
    Index("ix_reviews_open", "tenant_id", "content_hash", **partial_index(f"state = '{ReviewState.OPEN}'")),
)
"""Pages that were read below the bar. `region` counts those of one page from 0; a decision is on the whole page. A row is of a content,
whatever documents have it and whichever parser reads it next, so a page that was decided is never asked again."""

LIVE, SUPERSEDED, PENDING_PURGE = "live", "superseded", "pending_purge"
_NO_BLANK = " AND ".join(f"trim({name}, ' \t\n\r') <> ''" for name in ("doc_id", "node", "tenant_id", "graph"))
_IS_INTAKE = f"graph = '{DriveKind.INTAKE}:' || tenant_id"
_INTAKE = f"{_IS_INTAKE} AND node = '{INTAKE_NODE}' AND state <> '{SUPERSEDED}'"
_EARLIER = f"{_IS_INTAKE} AND node = '{INTAKE_NODE}/' || content_hash AND state = '{SUPERSEDED}'"
_IS_PIPELINE = f"graph = '{DriveKind.PIPELINE}:' || tenant_id"
_PIPELINE = f"{_IS_PIPELINE} AND node NOT LIKE '{INTAKE_NODE}%' AND doc_id = content_hash AND state = '{LIVE}'"

stored_states = Table(
    "stored_states",
    metadata,
    Column("node_id", String, primary_key=True),
    Column("doc_id", String, nullable=False),
    Column("node", String, nullable=False),
    Column("tenant_id", String, nullable=False),
    Column("graph", String, nullable=False),
    Column("content_hash", String, nullable=False),
    Column("manifest", Json, nullable=False),
    Column("revision", BigInt, nullable=False),
    Column("state", String, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Column("doomed_at", UtcDateTime),
    Column("look_at", UtcDateTime),
    _of_content(),
    CheckConstraint(_NO_BLANK, name="ck_no_blank_identity"),
    CheckConstraint(f"({_INTAKE}) OR ({_EARLIER}) OR ({_PIPELINE})", name="ck_no_mixed_identity"),
    CheckConstraint(
        f"(state = '{LIVE}' AND doomed_at IS NULL) OR (state IN ('{SUPERSEDED}', '{PENDING_PURGE}') AND doomed_at IS NOT NULL)",
        name="ck_state",
    ),
    Index("uq_stored_states_identity", "doc_id", "node", "tenant_id", "graph", unique=True),
    Index(None, "tenant_id", "content_hash"),
    Index(None, "graph", "node_id"),
    Index("ix_stored_states_doomed", "look_at", **partial_index("look_at IS NOT NULL")),
)
"""A manifest a state (primer_core/stored_states.py). `revision` is what a change of the manifest is guarded by. An intake state owns a
content for its document, and a superseded one the content that the document had before, as long as indexes still serve it; a pipeline state
is of the content itself and goes with it. `doomed_at` is when the document was deleted or got another content, `look_at` from when it is
looked whether the state can go."""

freed_objects = Table(
    "freed_objects",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("kind", String, primary_key=True),
    Column("object_key", Text, primary_key=True),
    Column("freed_at", UtcDateTime, nullable=False),
    Column("purge_id", ForeignKey("purges.purge_id")),
    Column("forgotten_at", UtcDateTime),
    Column("forgotten_vectors", BigInt),
    Index("ix_freed_objects_alone", "freed_at", **partial_index("purge_id IS NULL")),
    Index(None, "purge_id"),
)
"""Objects that no row owns any more and whose bytes are still to go; written in the transaction that took the owner away. `purge_id` is the
purge whose proof waits for that. `forgotten_at` is when a chunk set had been read and the vectors that only it had, so many, had left the
caches; it is committed before the bytes go."""

purges = Table(
    "purges",
    metadata,
    Column("purge_id", BigInt, primary_key=True, autoincrement=True),
    Column("facts", Json, nullable=False),
    Column("released_at", UtcDateTime, nullable=False),
    Index(None, "released_at"),
    sqlite_autoincrement=True,  # ids are never reused: a proof keeps its purge's
)
"""Purges under way: the catalog has let go of a document's bodies, and what it knew of them is here until they are gone."""

purge_proofs = Table(
    "purge_proofs",
    metadata,
    Column("purge_id", BigInt, primary_key=True, autoincrement=False),
    Column("doc_id", String, nullable=False),
    Column("tenant_id", String, nullable=False),
    Column("source_id", String, nullable=False),
    Column("library", String, nullable=False),
    Column("uri", Text, nullable=False),
    Column("contents", Json, nullable=False),
    Column("looked_at", Json, nullable=False),
    Column("deleted_at", UtcDateTime, nullable=False),
    Column("purged_at", UtcDateTime, nullable=False),
    Index(None, "doc_id"),
    Index(None, "tenant_id", "purged_at"),
)
"""Append-only: that a document's bodies are gone, what they were, and where it was looked. `contents` are its contents with hashes, sizes
and manifests; one that other documents have stays, and says so. The database refuses to change or delete a row."""

coherence = Table(
    "coherence",
    metadata,
    Column("tenant_id", ForeignKey("accounts.tenant_id"), primary_key=True),
    Column("kind", String, primary_key=True),
    Column("checked_at", UtcDateTime, nullable=False),
    Column("figures", Json, nullable=False),
)
"""The newest look at each drive (primer_core/coherence.py): whoever asks how drives and catalog agree reads this, and lists no objects."""
