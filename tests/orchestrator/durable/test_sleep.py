"""Durable sleeps: the slot is free, and what was done before is not done again."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import headrace
from headrace.clock import Clock
from headrace.model.durable.entries import SLEEP
from headrace.model.status import Status
from tests.orchestrator.conftest import Worker


async def test_a_sleep_frees_the_slot_and_repeats_nothing(
    app: headrace.App, worker: Worker, clock: Clock
) -> None:
    ran: list[str] = []

    async def step(name: str) -> str:
        ran.append(name)
        return name

    @app.task
    async def patient(ctx: headrace.Context) -> list[object]:
        first = await ctx.stage("one", step, "one")
        await ctx.sleep(3600)
        second = await ctx.stage("two", step, "two")
        await ctx.sleep_until(clock.utcnow() + timedelta(hours=2), name="long")
        return [first, second, ctx.attempt, ctx.token]

    orchestrator = worker(app)
    job = await patient.enqueue()
    await orchestrator.run_until_idle()
    asleep = await app.get(job.id)
    assert (asleep.status, asleep.attempt, asleep.awaits) == (Status.SCHEDULED, 0, ())
    assert 3590 < asleep.run_at.timestamp() - clock.now() <= 3600
    clock.advance(3601)
    await orchestrator.run_until_idle()
    assert ran == ["one", "two"]
    clock.advance(7201)
    await orchestrator.run_until_idle()
    over = await app.get(job.id)
    assert (over.status, over.result) == (Status.COMPLETED, ["one", "two", 1, 3])
    assert ran == ["one", "two"]
    assert [entry.name for entry in await app.engine.entries(job.id, SLEEP)] == ["#1", "long"]


async def test_a_short_sleep_keeps_the_slot(local: headrace.App, worker: Worker) -> None:
    @local.task
    async def brief(ctx: headrace.Context) -> int:
        await ctx.sleep(0.01)
        await ctx.sleep(0)
        return ctx.token

    job = await brief.enqueue()
    await worker(local).run_until_idle()
    assert (await local.get(job.id)).result == 1
    assert await local.engine.entries(job.id) == []


async def test_a_sleep_goes_on_over_a_failed_attempt(
    app: headrace.App, worker: Worker, clock: Clock
) -> None:
    """How long it lasts was settled by the first attempt."""

    @app.task(retry=headrace.RetryPolicy(retries=3, base=1.0))
    async def patient(ctx: headrace.Context) -> int:
        await ctx.sleep(100)
        if ctx.attempt == 1:
            raise OSError("again")
        return ctx.attempt

    orchestrator = worker(app)
    job = await patient.enqueue()
    await orchestrator.run_until_idle()
    clock.advance(101)
    await orchestrator.run_until_idle()
    assert (await app.get(job.id)).attempt == 1
    clock.advance(2)
    await orchestrator.run_until_idle()
    assert (await app.get(job.id)).result == 2


async def test_a_sleep_longer_than_a_store_can_wait(
    local: headrace.App, worker: Worker, clock: Clock
) -> None:
    """It wakes in between, sees that it is too early, and sleeps on."""

    @local.task
    async def patient(ctx: headrace.Context) -> int:
        await ctx.sleep(80 * 86_400)
        return ctx.token

    orchestrator = worker(local)
    job = await patient.enqueue()
    for _ in range(3):
        await orchestrator.run_until_idle()
        assert (await local.get(job.id)).status is Status.SCHEDULED
        clock.advance(30 * 86_400)
    await orchestrator.run_until_idle()
    assert (await local.get(job.id)).result == 4


async def test_sleeps_in_a_skipped_stage_do_not_count(
    local: headrace.App, worker: Worker, clock: Clock
) -> None:
    """The sleep after a stage is not taken for the one inside of it."""

    @local.task
    async def nested(ctx: headrace.Context) -> float:
        async def inner() -> float:
            await ctx.sleep(100)
            return clock.now()

        began = await ctx.stage("inner", inner)
        await ctx.sleep(100)
        return clock.now() - began

    orchestrator = worker(local)
    job = await nested.enqueue()
    for _ in range(2):
        await orchestrator.run_until_idle()
        clock.advance(101)
    await orchestrator.run_until_idle()
    assert (await local.get(job.id)).result >= 100
    names = [entry.name for entry in await local.engine.entries(job.id, SLEEP)]
    assert names == ["inner/#1", "#1"]


async def test_plain_functions_sleep_too(app: headrace.App, worker: Worker, clock: Clock) -> None:
    @app.task
    def patient(ctx: headrace.Context) -> int:
        asyncio.run(ctx.sleep(3600))
        return ctx.token

    orchestrator = worker(app)
    job = await patient.enqueue()
    await orchestrator.run_until_idle()
    assert (await app.get(job.id)).status is Status.SCHEDULED
    clock.advance(3601)
    await orchestrator.run_until_idle()
    assert (await app.get(job.id)).result == 2


async def test_sleeps_at_once_are_over_one_after_the_other(
    local: headrace.App, worker: Worker, clock: Clock
) -> None:
    @local.task
    async def patient(ctx: headrace.Context) -> int:
        async with asyncio.TaskGroup() as group:
            group.create_task(ctx.sleep(100, name="short"))
            group.create_task(ctx.sleep(200, name="long"))
        return ctx.token

    orchestrator = worker(local)
    job = await patient.enqueue()
    await orchestrator.run_until_idle()
    clock.advance(101)
    await orchestrator.run_until_idle()
    clock.advance(101)
    await orchestrator.run_until_idle()
    assert (await local.get(job.id)).result == 3


async def test_a_handler_that_catches_everything_fails_with_the_reason(
    local: headrace.App, worker: Worker
) -> None:
    @local.task
    async def greedy(ctx: headrace.Context) -> str:
        try:
            await ctx.sleep(3600)
        except BaseException:
            return "went on"
        return "slept"

    @local.task
    async def careful(ctx: headrace.Context) -> str:
        try:
            await ctx.sleep(3600)
        except Exception:
            return "went on"
        return "slept"

    job, other = await greedy.enqueue(), await careful.enqueue()
    await worker(local).run_until_idle()
    over = await local.get(job.id)
    assert (over.status, over.attempt) == (Status.FAILED, 1)
    assert "caught headrace.Suspended" in (over.error or "")
    assert (await local.get(other.id)).status is Status.SCHEDULED


async def test_a_sleeping_job_can_be_cancelled_and_hurried(
    app: headrace.App, worker: Worker
) -> None:
    @app.task
    async def patient(ctx: headrace.Context) -> int:
        await ctx.sleep(3600)
        return ctx.token

    orchestrator = worker(app)
    cancelled, hurried = await patient.enqueue(), await patient.enqueue()
    await orchestrator.run_until_idle()
    assert (await app.cancel(cancelled.id)).status is Status.CANCELLED
    await app.retry(hurried.id)
    await orchestrator.run_until_idle()
    # It sleeps on: how long was settled before.
    assert (await app.get(hurried.id)).status is Status.SCHEDULED
    await app.cancel(hurried.id)


async def test_odd_sleeps_are_refused(local: headrace.App, worker: Worker) -> None:
    @local.task(retries=0)
    async def odd(ctx: headrace.Context, seconds: float) -> None:
        await ctx.sleep(seconds)

    job = await odd.enqueue(seconds=-1)
    await worker(local).run_until_idle()
    assert (await local.get(job.id)).error == "sleep takes seconds from 0, got -1.0"


@pytest.mark.parametrize(
    ("verb", "given", "told"),
    [
        ("sleep", 1e300, "sleep must be between 0 and 315360000 seconds, got 1e+300"),
        ("sleep", timedelta(hours=1), "sleep must be a number of seconds, got datetime.timedelta"),
        ("sleep_until", datetime.max.replace(tzinfo=UTC), "sleep_until must lie in the years from"),
        ("sleep_until", datetime(2030, 1, 1), "sleep_until 2030-01-01T00:00:00 has no time zone"),
        ("sleep_until", 2e9, "sleep_until must be a datetime, got 2000000000.0"),
    ],
)
async def test_a_sleep_without_an_end_is_refused(
    local: headrace.App, worker: Worker, verb: str, given: Any, told: str
) -> None:
    @local.task(retries=0)
    async def odd(ctx: headrace.Context) -> None:
        await getattr(ctx, verb)(given)

    job = await odd.enqueue()
    await worker(local).run_until_idle()
    assert ((await local.get(job.id)).error or "").startswith(told)


class OtherClock(Clock):
    """The clock of a machine whose time is an hour ahead of the engine's."""

    def now(self) -> float:
        return super().now() + 3600


