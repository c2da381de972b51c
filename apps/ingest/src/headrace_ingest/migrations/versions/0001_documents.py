"""Make the tables of documents, chunks, vectors and changes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from pgvector.sqlalchemy import HALFVEC
from sqlalchemy.exc import DBAPIError

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make all tables. Vectors are of pgvector's type if the server has it or may install it."""
    # "C": paths are compared byte by byte in every locale.
    path = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    op.create_table(
        "documents",
        sa.Column("document_id", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("path", path, nullable=False),
        sa.Column("sha256", sa.Text, nullable=False),
        sa.Column("media_type", sa.Text),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("stage", sa.Text, nullable=False),
        sa.Column("progress", sa.Integer, nullable=False),
        sa.Column("error", sa.Text),
        sa.Column("characters", sa.Integer, nullable=False),
        sa.Column("chunks", sa.Integer, nullable=False),
        sa.Column("personal_data", sa.JSON, nullable=False),
        sa.Column("metadata", sa.JSON, nullable=False),
        sa.Column("owner", sa.Text),
        sa.Column("model", sa.Text),
        sa.Column("token", sa.BigInteger, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("artifact", sa.Text),
        sa.Column("replaced_by", sa.Text),
        sa.Column("created_at", sa.Float(53), nullable=False),
        sa.Column("updated_at", sa.Float(53), nullable=False),
    )
    current = sa.text("status = 'completed'")
    op.create_index(
        "documents_current",
        "documents",
        ["path", "name"],
        unique=True,
        sqlite_where=current,
        postgresql_where=current,
    )
    op.create_index("documents_same", "documents", ["path", "sha256"])
    op.create_index("documents_order", "documents", ["created_at", "document_id"])
    op.create_index("documents_replaced", "documents", ["replaced_by"])
    op.create_table(
        "document_chunks",
        sa.Column("chunk_id", sa.Text, primary_key=True),
        sa.Column(
            "document_id",
            sa.Text,
            sa.ForeignKey("documents.document_id", ondelete="CASCADE"),
            nullable=False,
        ),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("start", sa.Integer, nullable=False),
        sa.Column("end", sa.Integer, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("terms", sa.LargeBinary, nullable=False),
    )
    op.create_index(
        "document_chunks_document", "document_chunks", ["document_id", "position"], unique=True
    )
    op.create_table(
        "embeddings",
        sa.Column(
            "chunk_id",
            sa.Text,
            sa.ForeignKey("document_chunks.chunk_id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("sentence", sa.Integer, primary_key=True),
        sa.Column("vector", HALFVEC() if _has_pgvector() else sa.LargeBinary(), nullable=False),
    )
    op.create_table(
        "document_changes",
        sa.Column("document_id", sa.Text, primary_key=True),
        sa.Column("number", sa.BigInteger, nullable=False, unique=True),
        sa.Column("deleted", sa.Boolean, nullable=False),
    )
    counter = op.create_table(
        "change_counter",
        sa.Column("counter_id", sa.Integer, primary_key=True),
        sa.Column("number", sa.BigInteger, nullable=False),
    )
    op.bulk_insert(counter, [{"counter_id": 1, "number": 0}])


def _has_pgvector() -> bool:
    """Whether the type `halfvec` is there, after trying to install it where that is allowed."""
    context = op.get_context()
    # SQL that is only printed has to run on any server.
    if context.as_sql or context.dialect.name != "postgresql":
        return False
    connection = op.get_bind()
    found = sa.text("SELECT to_regtype('halfvec') IS NOT NULL")
    if connection.scalar(found):
        return True
    available = sa.text("SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'")
    if not connection.scalar(available):
        return False
    try:
        with connection.begin_nested():
            # Beside the tables of others, who may want it too.
            connection.execute(sa.text("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public"))
    except DBAPIError:
        return False  # not allowed to this user
    return bool(connection.scalar(found))


def downgrade() -> None:
    """Remove all tables; the extension stays."""
    for table in (
        "change_counter",
        "document_changes",
        "embeddings",
        "document_chunks",
        "documents",
    ):
        op.drop_table(table)
