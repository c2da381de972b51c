"""Stages beside sleeps, waits and failures: none is run a second time while it runs."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Awaitable, Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace
from headrace.clock import Clock
from headrace.model.status import Status
from headrace.testing import override
from tests.orchestrator.conftest import LIMIT, Worker, became, ended, until
from tests.orchestrator.durable import handlers


class Bench:
    """Where the functions of stages work until the test lets them go."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.begun: list[str] = []
        self.running: set[str] = set()
        self.overlaps = 0
        self._lock = threading.Lock()

    def work(self, name: str = "work") -> str:
        self._enter(name)
        self.go.wait(LIMIT)
        self.running.discard(name)
        return name

    async def work_async(self, name: str = "work") -> str:
        self._enter(name)
        try:
            while not self.go.is_set():  # noqa: ASYNC110 - told from elsewhere
                await asyncio.sleep(0.002)
        finally:
            self.running.discard(name)
        return name

    def _enter(self, name: str) -> None:
        with self._lock:
            self.begun.append(name)
            self.overlaps += name in self.running
            self.running.add(name)


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.go.set()


async def done(app: headrace.App) -> None:
    """Wait until another job is done, and so are outcomes that were told before it."""
    probe = app.tasks.get("probe") or app.task("probe")(asyncio.Event().set)
    await ended(app, await app.enqueue_job(probe.job()))


async def kept(app: headrace.App, job: headrace.Job, kind: str) -> None:
    """Wait until a job has kept something of this kind."""

    async def found() -> bool:
        return any(entry.kind == kind for entry in await app.engine.entries(job.id, None))

    await until(found)


async def _gather(*steps: Awaitable[Any]) -> list[Any]:
    return list(await asyncio.gather(*steps))


async def _task_group(*steps: Any) -> list[Any]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(step) for step in steps]
    return [task.result() for task in tasks]


TOGETHER = {"gather": _gather, "task group": _task_group}


@pytest.mark.parametrize("together", TOGETHER)
@pytest.mark.parametrize("kind", ["async", "def"])
async def test_a_job_waits_for_an_event_when_the_stages_beside_it_are_kept(
    app: headrace.App, worker: Worker, bench: Bench, together: str, kind: str
) -> None:
    @app.task(retries=0)
    async def order(ctx: headrace.Context) -> list[Any]:
        work: Any = bench.work if kind == "def" else bench.work_async
        return await TOGETHER[together](ctx.stage("work", work), ctx.wait("approved"))

    orchestrator = worker(app)
    await orchestrator.start()
    job = await order.enqueue()
    await until(lambda: bench.running)
    await kept(app, job, "wait")
    await app.signal(job.id, "approved", 7)
    await done(app)
    assert (await app.get(job.id)).status is Status.RUNNING
    assert bench.begun == ["work"]
    bench.go.set()
    over = await ended(app, job)
    assert (over.status, over.result) == (Status.COMPLETED, ["work", 7]), over.error
    assert (bench.begun, bench.overlaps) == (["work"], 0)


@pytest.mark.parametrize("way", [*itertools.product(TOGETHER, ("sleep", "gather"))], ids=" ".join)
async def test_a_job_sleeps_and_gathers_when_the_stages_beside_it_are_kept(
    app: headrace.App, worker: Worker, clock: Clock, bench: Bench, way: tuple[str, str]
) -> None:
    together, verb = way

    @app.task
    async def leaf() -> int:
        return 1

    @app.task(retries=0)
    async def order(ctx: headrace.Context) -> list[Any]:
        step: Any = ctx.sleep(60) if verb == "sleep" else ctx.gather([leaf.job()])
        return await TOGETHER[together](ctx.stage("work", bench.work), step)

    await worker(app).start()
    job = await order.enqueue()
    await until(lambda: bench.running)
    await kept(app, job, "sleep" if verb == "sleep" else "children")
    await done(app)
    assert (await app.get(job.id)).status is Status.RUNNING
    bench.go.set()
    if verb == "sleep":
        await became(app, job, Status.SCHEDULED)
        clock.advance(61)
    over = await ended(app, job)
    assert over.status is Status.COMPLETED, over.error
    assert over.result == ["work", None if verb == "sleep" else [1]]
    assert (bench.begun, bench.overlaps) == (["work"], 0)


