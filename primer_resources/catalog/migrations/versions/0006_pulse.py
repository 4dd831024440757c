"""A lane of its own for deletes and permission changes; what freshness and a source's health are told from"""

import sqlalchemy as sa
from alembic import op

from primer_resources.catalog.types import UtcDateTime

revision = "0006"
down_revision = "0005"

_LIVE = "state IN ('pending_parse', 'pending_chunk', 'pending_embed', 'pending_write', 'parsing', 'chunking', 'embedding', 'writing')"
ACCESS = sa.text(f"lane = 'access' AND {_LIVE}")
FRESH = sa.text("state = 'indexed' AND changed_at IS NOT NULL")


def upgrade() -> None:
    for name in ("last_good_at", "turn_began_at", "progressed_at"):
        op.add_column("sources", sa.Column(name, UtcDateTime(), nullable=True))
    op.execute("UPDATE sources SET last_good_at = last_began_at WHERE last_error IS NULL")
    op.add_column("jobs", sa.Column("changed_at", UtcDateTime(), nullable=True))
    op.execute("UPDATE jobs SET lane = 'access' WHERE operation IN ('acl', 'delete')")
    op.create_index("ix_jobs_access", "jobs", ["index_version", "bucket", "state"], sqlite_where=ACCESS, postgresql_where=ACCESS)
    op.create_index("ix_jobs_fresh", "jobs", ["index_version", "finished_at"], sqlite_where=FRESH, postgresql_where=FRESH)
