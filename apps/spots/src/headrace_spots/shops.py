"""Shops as callers see them: asked for, read, removed. Rows and jobs agree here."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from typing import Any

import msgspec
from msgspec import structs
from sqlalchemy.ext.asyncio import AsyncConnection

from headrace import (
    App,
    ArtifactNotFound,
    InvalidInput,
    JobConflict,
    JobNotFound,
    UnknownSchedule,
)
from headrace_spots.agreement import UNFINISHED, Agreement
from headrace_spots.crawling.urls import host_of, lane_of
from headrace_spots.service import AGAIN, OWNER, TASK, SpotsService
from headrace_spots.store.records import RunStatus, Snapshot, Store
from headrace_spots.views import (
    AcceptedRun,
    ReviewHit,
    ReviewView,
    RunView,
    StoreDetail,
    StoreView,
    review_view,
    run_of,
    store_fields,
)

AT_ONCE = 8
HISTORY = 100


class Shops:
    """What can be done with shops."""

    def __init__(self, service: SpotsService) -> None:
        self._service = service
        self._agreement = Agreement(service)

    @property
    def _app(self) -> App:
        return self._service.app

    async def add(
        self, url: str, *, owner: str | None = None, asked_by: str | None = None
    ) -> AcceptedRun:
        """Have a shop analysed. The row is there before the job, under the same id; where both are
        in one PostgreSQL, they are one transaction.
        """
        service = self._service
        url = service.check_url(url)
        store_id = store_id_of(url)
        job = self._app.job(
            TASK, {"url": url, "host": lane_of(url)}, source="code" if asked_by else "api"
        )

        async def enqueue(connection: AsyncConnection) -> None:
            await self._app.enqueue(job, conn=connection)

        together = service.one_transaction
        if together:
            await self._app.open()
        await service.repository.add(
            job.id,
            store_id,
            url,
            host_of(url),
            owner=owner,
            asked_by=asked_by,
            within=enqueue if together else None,
        )
        if not together:
            await self._app.enqueue(job)
        return AcceptedRun(job_id=job.id, status=RunStatus.QUEUED, store_id=store_id)

    async def add_again(self, store_id: str, asked_by: str) -> str | None:
        """Have a known shop analysed again for a job of its schedule, once however often that job
        is tried; return the run, None if there is no such shop. While a run is unfinished, that one
        will do.
        """
        repository = self._service.repository
        row = await repository.find_asked(asked_by)
        if row is not None:
            if await self._agreement.job(row.run_id) is None and row.status == RunStatus.QUEUED:
                job = self._app.job(TASK, {"url": row.url, "host": lane_of(row.url)})
                await self._app.enqueue(structs.replace(job, id=row.run_id))
            return row.run_id
        store = await repository.store(store_id)
        if store is None:
            return None
        open_runs, _ = await repository.runs(store_id=store_id, statuses=UNFINISHED, limit=1)
        for each in open_runs:
            if not (await self._agreement.reconciled(each)).status.final:
                return each.run_id
        return (await self.add(store.url, asked_by=asked_by)).job_id

    # -- runs ----------------------------------------------------------------------------------

    async def get(self, run_id: str) -> RunView | None:
        """Return a run; None if there is none."""
        row = await self._service.repository.get(run_id)
        if row is None:
            return None
        row = await self._agreement.reconciled(row)
        store = await self._service.repository.store(row.store_id)
        return run_of(row, store, await self._agreement.job(run_id))

    async def runs(
        self,
        *,
        store_id: str | None = None,
        status: RunStatus | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> tuple[list[RunView], str | None]:
        """Return runs, the newest first, and where the next page begins."""
        if status == RunStatus.FAILED and after is None:
            # Rows of jobs that were killed or cancelled do not say so before they are looked at.
            await self._agreement.settle_all()
        repository = self._service.repository
        wanted = () if status is None else (status,)
        rows, following = await repository.runs(
            store_id=store_id, statuses=wanted, limit=limit, after=after
        )
        stores = {each: await repository.store(each) for each in {row.store_id for row in rows}}
        found = [
            run_of(row, stores[row.store_id])
            for row in await self._agreement.all_reconciled(rows)
            if status is None or row.status == status
        ]
        return found, following

    async def report(self, run_id: str) -> bytes:
        """Return the report of a run (HTML). Raises `ArtifactNotFound`."""
        row = await self._service.repository.get(run_id)
        if row is None or row.report is None:
            raise ArtifactNotFound(f"run {run_id} has no report")
        return await self._app.artifacts.get(row.report)

    # -- shops ---------------------------------------------------------------------------------

    async def stores(
        self, *, limit: int = 50, after: str | None = None
    ) -> tuple[list[StoreView], str | None]:
        """Return shops, the newest first, and where the next page begins."""
        found, following = await self._service.repository.stores(limit=limit, after=after)
        gate = asyncio.Semaphore(AT_ONCE)

        async def one(store: Store) -> StoreView:
            async with gate:
                current, runs = await self._runs(store, 1)
            return StoreView(**store_fields(store, current, runs[0] if runs else None))

        return list(await asyncio.gather(*(one(each) for each in found))), following

    async def store(self, store_id: str) -> StoreDetail | None:
        """Return a shop with all that is known about it; None if there is none."""
        store = await self._service.repository.store(store_id)
        if store is None:
            return None
        current, runs = await self._runs(store, HISTORY)
        body = None
        if store.run_id is not None:
            body = await self._service.repository.body(store.run_id)
        return StoreDetail(
            **store_fields(store, current, runs[0] if runs else None),
            analysis=body,
            history=runs,
            schedule=await self.schedule_of(store_id),
        )

    async def _runs(self, store: Store, limit: int) -> tuple[Snapshot | None, list[RunView]]:
        repository = self._service.repository
        rows, _ = await repository.runs(store_id=store.store_id, limit=limit)
        current = None if store.run_id is None else await repository.get(store.run_id)
        return current, [run_of(row, store) for row in await self._agreement.all_reconciled(rows)]

    async def remove(self, store_id: str) -> bool:
        """Delete a shop with everything that was found about it; return whether there was one."""
        runs = await self._service.repository.remove(store_id)
        if runs is None:
            return False
        await self.unschedule(store_id)
        for run in runs:
            if not run.status.final:
                with contextlib.suppress(JobNotFound, JobConflict, InvalidInput):
                    await self._app.cancel(run.run_id, "its shop was removed")
            if run.report is not None:
                with contextlib.suppress(ArtifactNotFound):
                    await self._app.artifacts.release(run.report, owner=OWNER)
        return True

    # -- reviews -------------------------------------------------------------------------------

    async def search(self, question: str, store_id: str | None, k: int) -> list[ReviewHit]:
        """Return the reviews that answer a question best."""
        return await self._service.search.search(question, store_id, k)

    async def reviews(
        self, store_id: str, *, label: str | None = None, limit: int = 50, offset: int = 0
    ) -> list[ReviewView]:
        """Return reviews of a shop, the newest first."""
        found = await self._service.search.reviews(
            store_id, label=label, limit=limit, offset=offset
        )
        return [review_view(each) for each in found]

    # -- schedules -----------------------------------------------------------------------------

    async def schedule(self, store_id: str, cron: str, tz: str = "UTC") -> dict[str, Any]:
        """Have a shop analysed again by the clock. Raises `InvalidInput` for an unknown shop."""
        if await self._service.repository.store(store_id) is None:
            raise InvalidInput(f"there is no shop {store_id}")
        await self._app.put_schedule(
            _schedule_name(store_id), cron, AGAIN, tz=tz, params={"store_id": store_id}
        )
        return await self.schedule_of(store_id) or {}

    async def schedule_of(self, store_id: str) -> dict[str, Any] | None:
        """Return when a shop is analysed again; None if it is not."""
        try:
            found = await self._app.get_schedule(_schedule_name(store_id))
        except UnknownSchedule:
            return None
        return {
            "name": found.name,
            "cron": found.expression,
            "words": found.words,
            "tz": found.tz,
            "next": msgspec.to_builtins(found.next[:1]),
        }

    async def unschedule(self, store_id: str) -> bool:
        """End what `schedule` began; return whether there was a schedule."""
        try:
            await self._app.remove_schedule(_schedule_name(store_id))
        except UnknownSchedule:
            return False
        return True


def store_id_of(url: str) -> str:
    """Return the id of the shop at a cleaned URL."""
    return hashlib.sha256(url.encode()).hexdigest()[:16]


def _schedule_name(store_id: str) -> str:
    return f"spots-{store_id}"
