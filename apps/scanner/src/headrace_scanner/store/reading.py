"""Reads scans, what they have seen, and what changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from headrace_scanner.store.products import product_of
from headrace_scanner.store.records import (
    Change,
    Observation,
    Outcome,
    Product,
    Scan,
    ScanStatus,
    compare,
)
from headrace_scanner.store.tables import CHANGES, OBSERVATIONS, PRODUCTS, SCANS

LARGEST_PAGE = 500


class ScanReading:
    """The scans of one database, as far as they are only read."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def observed(self, scan_id: str, ids: Sequence[str]) -> set[str]:
        """Return which of these products this scan has seen, so that nobody asks for them again."""
        query = sa.select(OBSERVATIONS.c.product_id).where(
            OBSERVATIONS.c.scan_id == scan_id, OBSERVATIONS.c.product_id.in_(list(ids))
        )
        async with self._engine.connect() as connection:
            return set((await connection.scalars(query)).all())

    async def compared(self, scan_id: str) -> tuple[list[Change], Counter[str]]:
        """Return what a scan has found to be different, and how many products of each outcome."""
        async with self._engine.connect() as connection:
            return await compared_in(connection, scan_id)

    async def outcomes(self, scan_id: str, ids: Sequence[str]) -> Counter[str]:
        """Return how many of these products had each outcome."""
        query = sa.select(OBSERVATIONS.c.outcome, sa.func.count()).where(
            OBSERVATIONS.c.scan_id == scan_id, OBSERVATIONS.c.product_id.in_(list(ids))
        )
        async with self._engine.connect() as connection:
            rows = await connection.execute(query.group_by(OBSERVATIONS.c.outcome))
            return Counter(dict(rows.all()))

    async def changed_fields(self, scan_id: str) -> dict[str, int]:
        """Return how many changes of each field a scan has written."""
        query = (
            sa.select(CHANGES.c.field, sa.func.count())
            .where(CHANGES.c.scan_id == scan_id)
            .group_by(CHANGES.c.field)
        )
        async with self._engine.connect() as connection:
            return dict((await connection.execute(query)).all())

    async def get(self, scan_id: str) -> Scan | None:
        """Return a scan; None if there is none."""
        async with self._engine.connect() as connection:
            query = sa.select(SCANS).where(SCANS.c.scan_id == scan_id)
            return one_scan(await connection.execute(query))

    async def page(
        self,
        *,
        platform: str | None = None,
        status: ScanStatus | None = None,
        updated_after: float | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> tuple[list[Scan], str | None]:
        """Return scans, the newest first, and where the next page begins."""
        query = sa.select(SCANS).order_by(SCANS.c.scan_id.desc())
        for column, wanted in ((SCANS.c.platform, platform), (SCANS.c.status, status)):
            if wanted is not None:
                query = query.where(column == wanted)
        if updated_after is not None:
            query = query.where(SCANS.c.updated_at > updated_after)
        if after is not None:
            query = query.where(SCANS.c.scan_id < after)
        limit = min(max(limit, 1), LARGEST_PAGE)
        async with self._engine.connect() as connection:
            rows = (await connection.execute(query.limit(limit + 1))).mappings().all()
        found = [_scan(row) for row in rows[:limit]]
        return found, found[-1].scan_id if len(rows) > limit else None

    async def progress(self, ids: Sequence[str]) -> dict[str, int]:
        """Return how many products of these scans have been asked for."""
        query = (
            sa.select(OBSERVATIONS.c.scan_id, sa.func.count())
            .where(OBSERVATIONS.c.scan_id.in_(list(ids)))
            .group_by(OBSERVATIONS.c.scan_id)
        )
        async with self._engine.connect() as connection:
            return dict((await connection.execute(query)).all())

    async def observations(
        self, scan_id: str, limit: int = LARGEST_PAGE
    ) -> list[tuple[Product, Observation]]:
        """Return the products of a scan with what was seen of them, the unusual ones first."""
        usual = sa.case((OBSERVATIONS.c.outcome == Outcome.SEEN, 1), else_=0)
        query = (
            sa.select(OBSERVATIONS)
            .where(OBSERVATIONS.c.scan_id == scan_id)
            .order_by(usual, OBSERVATIONS.c.at, OBSERVATIONS.c.product_id)
            .limit(limit)
        )
        async with self._engine.connect() as connection:
            seen = [_observation(row) for row in (await connection.execute(query)).mappings()]
            ids = [each.product_id for each in seen]
            rows = await connection.execute(
                sa.select(PRODUCTS).where(PRODUCTS.c.product_id.in_(ids))
            )
            products = {row["product_id"]: product_of(row) for row in rows.mappings()}
        return [(products[each.product_id], each) for each in seen if each.product_id in products]

    async def changes(
        self,
        *,
        platform: str | None = None,
        scan_id: str | None = None,
        limit: int = 50,
    ) -> list[dict[str, Any]]:
        """Return changes with the names of their products, the newest first."""
        query = (
            sa.select(CHANGES, PRODUCTS.c.external_id, PRODUCTS.c.name, PRODUCTS.c.url)
            .join(PRODUCTS, PRODUCTS.c.product_id == CHANGES.c.product_id)
            .order_by(CHANGES.c.at.desc(), CHANGES.c.product_id, CHANGES.c.field)
        )
        if platform is not None:
            query = query.where(CHANGES.c.platform == platform)
        if scan_id is not None:
            query = query.where(CHANGES.c.scan_id == scan_id)
        limit = min(max(limit, 1), LARGEST_PAGE)
        async with self._engine.connect() as connection:
            rows = (await connection.execute(query.limit(limit))).mappings().all()
        return [{str(key): value for key, value in row.items()} for row in rows]


async def compared_in(
    connection: AsyncConnection, scan_id: str
) -> tuple[list[Change], Counter[str]]:
    rows = await connection.execute(
        sa.select(OBSERVATIONS).where(OBSERVATIONS.c.scan_id == scan_id)
    )
    seen = {row["product_id"]: _observation(row) for row in rows.mappings()}
    found = await connection.execute(
        sa.select(PRODUCTS).where(
            PRODUCTS.c.product_id.in_(
                sa.select(OBSERVATIONS.c.product_id).where(OBSERVATIONS.c.scan_id == scan_id)
            )
        )
    )
    changes: list[Change] = []
    for row in found.mappings():
        product = product_of(row)
        changes += compare(product, seen[product.product_id])
    return changes, Counter(str(each.outcome) for each in seen.values())


def _observation(row: Any) -> Observation:
    values = {str(key): value for key, value in row.items() if key not in ("scan_id", "at")}
    values["outcome"] = Outcome(values["outcome"])
    return Observation(**values)


def _scan(row: Any) -> Scan:
    values = {str(key): value for key, value in row.items()}
    values["status"] = ScanStatus(values["status"])
    return Scan(**values)


def one_scan(rows: Any) -> Scan | None:
    row = rows.mappings().first()
    return None if row is None else _scan(row)
