"""Running a finished job again from a chosen stage."""

from __future__ import annotations

import asyncio

import pytest

import headrace
from headrace import job_tree
from headrace.clock import Clock
from headrace.model.durable.awaited import EVENT
from headrace.model.durable.entries import CHILDREN, SLEEP, STAGE, WAIT
from headrace.model.durable.writes import StoredEntry
from headrace.model.job import Job, JobFilter
from headrace.model.status import Status
from headrace.upkeep import Replaced
from tests.orchestrator.conftest import LIMIT, Worker


async def test_what_came_from_a_stage_on_is_done_again(app: headrace.App, worker: Worker) -> None:
    ran: list[str] = []

    async def step(name: str) -> str:
        ran.append(name)
        return f"{name} {len(ran)}"

    @app.task
    async def leaf() -> int:
        ran.append("leaf")
        return 1

    @app.task
    async def scan(ctx: headrace.Context) -> list[object]:
        first = await ctx.stage("one", step, "one")
        early = await ctx.wait("early")
        second = await ctx.stage("two", step, "two", key=1)
        [child] = await ctx.gather([leaf.job()], group="leaves")
        late = await ctx.wait("late")
        third = await ctx.stage("three", step, "three")
        return [first, early, second, child, late, third]

    orchestrator = worker(app)
    job = await scan.enqueue()
    await app.signal(job.id, "early", "e")
    await orchestrator.run_until_idle()
    await app.signal(job.id, "late", "first")
    await orchestrator.run_until_idle()
    before = await app.get(job.id)
    assert before.result == ["one 1", "e", "two 2", 1, "first", "three 4"]
    await app.retry(job.id, from_stage="two")
    await orchestrator.run_until_idle()
    # The approval after it has to be given once more; the one before it counts.
    assert (await app.get(job.id)).status is Status.SCHEDULED
    await app.signal(job.id, "late", "second")
    await orchestrator.run_until_idle()
    assert (await app.get(job.id)).result == ["one 1", "e", "two 5", 1, "second", "three 7"]
    assert ran == ["one", "two", "leaf", "three", "two", "leaf", "three"]
    assert len((await app.list(JobFilter(parent=job.id))).jobs) == 2
    # Without a stage nothing is repeated.
    await app.retry(job.id)
    await orchestrator.run_until_idle()
    assert len(ran) == 7


async def test_unfinished_children_of_what_is_forgotten_are_cancelled(
    app: headrace.App, worker: Worker
) -> None:
    async def step() -> None: ...

    @app.task
    async def leaf() -> None: ...

    @app.task
    async def scan(ctx: headrace.Context) -> None:
        await ctx.stage("one", step)
        await ctx.spawn(leaf.options(delay=3600).job())

    orchestrator = worker(app)
    job = await scan.enqueue()
    await orchestrator.run_until_idle()
    await app.retry(job.id, from_stage="one")
    await orchestrator.run_until_idle()
    second, first = (await app.list(JobFilter(parent=job.id))).jobs
    assert (first.status, second.status) == (Status.CANCELLED, Status.SCHEDULED)
    entries = await app.engine.entries(job.id)
    assert [entry.kind for entry in entries if entry.kind in (SLEEP, WAIT, EVENT)] == []
    assert [entry.kind for entry in entries] == [STAGE, CHILDREN]


async def a_job_with_a_child(app: headrace.App, worker: Worker) -> Job:
    """A finished job whose child has not run; run again from "one", it makes another."""

    async def step() -> None: ...

    @app.task
    async def leaf() -> None: ...

    @app.task
    async def scan(ctx: headrace.Context) -> None:
        await ctx.stage("one", step)
        await ctx.spawn(leaf.options(delay=3600).job())

    job = await scan.enqueue()
    await worker(app).run_until_idle()
    return job


@pytest.mark.parametrize("first", ["one", None])
async def test_who_is_refused_leaves_the_children_of_the_accepted_one_alone(
    app: headrace.App, worker: Worker, url: str, first: str | None
) -> None:
    job = await a_job_with_a_child(app, worker)
    looked, go_on = asyncio.Event(), asyncio.Event()
    async with headrace.App(url, clock=app.clock) as other:
        entries = other.engine.entries

        async def slow(job_id: str, kind: str | None = None) -> list[StoredEntry]:
            found = await entries(job_id, kind)
            looked.set()
            await go_on.wait()
            return found

        other.engine.entries = slow  # type: ignore[method-assign]
        late = asyncio.create_task(other.retry(job.id, from_stage="one"))
        await asyncio.wait_for(looked.wait(), LIMIT)
        await app.retry(job.id, from_stage=first)
        await worker(app).run_until_idle()
        before = {each.id: each.status for each in (await app.list(JobFilter(parent=job.id))).jobs}
        assert list(before.values()).count(Status.SCHEDULED) == 1
        go_on.set()
        with pytest.raises(headrace.JobConflict, match="being run again already"):
            await asyncio.wait_for(late, LIMIT)
    after = {each.id: each.status for each in (await app.list(JobFilter(parent=job.id))).jobs}
    assert after == before


