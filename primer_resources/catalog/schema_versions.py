"""The tables of building and judging index versions: backfills, how far they came, and what the checks found."""

from sqlalchemy import Boolean, Column, Float, ForeignKey, Index, String, Table, Text

from primer_resources.catalog.schema import partial_index
from primer_resources.catalog.schema_bodies import metadata as metadata
from primer_resources.catalog.types import BigInt, Json, UtcDateTime

backfills = Table(
    "backfills",
    metadata,
    Column("backfill_id", BigInt, primary_key=True, autoincrement=True),
    Column("index_version", ForeignKey("index_versions.name"), nullable=False),
    Column("reason", String, nullable=False),
    Column("state", String, nullable=False),
    Column("max_docs_per_s", Float),
    Column("earned_since", UtcDateTime, nullable=False),
    Column("total", BigInt, nullable=False),
    Column("taken_up", BigInt, nullable=False),
    Column("standing", BigInt, nullable=False),
    Column("asked", BigInt, nullable=False),
    Column("begun_at", UtcDateTime, nullable=False),
    Column("ended_at", UtcDateTime),
    Index("uq_backfills_open", "index_version", unique=True, **partial_index("state IN ('running', 'paused')")),
    sqlite_autoincrement=True,  # ids are never reused: jobs name them
)
"""`total` is how many documents lived when it was begun. `taken_up` counts those that were looked at since: of them `standing` were in the
version already, or had their dead letter carried over, and `asked` wait for their source to be asked for their bytes; the others got a job.
`earned_since` is from when on `max_docs_per_s` earns documents."""

backfill_buckets = Table(
    "backfill_buckets",
    metadata,
    Column("backfill_id", ForeignKey("backfills.backfill_id"), primary_key=True),
    Column("bucket", String, primary_key=True),
    Column("after", String, nullable=False),
    Column("is_ended", Boolean, nullable=False),
)
"""The snapshot, a cursor a bucket: the documents up to `after` by doc_id were taken up. The bucket "" is of those that have none yet, since
their bytes were never read."""

version_checks = Table(
    "version_checks",
    metadata,
    Column("index_version", ForeignKey("index_versions.name"), primary_key=True),
    Column("name", String, primary_key=True),
    Column("passed", Boolean, nullable=False),
    Column("words", Text, nullable=False),
    Column("figures", Json, nullable=False),
    Column("measured_at", UtcDateTime, nullable=False),
)
"""The newest result of each check of an index version. `measured_at` is when the check began to look."""
