"""Durable waits for events from outside."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

import headrace
from headrace.clock import Clock
from headrace.model.durable.awaited import AwaitedEvent
from headrace.model.status import Status
from tests.orchestrator.conftest import Worker, became, ended


class Approval(msgspec.Struct):
    by: str
    amount: int = 0


async def test_an_event_brings_its_value(app: headrace.App, worker: Worker) -> None:
    @app.task
    async def order(ctx: headrace.Context) -> list[object]:
        value = await ctx.wait("approved", type=Approval)
        assert isinstance(value, Approval)
        return [value.by, ctx.attempt, ctx.token]

    orchestrator = worker(app)
    await orchestrator.start()
    job = await order.enqueue()
    waiting = await became(app, job, Status.SCHEDULED)
    assert waiting.awaits == (AwaitedEvent("approved"),)
    assert await app.signal(job.id, "approved", Approval("Ana")) == "delivered"
    assert (await ended(app, job)).result == ["Ana", 1, 2]
    with pytest.raises(headrace.JobConflict, match="completed already"):
        await app.signal(job.id, "refused", None)
    assert await app.signal(job.id, "approved", None) == "already"


async def test_an_event_that_is_there_already_is_taken_at_once(
    app: headrace.App, worker: Worker
) -> None:
    @app.task
    async def order(ctx: headrace.Context) -> list[object]:
        return [await ctx.wait("approved"), await ctx.wait("approved"), ctx.token]

    job = await order.enqueue()
    await app.signal(job.id, "approved", {"by": "Ana"})
    assert await app.signal(job.id, "approved", {"by": "Ben"}) == "already"
    await worker(app).run_until_idle()
    assert (await app.get(job.id)).result == [{"by": "Ana"}, {"by": "Ana"}, 1]


async def test_a_wait_ends_after_its_timeout_and_stays_so(
    app: headrace.App, worker: Worker, clock: Clock
) -> None:
    @app.task(retry=headrace.RetryPolicy(retries=3, base=1.0))
    async def order(ctx: headrace.Context) -> str:
        try:
            await ctx.wait("approved", timeout=60)
        except headrace.WaitTimedOut as error:
            if ctx.attempt == 1:
                raise OSError("again") from error
            # The same event again, with a time of its own.
            return f"late: {await ctx.wait('approved', timeout=3600)}"
        return "in time"

    orchestrator = worker(app)
    job = await order.enqueue()
    await orchestrator.run_until_idle()
    clock.advance(61)
    await orchestrator.run_until_idle()
    # It came too late for the first wait, also for attempts to come.
    await app.signal(job.id, "approved", 7)
    clock.advance(2)
    await orchestrator.run_until_idle()
    over = await app.get(job.id)
    assert (over.status, over.result) == (Status.COMPLETED, "late: 7")


async def test_a_second_wait_is_not_taken_for_an_event_of_that_name(
    local: headrace.App, worker: Worker
) -> None:
    @local.task
    async def order(ctx: headrace.Context) -> list[str]:
        found = []
        for event in ("order", "order", "order#2"):
            try:
                found.append(await ctx.wait(event, timeout=0 if event == "order" else 3600))
            except headrace.WaitTimedOut:
                found.append("too late")
        return found

    orchestrator = worker(local)
    job = await order.enqueue()
    await orchestrator.run_until_idle()
    await local.signal(job.id, "order#2", "in time")
    await orchestrator.run_until_idle()
    assert (await local.get(job.id)).result == ["too late", "too late", "in time"]


async def test_a_wait_that_nobody_ends_fails_the_job_for_good(
    local: headrace.App, worker: Worker, clock: Clock
) -> None:
    @local.task
    async def order(ctx: headrace.Context) -> None:
        await ctx.wait("approved", timeout=60)

    orchestrator = worker(local)
    job = await order.enqueue()
    await orchestrator.run_until_idle()
    clock.advance(61)
    await orchestrator.run_until_idle()
    over = await local.get(job.id)
    assert (over.status, over.error_type, over.attempt) == (Status.FAILED, "WaitTimedOut", 1)
    assert over.error == "event 'approved' did not come in the time given"


async def test_a_wait_without_time_only_looks(local: headrace.App, worker: Worker) -> None:
    @local.task
    async def order(ctx: headrace.Context) -> str:
        try:
            return str(await ctx.wait("approved", timeout=0))
        except headrace.WaitTimedOut:
            return "not there"

    job, other = await order.enqueue(), await order.enqueue()
    await local.signal(other.id, "approved", "yes")
    await worker(local).run_until_idle()
    assert (await local.get(job.id)).result == "not there"
    assert (await local.get(other.id)).result == "yes"


async def test_plain_functions_wait_too(app: headrace.App, worker: Worker) -> None:
    @app.task
    def order(ctx: headrace.Context) -> int:
        return int(asyncio.run(ctx.wait("amount"))) * 2

    orchestrator = worker(app)
    job = await order.enqueue()
    await orchestrator.run_until_idle()
    await app.signal(job.id, "amount", 21)
    await orchestrator.run_until_idle()
    assert (await app.get(job.id)).result == 42


async def test_an_event_of_another_kind_is_a_clear_error(
    local: headrace.App, worker: Worker
) -> None:
    @local.task
    async def order(ctx: headrace.Context) -> None:
        await ctx.wait("approved", type=Approval)

    job = await order.enqueue()
    await local.signal(job.id, "approved", [1])
    await worker(local).run_until_idle()
    over = await local.get(job.id)
    assert (over.status, over.attempt) == (Status.FAILED, 1)
    assert "event 'approved' is not what was waited for" in (over.error or "")


async def test_signals_that_cannot_be_delivered(local: headrace.App) -> None:
    with pytest.raises(headrace.JobNotFound):
        await local.signal("01980000-0000-7000-8000-000000000000", "approved")
    with pytest.raises(headrace.InvalidInput, match="is not a UUID"):
        await local.signal("nobody", "approved")

    @local.task
    async def order(ctx: headrace.Context) -> None: ...

    job = await order.enqueue()
    with pytest.raises(headrace.InvalidName):
        await local.signal(job.id, "")
    with pytest.raises(headrace.InvalidArguments, match="pass plain data"):
        await local.signal(job.id, "approved", object())
    with pytest.raises(headrace.PayloadTooLarge):
        await local.signal(job.id, "approved", "x" * 2_000_000)