async def test_stages_that_wait_inside_do_not_wait_for_each_other(
    app: headrace.App, worker: Worker, bench: Bench
) -> None:
    bench.go.set()

    @app.task(retries=0)
    async def order(ctx: headrace.Context) -> list[Any]:
        async def inner(name: str) -> Any:
            return await ctx.stage(f"inner {name}", outer, name)

        async def outer(name: str) -> Any:
            await ctx.stage(f"work {name}", bench.work, name)
            return await ctx.wait(name)

        return await _gather(ctx.stage("a", inner, "a"), ctx.stage("b", inner, "b"), ctx.wait("c"))

    await worker(app).start()
    job = await order.enqueue()
    await became(app, job, Status.SCHEDULED)
    for name in ("c", "a", "b"):
        await app.signal(job.id, name, name)
    over = await ended(app, job)
    assert (over.status, over.result) == (Status.COMPLETED, ["a", "b", "c"]), over.error
    assert (sorted(bench.begun), bench.overlaps) == (["a", "b"], 0)


async def test_a_job_fails_when_the_stages_beside_its_error_are_kept(
    app: headrace.App, worker: Worker, bench: Bench
) -> None:
    @app.task(retry=headrace.RetryPolicy(retries=1, base=0))
    async def order(ctx: headrace.Context) -> list[Any]:
        return await _gather(ctx.stage("work", bench.work), unlucky(ctx))

    async def unlucky(ctx: headrace.Context) -> str:
        if ctx.attempt == 1:
            await until(lambda: bench.running)
            failed.set()
            raise ValueError("no luck")
        return "luck"

    failed = asyncio.Event()
    await worker(app).start()
    job = await order.enqueue()
    await asyncio.wait_for(failed.wait(), LIMIT)
    await done(app)
    now = await app.get(job.id)
    assert (now.status, now.attempt, bench.begun) == (Status.RUNNING, 1, ["work"])
    bench.go.set()
    over = await ended(app, job)
    assert (over.status, over.result, over.attempt) == (Status.COMPLETED, ["work", "luck"], 2)
    assert (bench.begun, bench.overlaps) == (["work"], 0)


async def test_a_stage_beside_an_error_ends_with_the_time_of_its_job(
    local: headrace.App, worker: Worker, clock: Clock, bench: Bench
) -> None:
    @local.task(timeout=30, retries=0)
    async def order(ctx: headrace.Context, kind: str) -> None:
        work: Any = bench.work if kind == "def" else bench.work_async
        await _gather(ctx.stage("work", work, kind), unlucky(kind))

    async def unlucky(kind: str) -> None:
        await until(lambda: kind in bench.running)
        raise ValueError("no luck")

    orchestrator = worker(local)
    await orchestrator.start()
    jobs = [await order.enqueue(kind) for kind in ("async", "def")]
    await until(lambda: bench.running == {"async", "def"})
    clock.advance(31)
    assert [(await ended(local, job)).status for job in jobs] == [Status.TIMEOUT] * 2
    assert bench.running == {"def"}  # a thread cannot be stopped
    assert orchestrator.stuck_threads == 1


async def test_no_stage_begins_after_the_handler_was_left(
    local: headrace.App, worker: Worker, bench: Bench
) -> None:
    bench.go.set()
    on, outcomes = asyncio.Event(), []

    @local.task(retries=0)
    async def order(ctx: headrace.Context, way: str) -> None:
        async def later() -> None:
            await on.wait()
            try:
                await ctx.stage("late", bench.work, way)
            except BaseException as error:
                outcomes.append(type(error).__name__)
                raise

        behind.append(asyncio.ensure_future(later()))
        if way == "waits":
            await ctx.wait("never")
        if way == "fails":
            raise ValueError("no luck")

    behind: list[asyncio.Future[None]] = []
    await worker(local).start()
    waits, *others = [await order.enqueue(way) for way in ("waits", "fails", "returns")]
    await became(local, waits, Status.SCHEDULED)
    for job in others:
        await ended(local, job)
    on.set()
    await asyncio.gather(*behind, return_exceptions=True)
    assert not bench.begun
    assert sorted(outcomes) == ["LeaseLost", "LeaseLost", "Suspended"]


