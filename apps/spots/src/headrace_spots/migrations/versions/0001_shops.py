"""Make the tables of shops, runs, reviews, analysis and vectors."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make all tables."""
    op.create_table(
        "stores",
        sa.Column("store_id", sa.Text, primary_key=True),
        sa.Column("url", sa.Text, nullable=False, unique=True),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("name", sa.Text),
        sa.Column("kind", sa.Text),
        sa.Column("address", sa.Text),
        sa.Column("run_id", sa.Text),
        sa.Column("created_at", sa.Float(53), nullable=False),
        sa.Column("updated_at", sa.Float(53), nullable=False),
    )
    op.create_table(
        "store_snapshots",
        sa.Column("run_id", sa.Text, primary_key=True),
        sa.Column(
            "store_id",
            sa.Text,
            sa.ForeignKey("stores.store_id", ondelete="CASCADE"),
            nullable=False,
        ),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("progress", sa.Integer, nullable=False),
        sa.Column("error", sa.Text),
        sa.Column("token", sa.BigInteger, nullable=False),
        sa.Column("pages", sa.Integer, nullable=False),
        sa.Column("reviews", sa.Integer, nullable=False),
        sa.Column("rating", sa.Float(53)),
        sa.Column("positive", sa.Integer, nullable=False),
        sa.Column("negative", sa.Integer, nullable=False),
        sa.Column("neutral", sa.Integer, nullable=False),
        sa.Column("report", sa.Text),
        sa.Column("asked_by", sa.Text, unique=True),
        sa.Column("owner", sa.Text),
        sa.Column("created_at", sa.Float(53), nullable=False),
        sa.Column("updated_at", sa.Float(53), nullable=False),
    )
    op.create_index("store_snapshots_store", "store_snapshots", ["store_id", "run_id"])
    op.create_index("store_snapshots_status", "store_snapshots", ["status", "run_id"])
    op.create_table(
        "reviews",
        sa.Column("run_id", sa.Text, _of_run(), primary_key=True),
        sa.Column("review_id", sa.Text, primary_key=True),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("rating", sa.Float(53)),
        sa.Column("day", sa.Text),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("label", sa.Text, nullable=False),
        sa.Column("score", sa.Float(53), nullable=False),
    )
    op.create_table(
        "analysis",
        sa.Column("run_id", sa.Text, _of_run(), primary_key=True),
        sa.Column("body", sa.JSON, nullable=False),
    )
    op.create_table(
        "embeddings",
        sa.Column("run_id", sa.Text, primary_key=True),
        sa.Column("review_id", sa.Text, primary_key=True),
        sa.Column("sentences", sa.Integer, nullable=False),
        sa.Column("vectors", sa.LargeBinary, nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id", "review_id"], ["reviews.run_id", "reviews.review_id"], ondelete="CASCADE"
        ),
    )


def _of_run() -> sa.ForeignKey:
    return sa.ForeignKey("store_snapshots.run_id", ondelete="CASCADE")


def downgrade() -> None:
    """Remove all tables."""
    for table in ("embeddings", "analysis", "reviews", "store_snapshots", "stores"):
        op.drop_table(table)
