"""How many pages a book has."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("books", sa.Column("pages", sa.Integer, nullable=True))
