"""Tables: documents, their chunks, and the vectors of their sentences.

In PostgreSQL they are in a schema of their own, which the connection's search path names.
"""

from __future__ import annotations

from typing import Any, cast

import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

# Compared byte by byte, so that a range of paths is a range of the index in every locale.
PathText = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


class Base(DeclarativeBase):
    """Base of the tables of this bundle."""


class Document(Base):
    """A document that was handed in: what it is, and how far its processing is."""

    __tablename__ = "documents"

    document_id: Mapped[str] = mapped_column(sa.Text, primary_key=True)
    """The id of its job."""
    name: Mapped[str] = mapped_column(sa.Text)
    path: Mapped[str] = mapped_column(PathText)
    sha256: Mapped[str] = mapped_column(sa.Text)
    media_type: Mapped[str | None] = mapped_column(sa.Text)
    status: Mapped[str] = mapped_column(sa.Text)
    stage: Mapped[str] = mapped_column(sa.Text)
    progress: Mapped[int]
    error: Mapped[str | None] = mapped_column(sa.Text)
    characters: Mapped[int]
    chunks: Mapped[int]
    personal_data: Mapped[dict[str, int]] = mapped_column(sa.JSON)
    """How often each kind of personal data was found and masked."""
    details: Mapped[dict[str, Any]] = mapped_column("metadata", sa.JSON)
    owner: Mapped[str | None] = mapped_column(sa.Text)
    model: Mapped[str | None] = mapped_column(sa.Text)
    """The model of its vectors."""
    token: Mapped[int] = mapped_column(sa.BigInteger)
    """Of the attempt that wrote last; attempts with a lower one change nothing."""
    version: Mapped[int]
    artifact: Mapped[str | None] = mapped_column(sa.Text)
    """Where the original is."""
    replaced_by: Mapped[str | None] = mapped_column(sa.Text)
    created_at: Mapped[float]
    updated_at: Mapped[float]

    __table_args__ = (
        # There is one current version of a document.
        sa.Index(
            "documents_current",
            "path",
            "name",
            unique=True,
            sqlite_where=sa.text("status = 'completed'"),
            postgresql_where=sa.text("status = 'completed'"),
        ),
        sa.Index("documents_same", "path", "sha256"),
        sa.Index("documents_order", "created_at", "document_id"),
        sa.Index("documents_replaced", "replaced_by"),
    )


class DocumentChunk(Base):
    """A part of a document: its masked text, and where it stood in the text of the document."""

    __tablename__ = "document_chunks"

    chunk_id: Mapped[str] = mapped_column(sa.Text, primary_key=True)
    document_id: Mapped[str] = mapped_column(
        sa.Text, sa.ForeignKey("documents.document_id", ondelete="CASCADE")
    )
    position: Mapped[int]
    start: Mapped[int]
    end: Mapped[int]
    text: Mapped[str] = mapped_column(sa.Text)
    terms: Mapped[bytes] = mapped_column(sa.LargeBinary)
    """The words of the text as numbers, for the word score."""

    __table_args__ = (sa.Index("document_chunks_document", "document_id", "position", unique=True),)


class Embedding(Base):
    """The vector of one sentence of a chunk, as 16-bit numbers. Number 0 is the whole chunk.

    In PostgreSQL with pgvector, `vector` is a `halfvec` instead of bytes.
    """

    __tablename__ = "embeddings"

    chunk_id: Mapped[str] = mapped_column(
        sa.Text,
        sa.ForeignKey("document_chunks.chunk_id", ondelete="CASCADE"),
        primary_key=True,
    )
    sentence: Mapped[int] = mapped_column(primary_key=True)
    vector: Mapped[bytes] = mapped_column(sa.LargeBinary)


class DocumentWork(Base):
    """What finished stages have made of a document that is not stored yet: its masked text, and
    vectors by batch. When the document is stored or deleted, it goes in the same transaction.
    """

    __tablename__ = "document_work"

    document_id: Mapped[str] = mapped_column(
        sa.Text, sa.ForeignKey("documents.document_id", ondelete="CASCADE"), primary_key=True
    )
    part: Mapped[str] = mapped_column(sa.Text, primary_key=True)
    content: Mapped[bytes] = mapped_column(sa.LargeBinary)


class DocumentChange(Base):
    """The last change of each document, numbered in the order of the commits: what a search loads
    to keep in step. Of a deleted document only this remains.
    """

    __tablename__ = "document_changes"

    document_id: Mapped[str] = mapped_column(sa.Text, primary_key=True)
    number: Mapped[int] = mapped_column(sa.BigInteger, unique=True)
    deleted: Mapped[bool]


class ChangeCounter(Base):
    """One row: the number of the last change. Its lock puts commits into the order of numbers."""

    __tablename__ = "change_counter"

    counter_id: Mapped[int] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(sa.BigInteger)


def table_of(model: type[Base]) -> sa.Table:
    """Return the table of a class, for statements."""
    return cast("sa.Table", model.__table__)
