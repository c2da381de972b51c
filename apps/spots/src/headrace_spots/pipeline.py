"""The tasks: `spots.shop` analyses a shop, `spots.again` asks for it by the clock, `spots.settle`
brings rows into line whose job was killed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from headrace import (
    BUGS,
    App,
    AuthenticationError,
    Context,
    Lane,
    LeaseLost,
    NotRetryable,
    ParserError,
    RetryPolicy,
    ValidationError,
)
from headrace.bundles import Setup
from headrace_spots.agreement import Agreement
from headrace_spots.crawling.urls import lane_of
from headrace_spots.service import AGAIN, OWNER, SETTLE, TASK, SpotsService
from headrace_spots.shops import Shops
from headrace_spots.steps import Steps
from headrace_spots.store.records import RunStatus, Snapshot, Write

NEVER_RETRY: tuple[type[Exception], ...] = (
    ParserError,
    ValidationError,
    AuthenticationError,
    NotRetryable,
    *BUGS,
)
RETRY = RetryPolicy(retries=5, base=5.0)
TIMEOUT_SECONDS = 6 * 3600.0
EVENT = "shop.analysed.v1"
SETTLE_EVERY = "*/5 * * * *"
STAGES = frozenset(each.value for each in RunStatus)


class ShopAnalysed(msgspec.Struct, kw_only=True):
    """What became of a run: the result of its job, and the body of the event `shop.analysed.v1`.

    `outcome` is "completed"; "gone" if the shop was removed meanwhile, which is not told.
    """

    run_id: str
    outcome: str
    store_id: str = ""
    url: str = ""
    name: str | None = None
    pages: int = 0
    reviews: int = 0
    rating: float | None = None
    sentiment: dict[str, int] = {}
    report: str | None = None


def register(app: App, setup: Setup) -> None:
    """Add the tasks, the event, and the hook that shows stages in the rows."""
    service = SpotsService.of(setup)
    queue = service.settings.queue

    @app.task(
        TASK,
        queue=queue,
        # A job holds its host: nobody else asks it meanwhile, also while this one waits.
        lane=Lane("host:{host}", width=1, on_retry="hold", rate=service.settings.rate),
        retry=RETRY,
        never_retry=NEVER_RETRY,
        timeout=TIMEOUT_SECONDS,
    )
    async def shop(ctx: Context, url: str, host: str) -> ShopAnalysed:
        """Analyse one shop. It is asked for by `POST /spots/jobs`."""
        # Its time limit, and errors that it could not write, are written by another job.
        ctx.then(app.job(SETTLE, {"run_id": ctx.job_id}), on="failed")
        return await Attempt(service, ctx, url).run()

    @app.task(AGAIN, queue=queue, never_retry=BUGS)
    async def again(ctx: Context, store_id: str) -> str | None:
        """Ask for a shop again, for its schedule."""
        shops = Shops(service)
        run_id = await shops.add_again(store_id, ctx.job_id)
        if run_id is None:
            await shops.unschedule(store_id)
        return run_id

    @app.task(SETTLE, queue=queue, never_retry=BUGS)
    async def settle(run_id: str | None = None) -> int:
        """Bring the row of a run, or of all unfinished ones, into line with its job."""
        if run_id is None:
            return await Agreement(service).settle_all()
        return int(await Shops(service).get(run_id) is not None)

    @app.on_stage
    async def show_stage(job: Any, stage: str, done: bool) -> None:
        if job.task == TASK and stage in STAGES:
            await service.repository.show(job.id, job.token, RunStatus(stage))

    app.add_schedule(settle, SETTLE_EVERY, name=SETTLE, allow_overlap=False)
    app.event_type(EVENT, ShopAnalysed, summary="A shop was analysed.")


@dataclass
class Attempt:
    """One attempt at one run. The hook on stages writes how far it is."""

    service: SpotsService
    ctx: Context
    url: str

    async def run(self) -> ShopAnalysed:
        """Do what earlier attempts have not done."""
        ctx, repository = self.ctx, self.service.repository
        row = await repository.get(ctx.job_id)
        if row is not None and row.status == RunStatus.COMPLETED:
            # The attempt before has stored it, and was killed before it could say so.
            return await self.finished(row)
        if row is None or await repository.begin(ctx.job_id, ctx.token) is not Write.STORED:
            return ShopAnalysed(run_id=ctx.job_id, outcome="gone")
        try:
            return await self.analyse(row)
        except Exception as error:
            if self.is_last(error):
                await repository.fail(ctx.job_id, ctx.token, str(error))
            raise

    async def analyse(self, row: Snapshot) -> ShopAnalysed:
        """Do the stages, in their order; a later attempt begins with the one that was cut off."""
        ctx, steps = self.ctx, Steps(self.service, self.ctx, row.store_id)
        crawled = await ctx.stage(RunStatus.CRAWLING, steps.crawl, self.url, done=RunStatus.CRAWLED)
        parsed = await ctx.stage(RunStatus.PARSING, steps.parse, crawled, done=RunStatus.PARSED)
        findings = await ctx.stage(RunStatus.ANALYZING, steps.analyse, parsed)
        write = await ctx.stage(RunStatus.EMBEDDING, steps.embed, crawled, parsed, findings)
        done = await self.service.repository.get(ctx.job_id)
        if done is None:
            return ShopAnalysed(run_id=ctx.job_id, outcome="gone")
        if done.status != RunStatus.COMPLETED:
            raise LeaseLost(f"another attempt at run {ctx.job_id} has begun ({write})")
        return await self.finished(done)

    async def finished(self, row: Snapshot) -> ShopAnalysed:
        """Keep the report for as long as its row is there, and tell others."""
        store = await self.service.repository.store(row.store_id)
        if row.report is not None:
            await self.ctx.artifacts.keep(
                row.report, owner=OWNER, reason=f"the report of {lane_of(row.url)}"
            )
        self.ctx.progress(100, f"{row.reviews:,} reviews on {row.pages:,} pages")
        analysed = ShopAnalysed(
            run_id=row.run_id,
            outcome="completed",
            store_id=row.store_id,
            url=row.url,
            name=None if store is None else store.name,
            pages=row.pages,
            reviews=row.reviews,
            rating=row.rating,
            sentiment={
                "positive": row.positive,
                "negative": row.negative,
                "neutral": row.neutral,
            },
            report=row.report,
        )
        self.ctx.publish(EVENT, analysed, key=row.store_id)
        return analysed

    def is_last(self, error: Exception) -> bool:
        """Return whether no further attempt will follow this error."""
        if isinstance(error, LeaseLost):
            return False
        return isinstance(error, NEVER_RETRY) or self.ctx.attempt >= self.ctx.max_attempts