@pytest.mark.parametrize("together", TOGETHER)
async def test_a_stage_that_fails_beside_a_wait_can_be_caught(
    local: headrace.App, worker: Worker, together: str
) -> None:
    @local.task(retries=0)
    async def order(ctx: headrace.Context) -> str:
        async def fail() -> None:
            await until(lambda: ctx.running_stages._leaving)  # type: ignore[attr-defined]
            raise ValueError("no luck")

        try:
            await TOGETHER[together](ctx.stage("fail", fail), ctx.wait("never"))
        except (ValueError, ExceptionGroup):
            return "caught"
        return "not reached"

    await worker(local).start()
    over = await ended(local, await order.enqueue())
    assert (over.status, over.result) == (Status.COMPLETED, "caught"), over.error


@pytest.mark.parametrize("depth", [1, 5])
@pytest.mark.parametrize("together", TOGETHER)
async def test_a_stage_that_fails_deep_inside_beside_a_wait_can_be_caught(
    local: headrace.App, worker: Worker, together: str, depth: int
) -> None:
    @local.task(retries=0)
    async def order(ctx: headrace.Context) -> str:
        step: Any = ctx.stage("fail", failing, ctx)
        for _ in range(depth):
            step = TOGETHER[together](step)
        try:
            await TOGETHER[together](step, ctx.wait("never"))
        except (ValueError, ExceptionGroup):
            return "caught"
        return "not reached"

    await worker(local).start()
    over = await ended(local, await order.enqueue())
    assert (over.status, over.result) == (Status.COMPLETED, "caught"), over.error


async def test_a_handler_goes_on_after_a_stage_that_failed_beside_a_wait(
    local: headrace.App, worker: Worker
) -> None:
    """The wait is not over, but the handler has not to wait for it any more."""

    @local.task(retries=0)
    async def order(ctx: headrace.Context) -> Any:
        waiting = asyncio.ensure_future(ctx.wait("never"))
        try:
            await _gather(ctx.stage("fail", failing, ctx), waiting)
        except ValueError:
            # So long that the wait leaves.
            await asyncio.wait([waiting])
        return await ctx.stage("instead", asyncio.sleep, 0, "caught")

    await worker(local).start()
    over = await ended(local, await order.enqueue())
    assert (over.status, over.result) == (Status.COMPLETED, "caught"), over.error


async def failing(ctx: headrace.Context) -> None:
    """A stage that fails when something beside it waits."""
    await until(lambda: ctx.running_stages._leaving)  # type: ignore[attr-defined]
    raise ValueError("no luck")


async def test_a_child_process_waits_when_the_stages_beside_it_are_kept(
    worker: Worker, tmp_path: Path
) -> None:
    async with override(handlers.app) as shop:
        await worker(shop).start()
        job = await handlers.beside.enqueue(str(tmp_path))
        await until((tmp_path / "begun").exists)
        await kept(shop, job, "wait")
        await shop.signal(job.id, "approved", 7)
        await done(shop)
        assert (await shop.get(job.id)).status is Status.RUNNING
        (tmp_path / "go").touch()
        over = await ended(shop, job)
        assert (over.status, over.result) == (Status.COMPLETED, ["work", 7]), over.error
        assert (tmp_path / "begun").read_text() == "x"


async def test_a_stage_that_fails_beside_a_wait_can_be_caught_in_a_child_process(
    worker: Worker,
) -> None:
    async with override(handlers.app) as shop:
        await worker(shop).start()
        over = await ended(shop, await handlers.caught.enqueue())
        assert (over.status, over.result) == (Status.COMPLETED, "caught"), over.error


async def test_a_stage_that_a_child_process_leaves_behind_ends_before_the_next_attempt(
    worker: Worker, tmp_path: Path
) -> None:
    async with override(handlers.app) as shop:
        await worker(shop).start()
        job = await handlers.left_behind.enqueue(str(tmp_path))
        await until((tmp_path / "runs").exists)
        (tmp_path / "go").touch()
        over = await ended(shop, job)
        assert (over.status, over.result) == (Status.COMPLETED, "work"), over.error
        # What the first attempt has kept is not run again.
        assert (tmp_path / "runs").read_text() == "[]"
