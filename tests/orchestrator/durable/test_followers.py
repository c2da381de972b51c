"""Jobs that follow from an outcome: there if and only if the outcome of that attempt counted."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

import headrace
from headrace.clock import Clock
from headrace.errors import InvalidInput, InvalidSetting, LeaseLost, PayloadTooLarge
from headrace.model.job import Job, NewJob
from headrace.model.outcome import Completed, Retry, Settlement
from headrace.model.status import Status
from headrace.orchestrator.durable.followers import FOLLOW_BYTES, MOST_FOLLOWERS, Followers
from headrace.orchestrator.running.attempt import Attempt
from headrace.testing import override, run
from tests.orchestrator.conftest import Worker, ended, until
from tests.orchestrator.durable import handlers
from tests.orchestrator.jobs import a_claimed_job
from tests.support.verbs import A_FAILURE


async def stored(app: headrace.App, ids: list[str]) -> list[Job]:
    return await app.engine.get(ids)


async def test_they_run_after_the_job_that_asked_for_them(app: headrace.App) -> None:
    seen: list[Any] = []

    @app.task
    async def tell(number: int) -> None:
        seen.append(number)

    @app.task
    async def work(ctx: headrace.Context) -> list[str]:
        ids = ctx.then(tell.job(1), tell.options(priority=5, meta={"own": 1}).job(2))
        ids += ctx.then(app.job("tell", {"number": 3}))
        seen.append("work")
        return ids

    job = await work.options(meta={"traceparent": "00-abc"}).enqueue()
    await headrace.JobOrchestrator(app, max_workers=1).run_until_idle()
    over = await app.get(job.id)
    assert seen[0] == "work"
    assert sorted(seen[1:]) == [1, 2, 3]
    found = {each.id: each for each in await stored(app, over.result)}
    first, second, third = (found[each] for each in over.result)
    assert first.meta == third.meta == {"traceparent": "00-abc", "follows": job.id}
    assert second.meta == {"traceparent": "00-abc", "own": 1, "follows": job.id}
    assert (second.priority, second.parent) == (5, None)
    assert {each.status for each in found.values()} == {Status.COMPLETED}


# What handlers do, and which followers are stored then.
ENDS = {
    "returns": (Status.COMPLETED, {"completed", "ended"}),
    "fails": (Status.FAILED, {"failed", "ended"}),
    "too late": (Status.TIMEOUT, {"failed", "ended"}),
    "cancelled": (Status.CANCELLED, {"ended"}),
}


@pytest.mark.parametrize("end", ENDS)
async def test_the_outcome_decides_which_of_them_are_stored(
    app: headrace.App, worker: Worker, clock: Clock, end: str
) -> None:
    ids: dict[str, str] = {}

    @app.task(queue="later")
    async def tell() -> None: ...

    @app.task(retries=0, timeout=60)
    async def work(ctx: headrace.Context) -> None:
        for on in ("completed", "failed", "ended"):
            [ids[on]] = ctx.then(tell.job(), on=on)
        if end == "fails":
            raise headrace.NotRetryable("for good")
        if end != "returns":
            await asyncio.Event().wait()

    orchestrator = worker(app, queues=["default"])
    await orchestrator.start()
    job = await work.enqueue()
    await until(lambda: len(ids) == 3)
    if end == "too late":
        clock.advance(61)
    elif end == "cancelled":
        await app.cancel(job.id)
    status, kinds = ENDS[end]
    assert (await ended(app, job)).status is status
    found = {each.id for each in await stored(app, list(ids.values()))}
    assert {on for on, job_id in ids.items() if job_id in found} == kinds


async def test_an_attempt_that_is_tried_again_leaves_none(app: headrace.App, clock: Clock) -> None:
    asked: list[str] = []

    @app.task(queue="later")
    async def tell() -> None: ...

    @app.task(retry=headrace.RetryPolicy(retries=3, base=1.0))
    async def work(ctx: headrace.Context) -> None:
        for on in ("completed", "failed", "ended"):
            asked.extend(ctx.then(tell.job(), on=on))
        if ctx.token == 1:
            raise OSError("again")
        if ctx.token == 2:
            raise headrace.Snooze(10)
        if ctx.token == 3:
            await ctx.sleep(10)

    job = await work.enqueue()
    orchestrator = headrace.JobOrchestrator(app, queues=["default"])
    for _ in range(4):
        await orchestrator.run_until_idle()
        clock.advance(11)
    assert (await app.get(job.id)).status is Status.COMPLETED
    assert len(asked) == 12
    assert {each.id for each in await stored(app, asked)} == {asked[9], asked[11]}


async def test_an_attempt_that_is_stopped_with_its_worker_leaves_none(
    app: headrace.App, worker: Worker
) -> None:
    asked: list[str] = []

    @app.task(queue="later")
    async def tell() -> None: ...

    @app.task
    async def work(ctx: headrace.Context) -> None:
        asked.extend(ctx.then(tell.job(), on="ended"))
        await asyncio.Event().wait()

    orchestrator = worker(app, queues=["default"])
    await orchestrator.start()
    job = await work.enqueue()
    await until(lambda: asked)
    await orchestrator.stop(grace=0)
    assert (await app.get(job.id)).status is Status.PENDING
    assert await stored(app, asked) == []


async def test_an_attempt_that_has_lost_its_lease_leaves_none(
    app: headrace.App, worker: Worker
) -> None:
    asked: list[str] = []
    go_on = asyncio.Event()

    @app.task(queue="later")
    async def tell() -> None: ...

    @app.task
    async def work(ctx: headrace.Context) -> None:
        asked.extend(ctx.then(tell.job(), on="ended"))
        await go_on.wait()

    orchestrator = worker(app, queues=["default"])
    await orchestrator.start()
    job = await work.enqueue()
    await until(lambda: asked)
    # Somebody has taken the worker for gone, which has not heard of it yet.
    [now] = await app.engine.get([job.id])
    taken_over = Settlement(job.id, now.token, Retry(A_FAILURE, 0.0))
    assert (await app.engine.exchange([taken_over])).refused == ()
    go_on.set()
    assert (await ended(app, job)).status is Status.COMPLETED
    assert [each.id for each in await stored(app, asked)] == asked[1:]
    assert len(asked) == 2


async def test_from_a_thread(app: headrace.App) -> None:
    @app.task
    def tell() -> None: ...

    @app.task
    def work(ctx: headrace.Context) -> list[str]:
        return ctx.then(tell.job(), tell.job())

    job = await work.enqueue()
    await headrace.JobOrchestrator(app).run_until_idle()
    ids = (await app.get(job.id)).result
    assert len(ids) == 2
    assert {each.status for each in await stored(app, ids)} == {Status.COMPLETED}


@pytest.fixture
async def shop() -> AsyncIterator[headrace.App]:
    async with override(handlers.app) as app:
        yield app


@pytest.mark.parametrize("blocking", [False, True])
async def test_from_a_child_process(shop: headrace.App, blocking: bool) -> None:
    task = handlers.followed_function if blocking else handlers.followed
    job = await task.enqueue()
    await headrace.JobOrchestrator(shop).run_until_idle()
    over = await shop.get(job.id)
    assert over.status is Status.COMPLETED, over.error
    ids, refusals = over.result
    assert [each.result["number"] for each in await stored(shop, ids)] == [1, 2]
    assert [each.meta["follows"] for each in await stored(shop, ids)] == [job.id] * 2
    assert "the limit is 1,000" in refusals[0]
    assert "made by task.job" in refusals[1]


async def test_a_child_process_that_is_killed_is_followed_as_well(
    shop: headrace.App, worker: Worker
) -> None:
    job = await handlers.followed_and_hangs.enqueue()
    orchestrator = worker(shop)
    await orchestrator.start()
    assert (await ended(shop, job)).status is Status.TIMEOUT

    async def told() -> list[Job]:
        jobs = (await shop.list()).jobs
        return [each for each in jobs if each.meta.get("follows") == job.id]

    [follower] = await until(told)
    assert follower.task == "leaf"


async def test_in_tests_of_programs(local: headrace.App) -> None:
    @local.task
    async def tell() -> str:
        return "told"

    @local.task
    async def work(ctx: headrace.Context) -> None:
        ctx.then(tell.options(delay=60).job())

    await work.enqueue()
    assert [job.task for job in await run(local)] == ["work"]
    assert [job.result for job in await run(local, advance=61)] == ["told"]


async def test_one_whose_key_exists_is_not_stored_again(app: headrace.App) -> None:
    @app.task(queue="later")
    async def tell() -> None: ...

    @app.task
    async def work(ctx: headrace.Context) -> list[str]:
        return ctx.then(tell.options(key="once").job())

    there = await tell.options(key="once").enqueue()
    job = await work.enqueue()
    await headrace.JobOrchestrator(app, queues=["default"]).run_until_idle()
    over = await app.get(job.id)
    assert over.status is Status.COMPLETED
    assert await stored(app, over.result) == []
    assert (await app.get(there.id)).status is Status.PENDING


async def test_what_cannot_follow_is_refused_at_once(local: headrace.App) -> None:
    refused: dict[str, str] = {}

    @local.task(queue="later")
    async def tell(text: str = "") -> None: ...

    @local.task
    async def work(ctx: headrace.Context) -> None:
        def refuse(about: str, error: type[Exception], *jobs: Any, on: Any = "completed") -> None:
            with pytest.raises(error) as raised:
                ctx.then(*jobs, on=on)
            refused[about] = str(raised.value)

        refuse("kind", InvalidSetting, tell.job(), on="never")
        refuse("type", InvalidInput, tell)
        refuse("number", PayloadTooLarge, *[tell.job()] * (MOST_FOLLOWERS + 1))
        large = [tell.job("x" * 1_000_000) for _ in range(5)]
        refuse("size", PayloadTooLarge, *large)
        ctx.then(*large[:4])
        refuse("together", PayloadTooLarge, large[4])

        async def stage() -> None:
            refuse("stage", InvalidInput, tell.job())

        await ctx.stage("reading", stage)

    job = await work.enqueue()
    await headrace.JobOrchestrator(local, queues=["default"]).run_until_idle()
    over = await local.get(job.id)
    assert over.status is Status.COMPLETED, over.error
    assert "completed, failed, ended" in refused["kind"]
    assert "task.job(…)" in refused["type"]
    assert f"the limit is {MOST_FOLLOWERS:,}" in refused["number"]
    assert f"the limit is {FOLLOW_BYTES:,}" in refused["size"]
    assert f"the limit is {FOLLOW_BYTES:,}" in refused["together"]
    assert "stage 'reading'" in refused["stage"]
    # What was refused left nothing of itself.
    assert sum(1 for each in (await local.list()).jobs if each.task == "tell") == 4


async def test_after_the_handler_has_ended_it_is_refused(local: headrace.App) -> None:
    contexts: list[headrace.Context] = []
    tasks: list[asyncio.Task[Any]] = []
    go_on = asyncio.Event()
    threads_go_on, raised = threading.Event(), []

    @local.task(queue="later")
    async def tell() -> None: ...

    @local.task
    async def work(ctx: headrace.Context) -> None:
        async def left_behind() -> None:
            await go_on.wait()
            ctx.then(tell.job())

        contexts.append(ctx)
        ctx.then(tell.job(), on="failed")
        tasks.append(asyncio.create_task(left_behind()))

    @local.task
    def in_thread(ctx: headrace.Context) -> None:
        def left_behind() -> None:
            threads_go_on.wait(10)
            try:
                ctx.then(tell.job())
            except LeaseLost as error:
                raised.append(error)

        threading.Thread(target=left_behind).start()

    await work.enqueue()
    await in_thread.enqueue()
    await headrace.JobOrchestrator(local, queues=["default"]).run_until_idle()
    go_on.set()
    threads_go_on.set()
    with pytest.raises(LeaseLost, match="has ended"):
        await tasks[0]
    with pytest.raises(LeaseLost, match="has ended"):
        contexts[0].then(tell.job())
    await until(lambda: raised)
    assert [each.task for each in (await local.list()).jobs if each.task == "tell"] == []


async def test_a_thread_that_is_abandoned_adds_nothing_to_what_was_recorded(
    here: str, clock: Clock
) -> None:
    local = headrace.App(here, grace_seconds=0.1, clock=clock)
    asked, go_on, raised = threading.Event(), threading.Event(), []

    @local.task(queue="later")
    async def tell(number: int) -> None: ...

    @local.task(retries=0, timeout=60)
    def work(ctx: headrace.Context) -> None:
        ctx.then(tell.job(1), on="ended")
        asked.set()
        go_on.wait(20)
        try:
            ctx.then(tell.job(2), on="ended")
        except LeaseLost as error:
            raised.append(error)

    async with local, headrace.JobOrchestrator(local, queues=["default"]):
        job = await work.enqueue()
        await until(asked.is_set)
        clock.advance(61)
        assert (await ended(local, job)).status is Status.TIMEOUT
        go_on.set()
        await until(lambda: raised)
        found = [each for each in (await local.list()).jobs if each.task == "tell"]
        assert [each.args for each in found] == [{"number": 1}]


async def test_children_do_not_follow_what_their_parent_follows(app: headrace.App) -> None:
    @app.task
    async def child() -> None: ...

    @app.task
    async def next_one(ctx: headrace.Context) -> str:
        return await ctx.spawn(child.job())

    @app.task
    async def work(ctx: headrace.Context) -> str:
        return ctx.then(next_one.job())[0]

    job = await work.options(meta={"user": "ada"}).enqueue()
    await headrace.JobOrchestrator(app).run_until_idle()
    second = await app.get((await app.get(job.id)).result)
    third = await app.get(second.result)
    assert second.meta == {"user": "ada", "follows": job.id}
    assert third.meta == {"user": "ada"}


def test_a_thread_that_is_late_by_a_moment_is_refused() -> None:
    attempt = Attempt(a_claimed_job(), 0.0)
    followers = Followers.of(attempt)
    follower = NewJob(id="x", task="t")
    followers.add(attempt, [follower], "completed", 0)
    # The outcome is recorded between the two steps of `ctx.then` in another thread.
    assert followers.close(Completed()) == (follower,)
    with pytest.raises(LeaseLost, match="nothing can follow"):
        followers.add(attempt, [NewJob(id="y", task="t")], "completed", 0)
    attempt.over = True
    with pytest.raises(LeaseLost, match="nothing can follow"):
        Followers.of(attempt)
