"""Tables: products, the sets that they are in, scans, what was seen, and what changed.

In PostgreSQL they are in a schema of their own, which the connection's search path names.
"""

from __future__ import annotations

from typing import cast

import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class ScannerBase(DeclarativeBase):
    """Base of the tables of this bundle."""


class ProductTable(ScannerBase):
    """A product of a platform, as it was last seen, or as it was imported."""

    __tablename__ = "products"

    product_id: Mapped[str] = mapped_column(sa.Text, primary_key=True)
    platform: Mapped[str] = mapped_column(sa.Text)
    external_id: Mapped[str] = mapped_column(sa.Text)
    url: Mapped[str] = mapped_column(sa.Text)
    name: Mapped[str | None] = mapped_column(sa.Text)
    price: Mapped[float | None]
    sale_status: Mapped[str | None] = mapped_column(sa.Text)
    scan_id: Mapped[str | None] = mapped_column(sa.Text)
    """The scan that has seen it last."""
    seen_at: Mapped[float | None]
    created_at: Mapped[float]
    updated_at: Mapped[float]

    __table_args__ = (
        sa.UniqueConstraint("platform", "external_id"),
        sa.Index("products_platform", "platform", "product_id"),
    )


class SetTable(ScannerBase):
    """Which products are in a set, in the order of its import."""

    __tablename__ = "product_sets"

    name: Mapped[str] = mapped_column(sa.Text, primary_key=True)
    product_id: Mapped[str] = mapped_column(
        sa.Text, sa.ForeignKey("products.product_id", ondelete="CASCADE"), primary_key=True
    )
    position: Mapped[int]

    __table_args__ = (sa.Index("product_sets_product", "product_id"),)


class ScanTable(ScannerBase):
    """A run over products of a platform. `scan_id` is the id of the run's job."""

    __tablename__ = "scans"

    scan_id: Mapped[str] = mapped_column(sa.Text, primary_key=True)
    platform: Mapped[str] = mapped_column(sa.Text)
    set_name: Mapped[str] = mapped_column(sa.Text)
    status: Mapped[str] = mapped_column(sa.Text)
    error: Mapped[str | None] = mapped_column(sa.Text)
    products: Mapped[int]
    seen: Mapped[int]
    changed: Mapped[int]
    blocked: Mapped[int]
    failed: Mapped[int]
    written: Mapped[bool]
    """Whether what changed is in the tables."""
    report: Mapped[str | None] = mapped_column(sa.Text)
    created_at: Mapped[float]
    updated_at: Mapped[float]

    __table_args__ = (
        sa.Index("scans_platform", "platform", "scan_id"),
        sa.Index("scans_status", "status", "scan_id"),
    )


class ObservationTable(ScannerBase):
    """What a scan has seen of a product."""

    __tablename__ = "observations"

    scan_id: Mapped[str] = mapped_column(
        sa.Text, sa.ForeignKey("scans.scan_id", ondelete="CASCADE"), primary_key=True
    )
    product_id: Mapped[str] = mapped_column(sa.Text, primary_key=True)
    outcome: Mapped[str] = mapped_column(sa.Text)
    name: Mapped[str | None] = mapped_column(sa.Text)
    price: Mapped[float | None]
    sale_status: Mapped[str | None] = mapped_column(sa.Text)
    error: Mapped[str | None] = mapped_column(sa.Text)
    at: Mapped[float]


class ChangeTable(ScannerBase):
    """A change of a product that a scan has found."""

    __tablename__ = "changes"

    scan_id: Mapped[str] = mapped_column(sa.Text, primary_key=True)
    product_id: Mapped[str] = mapped_column(sa.Text, primary_key=True)
    field: Mapped[str] = mapped_column(sa.Text, primary_key=True)
    platform: Mapped[str] = mapped_column(sa.Text)
    before: Mapped[str] = mapped_column(sa.Text)
    after: Mapped[str] = mapped_column(sa.Text)
    at: Mapped[float]

    __table_args__ = (sa.Index("changes_at", "at"), sa.Index("changes_platform", "platform", "at"))


class AttemptTable(ScannerBase):
    """The newest attempt at each job that writes here; writes of earlier ones are refused."""

    __tablename__ = "attempts"

    job_id: Mapped[str] = mapped_column(sa.Text, primary_key=True)
    token: Mapped[int] = mapped_column(sa.BigInteger)
    updated_at: Mapped[float]


def table_of(model: type[ScannerBase]) -> sa.Table:
    """Return the table of a class, for statements."""
    return cast("sa.Table", model.__table__)


PRODUCTS = table_of(ProductTable)
SETS = table_of(SetTable)
SCANS = table_of(ScanTable)
OBSERVATIONS = table_of(ObservationTable)
CHANGES = table_of(ChangeTable)
ATTEMPTS = table_of(AttemptTable)