async def test_children_are_cancelled_though_whoever_ran_their_parent_again_died(
    app: headrace.App, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await a_job_with_a_child(app, worker)

    async def died(*_: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(job_tree, "complete_rerun", died)
        with pytest.raises(SystemExit):
            await app.retry(job.id, from_stage="one")
    assert (await app.get(job.id)).status is Status.PENDING
    await Replaced(engine=app.engine).tick()
    await worker(app).run_until_idle()
    second, first = (await app.list(JobFilter(parent=job.id))).jobs
    assert (first.status, second.status) == (Status.CANCELLED, Status.SCHEDULED)
    assert await app.engine.record_list(job_tree.REPLACED) == []


async def test_children_of_replaced_ones_are_cancelled_though_whoever_cancelled_these_died(
    app: headrace.App, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def step() -> None: ...

    @app.task
    async def leaf() -> None: ...

    @app.task
    async def branch(ctx: headrace.Context) -> None:
        await ctx.gather([leaf.options(delay=3600).job()])

    @app.task
    async def scan(ctx: headrace.Context) -> None:
        await ctx.stage("one", step)
        await ctx.spawn(branch.job())

    async def died(*_: object) -> None:
        raise SystemExit

    job = await scan.enqueue()
    await worker(app).run_until_idle()
    [child] = (await app.list(JobFilter(parent=job.id))).jobs
    with monkeypatch.context() as patched:
        patched.setattr(job_tree, "cancel_children", died)
        with pytest.raises(SystemExit):
            await app.retry(job.id, from_stage="one")
    assert (await app.get(child.id)).status is Status.CANCELLED
    await Replaced(engine=app.engine).tick()
    [grandchild] = (await app.list(JobFilter(parent=child.id))).jobs
    assert grandchild.status is Status.CANCELLED


async def test_a_stage_that_the_job_does_not_have(local: headrace.App, worker: Worker) -> None:
    async def step(fail: bool = False) -> None:
        if fail:
            raise ValueError("no")

    @local.task(retries=0)
    async def scan(ctx: headrace.Context) -> None:
        await ctx.stage("one", step)
        await ctx.stage("two", step)
        await ctx.stage("three", step, fail=True)

    job = await scan.enqueue()
    with pytest.raises(headrace.JobConflict, match="is pending; only a finished job"):
        await local.retry(job.id, from_stage="one")
    orchestrator = worker(local)
    await orchestrator.run_until_idle()
    with pytest.raises(headrace.InvalidInput, match="no stage 'onw'; it has: 'one', 'two'"):
        await local.retry(job.id, from_stage="onw")
    assert (await local.get(job.id)).status is Status.FAILED
    # The stage that it failed in has nothing to be forgotten.
    await local.retry(job.id, from_stage="three")
    await orchestrator.run_until_idle()
    assert [entry.name for entry in await local.engine.entries(job.id)] == ["one", "two"]


async def test_a_failed_parent_finds_its_children_after_old_jobs_were_pruned(
    app: headrace.App, worker: Worker, clock: Clock
) -> None:
    healthy = False

    @app.task
    async def leaf() -> int:
        return 7

    @app.task(retries=0)
    async def scan(ctx: headrace.Context) -> list[int]:
        found = await ctx.gather([leaf.job(), leaf.job()])
        await ctx.wait("approved")
        if not healthy:
            raise ValueError("no")
        return found

    orchestrator = worker(app)
    job = await scan.enqueue()
    await orchestrator.run_until_idle()
    clock.advance(100)
    await app.signal(job.id, "approved")
    await orchestrator.run_until_idle()
    assert (await app.get(job.id)).status is Status.FAILED
    assert await app.engine.prune(older_than=50) == 0
    healthy = True
    await app.retry(job.id)
    await orchestrator.run_until_idle()
    assert (await app.get(job.id)).result == [7, 7]
