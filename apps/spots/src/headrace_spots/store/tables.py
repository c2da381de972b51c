"""Tables: shops, their runs, and what the last completed run found.

In PostgreSQL they are in a schema of their own, which the connection's search path names.
"""

from __future__ import annotations

from typing import Any, cast

import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class SpotsBase(DeclarativeBase):
    """Base of the tables of this bundle."""


class StoreTable(SpotsBase):
    """A shop: where it begins, and what its pages say about it."""

    __tablename__ = "stores"

    store_id: Mapped[str] = mapped_column(sa.Text, primary_key=True)
    url: Mapped[str] = mapped_column(sa.Text, unique=True)
    host: Mapped[str] = mapped_column(sa.Text)
    name: Mapped[str | None] = mapped_column(sa.Text)
    kind: Mapped[str | None] = mapped_column(sa.Text)
    address: Mapped[str | None] = mapped_column(sa.Text)
    run_id: Mapped[str | None] = mapped_column(sa.Text)
    """The last run that was completed."""
    created_at: Mapped[float]
    updated_at: Mapped[float]


class SnapshotTable(SpotsBase):
    """A run: the row is the truth about it. `run_id` is the id of its job, and of its files."""

    __tablename__ = "store_snapshots"

    run_id: Mapped[str] = mapped_column(sa.Text, primary_key=True)
    store_id: Mapped[str] = mapped_column(
        sa.Text, sa.ForeignKey("stores.store_id", ondelete="CASCADE")
    )
    url: Mapped[str] = mapped_column(sa.Text)
    status: Mapped[str] = mapped_column(sa.Text)
    progress: Mapped[int]
    error: Mapped[str | None] = mapped_column(sa.Text)
    token: Mapped[int] = mapped_column(sa.BigInteger)
    """Of the attempt that wrote last; attempts with a lower one change nothing."""
    pages: Mapped[int]
    reviews: Mapped[int]
    rating: Mapped[float | None]
    positive: Mapped[int]
    negative: Mapped[int]
    neutral: Mapped[int]
    report: Mapped[str | None] = mapped_column(sa.Text)
    """Where the report is."""
    asked_by: Mapped[str | None] = mapped_column(sa.Text, unique=True)
    """The job of a schedule that asked for this run."""
    owner: Mapped[str | None] = mapped_column(sa.Text)
    created_at: Mapped[float]
    updated_at: Mapped[float]

    __table_args__ = (
        sa.Index("store_snapshots_store", "store_id", "run_id"),
        sa.Index("store_snapshots_status", "status", "run_id"),
    )


class ReviewTable(SpotsBase):
    """A review of the last completed run of a shop."""

    __tablename__ = "reviews"

    run_id: Mapped[str] = mapped_column(
        sa.Text, sa.ForeignKey("store_snapshots.run_id", ondelete="CASCADE"), primary_key=True
    )
    review_id: Mapped[str] = mapped_column(sa.Text, primary_key=True)
    position: Mapped[int]
    text: Mapped[str] = mapped_column(sa.Text)
    rating: Mapped[float | None]
    day: Mapped[str | None] = mapped_column(sa.Text)
    url: Mapped[str] = mapped_column(sa.Text)
    label: Mapped[str] = mapped_column(sa.Text)
    score: Mapped[float]


class AnalysisTable(SpotsBase):
    """What was found in the reviews of a run; it stays when the reviews of a later run replace
    them.
    """

    __tablename__ = "analysis"

    run_id: Mapped[str] = mapped_column(
        sa.Text, sa.ForeignKey("store_snapshots.run_id", ondelete="CASCADE"), primary_key=True
    )
    body: Mapped[dict[str, Any]] = mapped_column(sa.JSON)


class EmbeddingTable(SpotsBase):
    """The vectors of the sentences of a review, as 16-bit numbers, one after the other."""

    __tablename__ = "embeddings"

    run_id: Mapped[str] = mapped_column(sa.Text, primary_key=True)
    review_id: Mapped[str] = mapped_column(sa.Text, primary_key=True)
    sentences: Mapped[int]
    vectors: Mapped[bytes] = mapped_column(sa.LargeBinary)

    __table_args__ = (
        sa.ForeignKeyConstraint(
            ["run_id", "review_id"], ["reviews.run_id", "reviews.review_id"], ondelete="CASCADE"
        ),
    )


def table_of(model: type[SpotsBase]) -> sa.Table:
    """Return the table of a class, for statements."""
    return cast("sa.Table", model.__table__)


STORES = table_of(StoreTable)
SNAPSHOTS = table_of(SnapshotTable)
REVIEWS = table_of(ReviewTable)
ANALYSIS = table_of(AnalysisTable)
EMBEDDINGS = table_of(EmbeddingTable)
