"""Hooks on stages: told before a stage begins and after its result is stored."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

import headrace
from headrace.clock import Clock
from headrace.model.durable.entries import STAGE
from headrace.model.job import ClaimedJob
from headrace.model.status import Status
from headrace.testing import override
from tests.orchestrator.conftest import Worker
from tests.orchestrator.durable import handlers

Told = list[tuple[str, bool]]


@pytest.fixture
async def shop() -> AsyncIterator[headrace.App]:
    async with override(handlers.app) as app:
        yield app
    handlers.app.stage_hooks.clear()


async def test_a_hook_is_told_before_a_stage_and_after_its_result_is_stored(
    app: headrace.App, worker: Worker, clock: Clock
) -> None:
    told: list[tuple[str, bool, list[str], int]] = []

    @app.on_stage
    async def hook(job: ClaimedJob, stage: str, done: bool) -> None:
        entries = await app.engine.entries(job.id, STAGE)
        told.append((stage, done, [entry.name for entry in entries], job.token))

    ran: list[str] = []

    async def parse() -> str:
        ran.append("parse")
        return "text"

    async def embed() -> None:
        ran.append("embed")
        if ran.count("embed") == 1:
            raise ConnectionError("away")

    @app.task
    async def ingest(ctx: headrace.Context) -> None:
        await ctx.stage("parsing", parse, done="parsed")
        await ctx.stage("embedding", embed)

    orchestrator = worker(app)
    job = await ingest.enqueue()
    await orchestrator.run_until_idle()
    clock.advance(5)
    await orchestrator.run_until_idle()
    assert (await app.get(job.id)).status is Status.COMPLETED
    # The second attempt skips "parsing": of that nothing is told.
    assert told == [
        ("parsing", False, [], 1),
        ("parsed", True, ["parsing"], 1),
        ("embedding", False, ["parsing"], 1),
        ("embedding", False, ["parsing"], 2),
        ("embedding", True, ["parsing", "embedding"], 2),
    ]


@pytest.mark.parametrize("at_end", [False, True])
async def test_an_error_of_a_hook_fails_the_attempt(
    local: headrace.App, worker: Worker, clock: Clock, at_end: bool
) -> None:
    failed: list[str] = []
    ran: list[int] = []

    async def hook(job: ClaimedJob, stage: str, done: bool) -> None:
        if done is at_end and not failed:
            failed.append(stage)
            raise ConnectionError("the status cannot be stored")

    local.on_stage(hook)

    @local.task
    async def ingest(ctx: headrace.Context) -> None:
        await ctx.stage("parsing", ran.append, 1)

    orchestrator = worker(local)
    job = await ingest.enqueue()
    await orchestrator.run_until_idle()
    waiting = await local.get(job.id)
    assert (waiting.status, waiting.error) == (Status.SCHEDULED, "the status cannot be stored")
    assert ran == ([1] if at_end else [])
    clock.advance(5)
    await orchestrator.run_until_idle()
    assert (await local.get(job.id)).status is Status.COMPLETED
    assert ran == [1]


async def test_hooks_are_told_on_the_workers_loop_also_of_stages_in_a_thread(
    local: headrace.App, worker: Worker
) -> None:
    where: list[int] = []

    async def hook(job: ClaimedJob, stage: str, done: bool) -> None:
        where.append(threading.get_ident())

    local.on_stage(hook)

    @local.task
    def ingest(ctx: headrace.Context) -> None:
        asyncio.run(ctx.stage("parsing", where.append, 0))

    await ingest.enqueue()
    await worker(local).run_until_idle()
    here = threading.get_ident()
    assert where == [here, 0, here]


@pytest.mark.parametrize("at_end", [None, False, True])
async def test_stages_in_a_child_process_are_told_too(
    shop: headrace.App, worker: Worker, at_end: bool | None
) -> None:
    told: Told = []

    @shop.on_stage
    async def hook(job: ClaimedJob, stage: str, done: bool) -> None:
        told.append((stage, done))
        if done is at_end:
            raise headrace.NotRetryable("no room for the status")

    job = await handlers.two_stages.enqueue()
    await worker(shop).run_until_idle()
    over = await shop.get(job.id)
    if at_end is None:
        assert over.status is Status.COMPLETED, over.error
        assert told == [("first", False), ("first", True), ("second", False), ("both", True)]
    else:
        assert (over.status, over.error) == (Status.FAILED, "no room for the status")
        assert told == [("first", False), ("first", True)][: 1 + at_end]


async def test_middleware_is_told_of_stages_if_it_wants(
    local: headrace.App, worker: Worker
) -> None:
    told: list[Any] = []

    class Status:
        async def on_stage(self, job: ClaimedJob, stage: str, done: bool) -> None:
            told.append((stage, done))

    class Both(Status):
        async def __call__(self, call_next: Any, job: Any, ctx: Any) -> Any:
            told.append("begins")
            return await call_next()

    @local.task
    async def ingest(ctx: headrace.Context) -> None:
        await ctx.stage("parsing", int)

    await ingest.enqueue()
    await worker(local, middleware=[Status(), Both()]).run_until_idle()
    assert told == ["begins", *[("parsing", False)] * 2, *[("parsing", True)] * 2]


def test_what_cannot_be_a_hook_is_refused(local: headrace.App) -> None:
    def plain(job: ClaimedJob, stage: str, done: bool) -> None: ...

    class Plain:
        def on_stage(self, job: ClaimedJob, stage: str, done: bool) -> None: ...

    with pytest.raises(headrace.InvalidSetting, match="on_stage takes an `async def`"):
        local.on_stage(plain)  # type: ignore[type-var]
    with pytest.raises(headrace.InvalidSetting, match="on_stage takes an `async def`"):
        headrace.JobOrchestrator(local, middleware=[Plain()])  # type: ignore[list-item]
    with pytest.raises(headrace.InvalidSetting, match="or has on_stage"):
        headrace.JobOrchestrator(local, middleware=[7])  # type: ignore[list-item]
    assert local.stage_hooks == []