@pytest.mark.parametrize("verb", ["sleep", "sleep_until", "wait"])
async def test_a_sleep_goes_by_the_engines_clock(
    app: headrace.App, url: str, worker: Worker, clock: Clock, verb: str
) -> None:
    """A worker whose clock is wrong falls asleep; another, whose clock is right, goes on."""
    # Whoever shares a file is on one machine, which has one clock.
    wrong = clock if app.engine.name == "sqlite" else OtherClock()
    due = clock.utcnow() + timedelta(seconds=100)
    async with headrace.App(url, clock=wrong) as other:
        for each in (app, other):

            @each.task
            async def patient(ctx: headrace.Context) -> str:
                if verb == "sleep":
                    await ctx.sleep(100)
                elif verb == "sleep_until":
                    await ctx.sleep_until(due)
                else:
                    with contextlib.suppress(headrace.WaitTimedOut):
                        await ctx.wait("never", timeout=100)
                return "awake"

        job = await app.enqueue("patient")
        await worker(other).run_until_idle()
        asleep = await app.get(job.id)
        assert asleep.status is Status.SCHEDULED
        assert 90 < asleep.run_at.timestamp() - clock.now() <= 100
        clock.advance(101)
        await worker(app).run_until_idle()
        assert (await app.get(job.id)).result == "awake"


async def test_sleeps_that_are_over_are_not_asked_about_one_by_one(
    local: headrace.App, worker: Worker, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    @local.task
    async def patient(ctx: headrace.Context) -> None:
        for _ in range(6):
            await ctx.sleep(100)

    orchestrator = worker(local)
    job = await patient.enqueue()
    for _ in range(6):
        await orchestrator.run_until_idle()
        clock.advance(101)
    asked = 0
    now = local.engine.now

    async def counted() -> float:
        nonlocal asked
        asked += 1
        return await now()

    monkeypatch.setattr(local.engine, "now", counted)
    await orchestrator.run_until_idle()
    assert (await local.get(job.id)).status is Status.COMPLETED
    assert asked == 1
