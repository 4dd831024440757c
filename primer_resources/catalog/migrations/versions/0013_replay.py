"""Documents that their source is to be asked for again"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.add_column("documents", sa.Column("fetch_again", sa.Boolean(), server_default=sa.text("false"), nullable=False))
