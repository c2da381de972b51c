"""Products, scans and changes as plain data. No I/O."""

from __future__ import annotations

import hashlib
from enum import StrEnum

import msgspec


class SaleStatus(StrEnum):
    """Whether a product can be bought."""

    ON_SALE = "on_sale"
    SOLD_OUT = "sold_out"
    STOPPED = "stopped"
    GONE = "gone"
    """The shop no longer has it."""


class Outcome(StrEnum):
    """What became of one product in a scan."""

    SEEN = "seen"
    BLOCKED = "blocked"
    """The shop refused us; nothing is known about the product."""
    FAILED = "failed"
    """The shop did not answer, or not so that it could be read."""


class ScanStatus(StrEnum):
    """How a scan is."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What a shop says about a product. One that is gone has no name and no price."""

    name: str | None = None
    price: float | None = None
    sale_status: SaleStatus = SaleStatus.ON_SALE


class NewProduct(msgspec.Struct, frozen=True, kw_only=True):
    """A product to import; `name`, `price` and `sale_status` are what a scan compares with."""

    platform: str
    external_id: str
    url: str
    name: str | None = None
    price: float | None = None
    sale_status: SaleStatus | None = None

    @property
    def product_id(self) -> str:
        """Return its id, which follows from what it is."""
        return product_id_of(self.platform, self.external_id)


class Product(msgspec.Struct, frozen=True, kw_only=True):
    """A product as it was last seen."""

    product_id: str
    platform: str
    external_id: str
    url: str
    name: str | None
    price: float | None
    sale_status: str | None
    scan_id: str | None
    seen_at: float | None
    created_at: float
    updated_at: float


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """What a scan has seen of a product."""

    product_id: str
    outcome: Outcome
    name: str | None = None
    price: float | None = None
    sale_status: SaleStatus | None = None
    error: str | None = None


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A field of a product that is not what it was."""

    product_id: str
    field: str
    before: str
    after: str


class Scan(msgspec.Struct, frozen=True, kw_only=True):
    """A run over products of a platform."""

    scan_id: str
    platform: str
    set_name: str
    status: ScanStatus
    error: str | None
    products: int
    seen: int
    changed: int
    blocked: int
    failed: int
    written: bool
    report: str | None
    created_at: float
    updated_at: float


def product_id_of(platform: str, external_id: str) -> str:
    """Return the id of a product."""
    return hashlib.sha256(f"{platform}\0{external_id}".encode()).hexdigest()[:16]


def compare(product: Product, seen: Observation) -> list[Change]:
    """Return what has changed. What was not known before has not changed, and what could not be
    seen has not either.
    """
    if seen.outcome is not Outcome.SEEN:
        return []
    fields = (
        ("name", product.name, seen.name),
        ("price", shown_price(product.price), shown_price(seen.price)),
        ("sale_status", product.sale_status, seen.sale_status),
    )
    return [
        Change(product_id=product.product_id, field=field, before=str(before), after=str(after))
        for field, before, after in fields
        if before is not None and after is not None and str(before) != str(after)
    ]


def shown_price(price: float | None) -> str | None:
    """Return a price as people write it: without a fraction that is none."""
    if price is None:
        return None
    return f"{price:.0f}" if price == int(price) else f"{price:.2f}"
