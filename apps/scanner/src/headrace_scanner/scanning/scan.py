"""A batch of products: each is asked for once, however often its job is tried.

Invariant: a product that is in `observations` for this scan is never asked for again. What a kill
leaves is at most the one product that was being read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from headrace import Context
from headrace_scanner.errors import Blocked, InvalidProduct, Unreached
from headrace_scanner.reading.readers import Reader, opened_reader
from headrace_scanner.service import ScannerService
from headrace_scanner.store.records import Observation, Outcome, Product
from headrace_scanner.store.writing import Attempt

NOT_ASKED = "not asked for: the shop has refused the products before it"
BACKOFF_SECONDS = 0.5


class BatchEnd(msgspec.Struct, kw_only=True):
    """What became of a batch: how many products of each outcome."""

    seen: int = 0
    blocked: int = 0
    failed: int = 0


@dataclass
class BatchScan:
    """One attempt at one batch."""

    service: ScannerService
    ctx: Context
    run: str
    platform: str

    async def all(self, ids: Sequence[str]) -> BatchEnd:
        """Ask for those products that no earlier attempt has asked for."""
        scans = self.service.scans
        await scans.resume(self.run, Attempt(self.ctx.job_id, self.ctx.token))
        done = await scans.observed(self.run, ids)
        left = [each for each in ids if each not in done]
        products = await self.service.products.get(left)
        if products:
            platform = self.service.platform(self.platform)
            async with opened_reader(platform, self.service.manners) as reader:
                await self._each(reader, products, before=len(done), total=len(ids))
        counted = await self._counted(ids)
        self.ctx.progress(100, f"{len(ids)} products")
        return counted

    async def _each(
        self, reader: Reader, products: Sequence[Product], *, before: int, total: int
    ) -> None:
        attempt = Attempt(self.ctx.job_id, self.ctx.token)
        refused, manners = 0, self.service.manners
        for place, product in enumerate(products):
            if place and manners.delay:
                await asyncio.sleep(manners.delay)
            if refused >= manners.blocked_in_a_row:
                seen = _observation(product, Outcome.BLOCKED, NOT_ASKED)
            else:
                seen = await self._one(reader, product)
            refused = refused + 1 if seen.outcome is Outcome.BLOCKED else 0
            await self.service.scans.observe(self.run, seen, attempt)
            done = before + place + 1
            self.ctx.progress(100 * done / total, f"{done} of {total} products")

    async def _one(self, reader: Reader, product: Product) -> Observation:
        """Ask for one product; what goes wrong with it is what was seen of it."""
        manners = self.service.manners
        for tried in range(1, manners.tries + 1):
            last = tried == manners.tries
            try:
                seen = await reader.read(product.url)
            except InvalidProduct as error:
                return _observation(product, Outcome.FAILED, str(error))
            except Blocked as error:
                pause = error.after if error.after is not None else manners.delay
                if last or pause > manners.patience:
                    return _observation(product, Outcome.BLOCKED, str(error))
                await asyncio.sleep(pause)
            except Unreached as error:
                if last:
                    return _observation(product, Outcome.FAILED, str(error))
                await asyncio.sleep(min(BACKOFF_SECONDS * 2**tried, manners.patience))
            else:
                return Observation(
                    product_id=product.product_id,
                    outcome=Outcome.SEEN,
                    name=seen.name,
                    price=seen.price,
                    sale_status=seen.sale_status,
                )
        raise AssertionError("tries is at least 1")

    async def _counted(self, ids: Sequence[str]) -> BatchEnd:
        found = await self.service.scans.outcomes(self.run, ids)
        return BatchEnd(
            seen=found[Outcome.SEEN],
            blocked=found[Outcome.BLOCKED],
            failed=found[Outcome.FAILED],
        )


def _observation(product: Product, outcome: Outcome, error: str) -> Observation:
    return Observation(product_id=product.product_id, outcome=outcome, error=error)
