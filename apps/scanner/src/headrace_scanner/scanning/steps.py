"""The steps of a run beside scanning: load, compare, write, report. Each may be tried again after a
kill at any point, and leaves the same rows.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import msgspec

from headrace import Context
from headrace_scanner.errors import InvalidProduct
from headrace_scanner.reading.addresses import shown
from headrace_scanner.scanning.report import make_report
from headrace_scanner.service import OWNER, ScannerService
from headrace_scanner.store.records import Scan, ScanStatus
from headrace_scanner.store.writing import Attempt

EVENT = "scan.completed.v1"
REPORT = "report.html"
SHOWN = 50


class Loaded(msgspec.Struct, kw_only=True):
    """The products of a run, as ids in batches."""

    products: int
    batches: list[list[str]]


class Compared(msgspec.Struct, kw_only=True):
    """How many products are different, and in what."""

    seen: int
    blocked: int
    failed: int
    changes: dict[str, int]


class SeenProduct(msgspec.Struct, kw_only=True):
    """A product of a report."""

    product_id: str
    external_id: str
    url: str
    outcome: str
    name: str | None = None
    price: float | None = None
    sale_status: str | None = None
    error: str | None = None


class ScanReport(msgspec.Struct, kw_only=True):
    """What a run has found: its result, and the body of the event `scan.completed.v1`. `items` are
    the first products, those that could not be seen before the others.
    """

    scan_id: str
    platform: str
    set: str
    products: int
    seen: int
    changed: int
    blocked: int
    failed: int
    changes: dict[str, int]
    report: str | None
    items: list[SeenProduct]


@dataclass
class Steps:
    """One attempt at one step of a run."""

    service: ScannerService
    ctx: Context
    run: str
    platform: str

    @property
    def _attempt(self) -> Attempt:
        return Attempt(self.ctx.job_id, self.ctx.token)

    async def load(self, set_name: str, given: list[Any]) -> Loaded:
        """Write the row of the scan, and return its products in batches."""
        scans = self.service.scans
        await scans.begin(self.run, self.platform, set_name, self._attempt)
        try:
            ids = await self._chosen(set_name, given)
        except InvalidProduct as error:
            await scans.fail(self.run, str(error), self._attempt)
            raise
        size = self.service.settings.batch_size
        await scans.loaded(self.run, len(ids), self._attempt)
        batches = [ids[start : start + size] for start in range(0, len(ids), size)]
        return Loaded(products=len(ids), batches=batches)

    async def _chosen(self, set_name: str, given: list[Any]) -> list[str]:
        service, most = self.service, self.service.settings.most_products
        service.shop(self.platform)
        if given:
            if not all(isinstance(each, str) for each in given):
                raise InvalidProduct("products has to be a list of ids or URLs, each as text")
            new = [service.product(self.platform, each) for each in dict.fromkeys(given)]
            new = list({each.product_id: each for each in new}.values())
            self._check_count(len(new))
            await service.products.add(new, set_name, attempt=self._attempt)
            return [each.product_id for each in new]
        ids = await service.products.ids_of(self.platform, set_name, most + 1)
        if not ids:
            what = f"set {shown(set_name)}" if set_name else "there are no products: it"
            raise InvalidProduct(
                f"{what} has nothing on {self.platform}; import some: headrace scanner import FILE"
            )
        self._check_count(len(ids))
        return ids

    def _check_count(self, count: int) -> None:
        most = self.service.settings.most_products
        if count > most:
            raise InvalidProduct(
                f"a run has at most {most:,} products, these are more; scan a set, or raise "
                "HEADRACE_SCANNER_MOST_PRODUCTS"
            )

    async def compare(self) -> Compared:
        """Return what is different from what the tables say."""
        await self.service.scans.resume(self.run, self._attempt)
        changes, outcomes = await self.service.scans.compared(self.run)
        return Compared(
            seen=outcomes["seen"],
            blocked=outcomes["blocked"],
            failed=outcomes["failed"],
            changes=dict(Counter(each.field for each in changes)),
        )

    async def write(self) -> int:
        """Store what changed, once; return how many products did."""
        await self.service.scans.resume(self.run, self._attempt)
        return (await self.service.scans.write(self.run, self.platform, self._attempt)).changed

    async def report(self) -> ScanReport:
        """Make the report, complete the scan, and tell others."""
        scans = self.service.scans
        await scans.resume(self.run, self._attempt)
        scan = await scans.get(self.run)
        if scan is None:
            raise InvalidProduct(f"there is no scan {self.run} any more")
        path = scan.report
        if scan.status is not ScanStatus.COMPLETED or path is None:
            path = await self._put_report(scan)
            await scans.complete(self.run, path, self._attempt)
        found = await self._result(scan, path)
        self.ctx.publish(EVENT, found, key=self.platform)
        return found

    async def _put_report(self, scan: Scan) -> str:
        changes = await self.service.scans.changes(scan_id=self.run, limit=500)
        unusual = await self.service.scans.observations(self.run, 500)
        html = make_report(scan, self.service.platform(self.platform).title, changes, unusual)
        path = await self.ctx.artifacts.put(REPORT, html.encode(), media_type="text/html")
        await self.ctx.artifacts.keep(path, owner=OWNER, reason=f"the report of scan {self.run}")
        return path

    async def _result(self, scan: Scan, path: str) -> ScanReport:
        pairs = await self.service.scans.observations(self.run, SHOWN)
        return ScanReport(
            scan_id=scan.scan_id,
            platform=scan.platform,
            set=scan.set_name,
            products=scan.products,
            seen=scan.seen,
            changed=scan.changed,
            blocked=scan.blocked,
            failed=scan.failed,
            changes=await self.service.scans.changed_fields(self.run),
            report=path,
            items=[
                SeenProduct(
                    product_id=product.product_id,
                    external_id=product.external_id,
                    url=product.url,
                    outcome=seen.outcome,
                    name=seen.name,
                    price=seen.price,
                    sale_status=seen.sale_status,
                    error=seen.error,
                )
                for product, seen in pairs
            ],
        )
