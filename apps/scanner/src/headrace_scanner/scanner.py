"""Products and scans as callers see them: imported, scanned, shown. Rows and jobs agree here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec

from headrace import App, ArtifactNotFound, Job, JobFilter, JobNotFound, Status
from headrace_scanner.errors import InvalidProduct
from headrace_scanner.imports import MOST_PRODUCTS, ProductRow
from headrace_scanner.platforms import NAMES, SHOPS
from headrace_scanner.platforms.model import LANE, STEP_LANE
from headrace_scanner.reading.addresses import shown
from headrace_scanner.reading.answers import HIGHEST_PRICE, LONGEST_NAME
from headrace_scanner.scanning.agreement import Agreement
from headrace_scanner.scanning.extract import check_type
from headrace_scanner.service import ScannerService, sale_status_of
from headrace_scanner.store.products import Imported, ProductSet
from headrace_scanner.store.records import NewProduct, Scan, ScanStatus
from headrace_scanner.views import (
    Begun,
    ChangeView,
    PlatformView,
    ProductView,
    RunState,
    ScanDetail,
    ScanView,
    change_view,
    product_view,
    run_state,
    scan_fields,
    seen_view,
)

UNFINISHED = tuple(each for each in Status if not each.final)
LONGEST_SET = 100
WAITING_SHOWN = 5
MOST_JOBS = 500
EXTRACT = "extract-validation-v2"


class Scanner:
    """What can be done with products."""

    def __init__(self, service: ScannerService) -> None:
        self._service = service
        self._agreement = Agreement(service)

    @property
    def _app(self) -> App:
        return self._service.app

    # -- products ------------------------------------------------------------------------------

    async def add(
        self, rows: Sequence[ProductRow], set_name: str, *, replace: bool = False
    ) -> Imported:
        """Import products into a set, all or nothing. Raises `InvalidProduct`."""
        check_set(set_name)
        if not rows:
            raise InvalidProduct("there are no products to import")
        if len(rows) > MOST_PRODUCTS:
            raise InvalidProduct(
                f"these are {len(rows):,} products, the limit is {MOST_PRODUCTS:,}"
            )
        found: dict[str, NewProduct] = {}
        for number, row in enumerate(rows, 1):
            try:
                product = self._checked(row)
            except InvalidProduct as error:
                raise InvalidProduct(f"product {number}: {error}") from None
            found[product.product_id] = product
        return await self._service.products.add(list(found.values()), set_name, replace=replace)

    def _checked(self, row: ProductRow) -> NewProduct:
        if not row.product and not row.url:
            raise InvalidProduct("it has neither a product (its id) nor a url")
        product = self._service.product(row.platform, row.product or str(row.url), row.url)
        if row.price is not None and not (
            math.isfinite(row.price) and 0 <= row.price <= HIGHEST_PRICE
        ):
            raise InvalidProduct(f"price is {row.price}, which cannot be")
        name = None if row.name is None else " ".join(row.name.replace("\0", " ").split())
        if name is not None and len(name) > LONGEST_NAME:
            raise InvalidProduct(f"name has {len(name)} characters, the limit is {LONGEST_NAME}")
        return msgspec.structs.replace(
            product,
            name=name or None,
            price=None if row.price is None else round(row.price, 2),
            sale_status=sale_status_of(row.sale_status),
        )

    async def products(
        self,
        *,
        platform: str | None = None,
        set_name: str | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> tuple[list[ProductView], str | None]:
        """Return products, and where the next page begins."""
        found, following = await self._service.products.page(
            platform=platform, set_name=set_name, limit=limit, after=after
        )
        return [product_view(each) for each in found], following

    async def sets(self) -> list[ProductSet]:
        """Return all product sets."""
        return await self._service.products.sets()

    async def remove_set(self, name: str) -> bool:
        """Delete a set; its products stay. Return whether there was one."""
        return await self._service.products.remove(name)

    # -- scans ---------------------------------------------------------------------------------

    async def scan(
        self,
        platform: str,
        *,
        set_name: str = "",
        products: Sequence[str] = (),
        priority: int | None = None,
    ) -> Begun:
        """Begin a run on a platform: of a set, of these products, or of all."""
        found = self._service.shop(platform)
        if set_name:
            check_set(set_name)
        for each in products:
            self._service.product(platform, each)
        params = {"set": set_name, "products": list(products)}
        job = await self._app.workflows.run(found.workflow, params, priority=priority)
        return Begun(job_id=job.id, platform=platform, workflow=found.workflow)

    async def extract(
        self, kind: str, params: dict[str, Any], *, priority: int | None = None
    ) -> Begun:
        """Begin an extract job: `url_extraction`, `single_product` or `multi_platform`."""
        given = {"type": check_type(kind), **params}
        job = await self._app.workflows.run(EXTRACT, given, priority=priority)
        return Begun(job_id=job.id, platform="extract", workflow=EXTRACT)

    async def get(self, scan_id: str, limit: int = 50) -> ScanDetail | None:
        """Return a scan with what it has seen; None if there is none."""
        scans = self._service.scans
        row = await scans.get(scan_id)
        if row is None:
            return None
        row = await self._agreement.settled(row)
        done = (await scans.progress([scan_id])).get(scan_id, 0)
        items = [seen_view(*pair) for pair in await scans.observations(scan_id, limit)]
        return ScanDetail(**scan_fields(row, done), items=items)

    async def scans(
        self,
        *,
        platform: str | None = None,
        status: ScanStatus | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> tuple[list[ScanView], str | None]:
        """Return scans, the newest first, and where the next page begins."""
        scans = self._service.scans
        rows, following = await scans.page(
            platform=platform, status=status, limit=limit, after=after
        )
        running = [each for each in rows if each.status is ScanStatus.RUNNING]
        settled = {each.scan_id: each for each in await self._agreement.all_settled(running)}
        rows = [settled.get(each.scan_id, each) for each in rows]
        done = await scans.progress([each.scan_id for each in rows])
        found = [
            ScanView(**scan_fields(each, done.get(each.scan_id, 0)))
            for each in rows
            if status is None or each.status is status
        ]
        return found, following

    async def changes(
        self, *, platform: str | None = None, scan_id: str | None = None, limit: int = 50
    ) -> list[ChangeView]:
        """Return what changed, the newest first."""
        rows = await self._service.scans.changes(platform=platform, scan_id=scan_id, limit=limit)
        return [change_view(each) for each in rows]

    async def report(self, scan_id: str) -> bytes:
        """Return the report of a scan (HTML). Raises `ArtifactNotFound`."""
        row = await self._service.scans.get(scan_id)
        if row is None or row.report is None:
            raise ArtifactNotFound(f"scan {scan_id} has no report")
        return await self._app.artifacts.get(row.report)

    # -- platforms -----------------------------------------------------------------------------

    async def platforms(self) -> list[PlatformView]:
        """Return the eight platforms: who runs, who waits, how the last scan ended."""
        lanes = {lane.queue: lane for lane in await self._app.lanes(lane=LANE)}
        units = {job.id: job for job in await self._jobs(LANE, UNFINISHED)}
        steps = {
            job.parent: job.meta.get("step", job.task)
            for job in await self._jobs(STEP_LANE, (Status.RUNNING,))
            if job.parent is not None
        }
        counts = await self._service.products.counts()
        states = []
        for name in NAMES:
            holder = next(iter(lanes[name].holders), None) if name in lanes else None
            held = await self._holder(holder, units)
            waiting = [job for job in units.values() if job.queue == name and job is not held]
            # One that holds the lane and has no token yet was not taken by a worker.
            if held is not None and not held.token:
                waiting, held = [held, *waiting], None
            # Of very many only the newest are known here, so they are counted by their lane.
            count = max(len(waiting), lanes[name].waiting if name in lanes else 0)
            running = None if held is None else await self._running(held, steps.get(held.id))
            states.append(await self._state(name, counts.get(name, 0), running, waiting, count))
        return states

    async def _jobs(self, lane: str, statuses: tuple[Status, ...]) -> list[Job]:
        wanted = JobFilter(queues=NAMES, lane=lane, statuses=statuses)
        return list((await self._app.list(wanted, limit=MOST_JOBS)).jobs)

    async def _holder(self, job_id: str | None, known: dict[str, Job]) -> Job | None:
        if job_id is None:
            return None
        try:
            job = known.get(job_id) or await self._app.get(job_id)
        except JobNotFound:
            return None
        return None if job.status.final else job

    async def _running(self, job: Job, step: str | None) -> RunState:
        scans = self._service.scans
        scan = await scans.get(job.id)
        done = 0 if scan is None else (await scans.progress([job.id])).get(job.id, 0)
        return run_state(job, step, scan, done)

    async def _state(
        self,
        name: str,
        products: int,
        running: RunState | None,
        waiting: list[Job],
        waiting_count: int,
    ) -> PlatformView:
        waiting.sort(key=lambda job: (-job.priority, job.id))
        platform = self._service.platform(name)
        last: list[Scan] = []
        if name in SHOPS:
            last = (await self._service.scans.page(platform=name, limit=2))[0]
        ended = next((each for each in last if each.status is not ScanStatus.RUNNING), None)
        return PlatformView(
            platform=name,
            title=platform.title,
            reader=platform.reader,
            workflow=platform.workflow,
            products=products,
            running=running,
            waiting=[run_state(job, None, None, 0) for job in waiting[:WAITING_SHOWN]],
            waiting_count=waiting_count,
            last=None if ended is None else ScanView(**scan_fields(ended, ended.products)),
        )


def check_set(name: str) -> None:
    """Refuse what cannot be the name of a set."""
    if not name.strip() or len(name) > LONGEST_SET or not name.isprintable():
        raise InvalidProduct(
            f"set is {shown(name)}; a name has 1 to {LONGEST_SET} printable characters"
        )
