"""How much of a source's text its parse kept"""

import sqlalchemy as sa
from alembic import op

from primer_resources.catalog.types import Json

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("parsed", sa.Column("text_kept", sa.Float(), nullable=True))
    op.add_column("parsed", sa.Column("losses", Json, nullable=True))
