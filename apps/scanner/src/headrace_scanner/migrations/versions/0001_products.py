"""Make the tables of products, sets, scans, observations, changes and attempts."""

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
        "products",
        sa.Column("product_id", sa.Text, primary_key=True),
        sa.Column("platform", sa.Text, nullable=False),
        sa.Column("external_id", sa.Text, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("name", sa.Text),
        sa.Column("price", sa.Float(53)),
        sa.Column("sale_status", sa.Text),
        sa.Column("scan_id", sa.Text),
        sa.Column("seen_at", sa.Float(53)),
        sa.Column("created_at", sa.Float(53), nullable=False),
        sa.Column("updated_at", sa.Float(53), nullable=False),
        sa.UniqueConstraint("platform", "external_id"),
    )
    op.create_index("products_platform", "products", ["platform", "product_id"])
    op.create_table(
        "product_sets",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column(
            "product_id",
            sa.Text,
            sa.ForeignKey("products.product_id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("position", sa.Integer, nullable=False),
    )
    op.create_index("product_sets_product", "product_sets", ["product_id"])
    op.create_table(
        "scans",
        sa.Column("scan_id", sa.Text, primary_key=True),
        sa.Column("platform", sa.Text, nullable=False),
        sa.Column("set_name", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("error", sa.Text),
        *(
            sa.Column(name, sa.Integer, nullable=False)
            for name in ("products", "seen", "changed", "blocked", "failed")
        ),
        sa.Column("written", sa.Boolean, nullable=False),
        sa.Column("report", sa.Text),
        sa.Column("created_at", sa.Float(53), nullable=False),
        sa.Column("updated_at", sa.Float(53), nullable=False),
    )
    op.create_index("scans_platform", "scans", ["platform", "scan_id"])
    op.create_index("scans_status", "scans", ["status", "scan_id"])
    op.create_table(
        "observations",
        sa.Column(
            "scan_id",
            sa.Text,
            sa.ForeignKey("scans.scan_id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("product_id", sa.Text, primary_key=True),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("name", sa.Text),
        sa.Column("price", sa.Float(53)),
        sa.Column("sale_status", sa.Text),
        sa.Column("error", sa.Text),
        sa.Column("at", sa.Float(53), nullable=False),
    )
    op.create_table(
        "changes",
        sa.Column("scan_id", sa.Text, primary_key=True),
        sa.Column("product_id", sa.Text, primary_key=True),
        sa.Column("field", sa.Text, primary_key=True),
        sa.Column("platform", sa.Text, nullable=False),
        sa.Column("before", sa.Text, nullable=False),
        sa.Column("after", sa.Text, nullable=False),
        sa.Column("at", sa.Float(53), nullable=False),
    )
    op.create_index("changes_at", "changes", ["at"])
    op.create_index("changes_platform", "changes", ["platform", "at"])
    op.create_table(
        "attempts",
        sa.Column("job_id", sa.Text, primary_key=True),
        sa.Column("token", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.Float(53), nullable=False),
    )


def downgrade() -> None:
    """Remove all tables."""
    for table in ("attempts", "changes", "observations", "scans", "product_sets", "products"):
        op.drop_table(table)
