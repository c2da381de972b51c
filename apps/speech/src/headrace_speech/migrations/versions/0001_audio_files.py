"""Make the tables of audio files and of deleted jobs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make both tables."""
    op.create_table(
        "audio_files",
        sa.Column("audio_file_id", sa.Text, primary_key=True),
        sa.Column("job_id", sa.Text, nullable=False, unique=True),
        sa.Column("user_name", sa.Text, nullable=False),
        sa.Column("provider", sa.Text, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("artifact", sa.Text, nullable=False),
        sa.Column("media_type", sa.Text, nullable=False),
        sa.Column("seconds", sa.Float(53), nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.Column("checksum", sa.Text, nullable=False),
        sa.Column("turns", sa.Integer, nullable=False),
        sa.Column("retry_count", sa.Integer, nullable=False),
        sa.Column("token", sa.BigInteger, nullable=False),
        sa.Column("created_at", sa.Float(53), nullable=False),
    )
    op.create_index("audio_files_order", "audio_files", ["created_at", "audio_file_id"])
    op.create_index("audio_files_user", "audio_files", ["user_name", "created_at", "audio_file_id"])
    op.create_table(
        "deleted_jobs",
        sa.Column("job_id", sa.Text, primary_key=True),
        sa.Column("deleted_at", sa.Float(53), nullable=False),
    )


def downgrade() -> None:
    """Remove both tables."""
    op.drop_table("deleted_jobs")
    op.drop_table("audio_files")
