"""Writes and reads scans. Each write is one transaction, guarded by the token of its attempt."""

from __future__ import annotations

from time import time
from typing import Any

import sqlalchemy as sa

from headrace import LeaseLost
from headrace_scanner.store.reading import ScanReading, compared_in, one_scan
from headrace_scanner.store.records import Observation, Outcome, Scan, ScanStatus
from headrace_scanner.store.tables import ATTEMPTS, CHANGES, OBSERVATIONS, SCANS
from headrace_scanner.store.writing import Attempt, insert_or, writing

LONGEST_ERROR = 2000
AT_ONCE = 500


class ScanRepository(ScanReading):
    """The scans of one database."""

    async def begin(self, scan_id: str, platform: str, set_name: str, attempt: Attempt) -> None:
        """Write the row of a scan, or that one which had failed runs again."""
        now = time()
        zero = dict.fromkeys(("products", "seen", "changed", "blocked", "failed"), 0)
        async with writing(self._engine, attempt) as connection:
            statement = insert_or(connection, SCANS).values(
                scan_id=scan_id,
                platform=platform,
                set_name=set_name,
                status=ScanStatus.RUNNING,
                written=False,
                created_at=now,
                updated_at=now,
                **zero,
            )
            await connection.execute(
                statement.on_conflict_do_update(
                    index_elements=["scan_id"],
                    set_={"status": ScanStatus.RUNNING, "error": None, "updated_at": now},
                    where=SCANS.c.status != ScanStatus.COMPLETED,
                )
            )

    async def loaded(self, scan_id: str, products: int, attempt: Attempt) -> None:
        """Write how many products a scan has."""
        await self._change(scan_id, {"products": products}, attempt)

    async def observe(self, scan_id: str, seen: Observation, attempt: Attempt) -> None:
        """Write what was seen of a product. What was written before stays."""
        async with writing(self._engine, attempt) as connection:
            statement = insert_or(connection, OBSERVATIONS).values(
                scan_id=scan_id,
                product_id=seen.product_id,
                outcome=seen.outcome,
                name=_storable(seen.name),
                price=seen.price,
                sale_status=seen.sale_status,
                error=_storable(seen.error),
                at=time(),
            )
            await connection.execute(statement.on_conflict_do_nothing())

    async def write(self, scan_id: str, platform: str, attempt: Attempt) -> Scan:
        """Store what changed and what the products are now, once, all or nothing."""
        async with writing(self._engine, attempt) as connection:
            query = sa.select(SCANS).where(SCANS.c.scan_id == scan_id)
            if connection.dialect.name == "postgresql":
                query = query.with_for_update()
            scan = one_scan(await connection.execute(query))
            if scan is None:
                raise LeaseLost(f"there is no scan {scan_id} any more")
            if scan.written:
                return scan
            now = time()
            changes, outcomes = await compared_in(connection, scan_id)
            rows = [
                {
                    "scan_id": scan_id,
                    "platform": platform,
                    "product_id": each.product_id,
                    "field": each.field,
                    "before": each.before,
                    "after": each.after,
                    "at": now,
                }
                for each in changes
            ]
            for start in range(0, len(rows), AT_ONCE):
                await connection.execute(CHANGES.insert(), rows[start : start + AT_ONCE])
            await connection.execute(_UPDATE_PRODUCTS, {"scan_id": scan_id, "now": now})
            values = {
                "seen": outcomes[Outcome.SEEN],
                "blocked": outcomes[Outcome.BLOCKED],
                "failed": outcomes[Outcome.FAILED],
                "changed": len({each.product_id for each in changes}),
                "written": True,
                "updated_at": now,
            }
            await connection.execute(
                SCANS.update().where(SCANS.c.scan_id == scan_id).values(**values)
            )
        found = await self.get(scan_id)
        if found is None:
            raise LeaseLost(f"there is no scan {scan_id} any more")
        return found

    async def complete(self, scan_id: str, report: str | None, attempt: Attempt) -> None:
        """Write that a scan is over, and where its report is."""
        values = {"status": ScanStatus.COMPLETED, "error": None, "report": report}
        await self._change(scan_id, values, attempt)

    async def fail(self, scan_id: str, error: str, attempt: Attempt | None = None) -> None:
        """Write that a scan has failed for good."""
        values = {"status": ScanStatus.FAILED, "error": (_storable(error) or "")[:LONGEST_ERROR]}
        await self._change(scan_id, values, attempt)

    async def resume(self, scan_id: str, attempt: Attempt) -> None:
        """Write that a scan goes on, if it had failed."""
        values = {"status": ScanStatus.RUNNING, "error": None}
        await self._change(scan_id, values, attempt, SCANS.c.status == ScanStatus.FAILED)

    async def _change(
        self,
        scan_id: str,
        values: dict[str, Any],
        attempt: Attempt | None,
        *conditions: sa.ColumnElement[bool],
    ) -> None:
        async with writing(self._engine, attempt) as connection:
            await connection.execute(
                SCANS.update()
                .where(SCANS.c.scan_id == scan_id, *conditions)
                .values(**values, updated_at=time())
            )

    async def prune(self, before: float) -> int:
        """Delete scans that ended before a moment, with what they have seen; changes stay."""
        over = sa.and_(SCANS.c.status != ScanStatus.RUNNING, SCANS.c.updated_at < before)
        async with writing(self._engine) as connection:
            await connection.execute(ATTEMPTS.delete().where(ATTEMPTS.c.updated_at < before))
            some = sa.select(SCANS.c.scan_id).where(over).limit(AT_ONCE)
            await connection.execute(OBSERVATIONS.delete().where(OBSERVATIONS.c.scan_id.in_(some)))
            gone = await connection.execute(SCANS.delete().where(SCANS.c.scan_id.in_(some)))
        return int(gone.rowcount)


# A product that is gone keeps its name and its price.
_UPDATE_PRODUCTS = sa.text(
    """
    UPDATE products SET
      name = COALESCE((SELECT o.name FROM observations o
                       WHERE o.scan_id = :scan_id AND o.product_id = products.product_id), name),
      price = COALESCE((SELECT o.price FROM observations o
                        WHERE o.scan_id = :scan_id AND o.product_id = products.product_id), price),
      sale_status = (SELECT o.sale_status FROM observations o
                     WHERE o.scan_id = :scan_id AND o.product_id = products.product_id),
      scan_id = :scan_id, seen_at = :now, updated_at = :now
    WHERE product_id IN (SELECT o.product_id FROM observations o
                         WHERE o.scan_id = :scan_id AND o.outcome = 'seen')
    """
)


def _storable(text: str | None) -> str | None:
    # PostgreSQL has no such letter.
    return None if text is None else text.replace("\0", " ")[:LONGEST_ERROR]
