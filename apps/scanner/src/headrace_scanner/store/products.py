"""Writes and reads products and their sets."""

from __future__ import annotations

from collections.abc import Sequence
from time import time
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from headrace_scanner.store.records import NewProduct, Product
from headrace_scanner.store.tables import PRODUCTS, SETS
from headrace_scanner.store.writing import Attempt, insert_or, writing

AT_ONCE = 500
LARGEST_PAGE = 500


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """What an import has done."""

    set: str
    new: int
    known: int


class ProductSet(msgspec.Struct, frozen=True, kw_only=True):
    """A set, and how many products of each platform it has."""

    name: str
    platforms: dict[str, int]


class ProductRepository:
    """The products of one database."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def add(
        self,
        products: Sequence[NewProduct],
        set_name: str = "",
        *,
        replace: bool = False,
        attempt: Attempt | None = None,
    ) -> Imported:
        """Store products and put them into a set, all or nothing. What is known of a product stays
        where the import says nothing. With `replace` the set has these products only.
        """
        async with writing(self._engine, attempt) as connection:
            ids = [each.product_id for each in products]
            known = {each.product_id for each in await _get(connection, ids)}
            now = time()
            for start in range(0, len(products), AT_ONCE):
                rows = [_row(each, now) for each in products[start : start + AT_ONCE]]
                statement = insert_or(connection, PRODUCTS)
                given = statement.excluded
                kept = {
                    name: sa.func.coalesce(given[name], PRODUCTS.c[name])
                    for name in ("name", "price", "sale_status")
                }
                await connection.execute(
                    statement.on_conflict_do_update(
                        index_elements=["product_id"],
                        set_={"url": given.url, "updated_at": now, **kept},
                    ),
                    rows,
                )
            if set_name:
                await _put_into(connection, set_name, ids, replace=replace)
        return Imported(set=set_name, new=len(set(ids) - known), known=len(known & set(ids)))

    async def get(self, ids: Sequence[str]) -> list[Product]:
        """Return these products, in this order; those that are gone are left out."""
        async with self._engine.connect() as connection:
            found = {each.product_id: each for each in await _get(connection, ids)}
        return [found[each] for each in ids if each in found]

    async def ids_of(self, platform: str, set_name: str, limit: int) -> list[str]:
        """Return the ids of the products of a set on a platform in their order, or of all."""
        query = sa.select(PRODUCTS.c.product_id).where(PRODUCTS.c.platform == platform)
        if set_name:
            query = query.join(SETS, SETS.c.product_id == PRODUCTS.c.product_id)
            query = query.where(SETS.c.name == set_name).order_by(SETS.c.position)
        else:
            query = query.order_by(PRODUCTS.c.created_at, PRODUCTS.c.product_id)
        async with self._engine.connect() as connection:
            return list((await connection.scalars(query.limit(limit))).all())

    async def page(
        self,
        *,
        platform: str | None = None,
        set_name: str | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> tuple[list[Product], str | None]:
        """Return products by id, and where the next page begins."""
        query = sa.select(PRODUCTS).order_by(PRODUCTS.c.product_id)
        if platform is not None:
            query = query.where(PRODUCTS.c.platform == platform)
        if set_name is not None:
            query = query.join(SETS, SETS.c.product_id == PRODUCTS.c.product_id)
            query = query.where(SETS.c.name == set_name)
        if after is not None:
            query = query.where(PRODUCTS.c.product_id > after)
        limit = min(max(limit, 1), LARGEST_PAGE)
        async with self._engine.connect() as connection:
            rows = (await connection.execute(query.limit(limit + 1))).mappings().all()
        found = [product_of(row) for row in rows[:limit]]
        return found, found[-1].product_id if len(rows) > limit else None

    async def sets(self) -> list[ProductSet]:
        """Return all sets by name."""
        query = (
            sa.select(SETS.c.name, PRODUCTS.c.platform, sa.func.count())
            .join(PRODUCTS, SETS.c.product_id == PRODUCTS.c.product_id)
            .group_by(SETS.c.name, PRODUCTS.c.platform)
            .order_by(SETS.c.name, PRODUCTS.c.platform)
        )
        found: dict[str, dict[str, int]] = {}
        async with self._engine.connect() as connection:
            for name, platform, count in await connection.execute(query):
                found.setdefault(name, {})[platform] = count
        return [ProductSet(name=name, platforms=counts) for name, counts in found.items()]

    async def counts(self) -> dict[str, int]:
        """Return how many products each platform has."""
        query = sa.select(PRODUCTS.c.platform, sa.func.count()).group_by(PRODUCTS.c.platform)
        async with self._engine.connect() as connection:
            return dict((await connection.execute(query)).all())

    async def remove(self, set_name: str) -> bool:
        """Delete a set; its products stay. Return whether there was one."""
        async with writing(self._engine) as connection:
            gone = await connection.execute(SETS.delete().where(SETS.c.name == set_name))
        return bool(gone.rowcount)


async def _get(connection: AsyncConnection, ids: Sequence[str]) -> list[Product]:
    found: list[Product] = []
    for start in range(0, len(ids), AT_ONCE):
        some = list(ids[start : start + AT_ONCE])
        rows = await connection.execute(sa.select(PRODUCTS).where(PRODUCTS.c.product_id.in_(some)))
        found += [product_of(row) for row in rows.mappings()]
    return found


async def _put_into(
    connection: AsyncConnection, set_name: str, ids: Sequence[str], *, replace: bool
) -> None:
    if replace:
        await connection.execute(SETS.delete().where(SETS.c.name == set_name))
    last = await connection.scalar(
        sa.select(sa.func.max(SETS.c.position)).where(SETS.c.name == set_name)
    )
    first = 0 if last is None else last + 1
    rows = [
        {"name": set_name, "product_id": each, "position": first + place}
        for place, each in enumerate(dict.fromkeys(ids))
    ]
    for start in range(0, len(rows), AT_ONCE):
        statement = insert_or(connection, SETS).on_conflict_do_nothing()
        await connection.execute(statement, rows[start : start + AT_ONCE])


def product_of(row: Any) -> Product:
    """Return a product from its row."""
    return Product(**{str(key): value for key, value in row.items()})


def _row(product: NewProduct, now: float) -> dict[str, Any]:
    return {
        "product_id": product.product_id,
        "platform": product.platform,
        "external_id": product.external_id,
        "url": product.url,
        "name": product.name,
        "price": product.price,
        "sale_status": None if product.sale_status is None else str(product.sale_status),
        "created_at": now,
        "updated_at": now,
    }
