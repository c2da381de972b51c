"""Threads of handlers and stages: what hangs in one costs nobody else anything."""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

import headrace
from headrace.clock import Clock
from headrace.model.status import Status
from headrace.orchestrator.worker_parts import WorkerRuntime
from tests.orchestrator.conftest import LIMIT, Worker, became, ended, until


class Hook:
    """Where functions hang until the test lets go of them."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.inside = 0
        self._lock = threading.Lock()

    def hang(self) -> None:
        with self._lock:
            self.inside += 1
        self.release.wait(LIMIT)
        with self._lock:
            self.inside -= 1


@pytest.fixture
def hook() -> Any:
    made = Hook()
    yield made
    made.release.set()


async def through(call_next: Any, job: Any, ctx: Any) -> Any:
    return await call_next()


async def started(worker: Worker, app: headrace.App, **options: Any) -> WorkerRuntime:
    orchestrator = worker(app, **options)
    await orchestrator.start()
    assert orchestrator._runtime is not None
    return orchestrator._runtime


class Occupied(ThreadPoolExecutor):
    """A pool that has no thread to spare until the test says so."""

    def __init__(self) -> None:
        super().__init__(max_workers=1)
        self.free = threading.Event()
        super().submit(self.free.wait, LIMIT)
        self.asked = 0

    def submit(self, *args: Any, **kwargs: Any) -> Future[Any]:
        self.asked += 1
        return super().submit(*args, **kwargs)

    def let_go(self) -> None:
        """Serve everything that was handed in."""
        last = super().submit(int)
        self.free.set()
        last.result(LIMIT)


@pytest.mark.parametrize("layers", [(), (through,)], ids=["bare", "in layers"])
@pytest.mark.parametrize("way", ["cancelled", "timed out"])
async def test_a_job_that_was_stopped_before_a_thread_had_it_is_never_begun(
    app: headrace.App, worker: Worker, clock: Clock, way: str, layers: tuple[Any, ...]
) -> None:
    begun: list[int] = []

    @app.task(timeout=5, retries=0)
    def step(number: int) -> None:
        begun.append(number)

    runtime = await started(worker, app, max_workers=1, middleware=layers)
    runtime.threads._executor = pool = Occupied()
    try:
        job = await step.enqueue(1)
        await until(lambda: pool.asked)
        if way == "cancelled":
            await app.cancel(job.id)
            await until(lambda: any(each.reason for each in runtime.slots.attempts()))
        clock.advance(100)
        if way == "cancelled":
            # It would have been told politely, and is given up when the grace is over.
            await until(lambda: runtime.slots.busy)
        over = await ended(app, job)
        assert over.status is (Status.CANCELLED if way == "cancelled" else Status.TIMEOUT)
        assert not runtime.threads.abandoned
    finally:
        pool.let_go()
    assert not begun
    assert runtime.slots.busy == 0


@pytest.mark.parametrize("layers", [(), (through,)], ids=["bare", "in layers"])
async def test_a_job_that_is_cancelled_before_a_thread_has_it_ends_when_one_comes(
    local: headrace.App, worker: Worker, layers: tuple[Any, ...]
) -> None:
    begun: list[int] = []

    @local.task
    def step(number: int) -> None:
        begun.append(number)

    runtime = await started(worker, local, max_workers=1, middleware=layers)
    runtime.threads._executor = pool = Occupied()
    job = await step.enqueue(1)
    await until(lambda: pool.asked)
    await local.cancel(job.id)
    await until(lambda: any(each.reason for each in runtime.slots.attempts()))
    pool.let_go()
    assert (await ended(local, job)).status is Status.CANCELLED
    assert not begun


@pytest.mark.parametrize("layers", [(), (through,)], ids=["bare", "in layers"])
async def test_stages_that_hang_leave_threads_for_jobs_and_other_stages(
    app: headrace.App, worker: Worker, hook: Hook, layers: tuple[Any, ...]
) -> None:
    @app.task(timeout=None)
    async def hangs(ctx: headrace.Context) -> None:
        await asyncio.gather(*(ctx.stage("hang", hook.hang, key=key) for key in range(30)))

    @app.task(timeout=10, retries=0)
    def quick() -> int:
        return 1

    @app.task(timeout=10, retries=0)
    async def staged(ctx: headrace.Context) -> Any:
        return await ctx.stage("quick", quick.function)

    runtime = await started(worker, app, max_workers=2, middleware=layers)
    stuck = await hangs.enqueue()
    await until(lambda: hook.inside >= 4)  # twice the slots
    assert await app.result((await quick.enqueue()).id, timeout=LIMIT) == 1
    assert await app.result((await staged.enqueue()).id, timeout=LIMIT) == 1
    hook.release.set()
    assert (await ended(app, stuck)).status is Status.COMPLETED
    assert not runtime.threads.abandoned


async def test_a_stage_that_hangs_is_left_alone_when_its_time_is_over(
    app: headrace.App, worker: Worker, hook: Hook
) -> None:
    @app.task(retries=0)
    async def hangs(ctx: headrace.Context) -> str:
        for key in range(40):
            with pytest.raises(headrace.StageTimedOut):
                await ctx.stage("hang", hook.hang, key=key, timeout=0.01)
        return await ctx.stage("last", str, "fine", timeout=LIMIT)

    orchestrator = worker(app, max_workers=1)
    await orchestrator.start()
    assert await app.result((await hangs.enqueue()).id, timeout=LIMIT) == "fine"
    # Some were stopped before a thread had them; those that had begun hang.
    await until(lambda: orchestrator.stuck_threads == hook.inside > 0)
    hook.release.set()
    await until(lambda: orchestrator.stuck_threads == 0)


async def test_one_attempt_runs_so_many_stages_in_threads_at_once(
    local: headrace.App, worker: Worker, hook: Hook
) -> None:
    @local.task
    async def many(ctx: headrace.Context) -> None:
        await asyncio.gather(*(ctx.stage("hang", hook.hang, key=key) for key in range(40)))

    await started(worker, local)
    job = await many.enqueue()
    await until(lambda: hook.inside == 16)
    await asyncio.sleep(0)
    assert hook.inside == 16
    hook.release.set()
    assert (await ended(local, job)).status is Status.COMPLETED


class Thrifty(ThreadPoolExecutor):
    """A pool on a machine that has no more threads, until it has."""

    def __init__(self, refusals: int) -> None:
        super().__init__()
        self.refusals = refusals

    def _adjust_thread_count(self) -> None:
        if self.refusals:
            self.refusals -= 1
            raise RuntimeError("can't start new thread")
        super()._adjust_thread_count()


@pytest.mark.parametrize("way", ["bare", "in layers", "as a stage"])
async def test_a_thread_that_cannot_be_started_costs_no_slot_no_attempt_and_no_time_limit(
    local: headrace.App, worker: Worker, clock: Clock, way: str
) -> None:
    runs: list[int] = []

    @local.task(retries=0)
    def step(number: int) -> None:
        runs.append(number)

    @local.task(retries=0)
    async def staged(ctx: headrace.Context, number: int) -> None:
        await ctx.stage("step", step.function, number)

    @local.task(timeout=30, retries=0)
    async def slow() -> None:
        await asyncio.Event().wait()

    layers = (through,) if way == "in layers" else ()
    runtime = await started(worker, local, max_workers=2, middleware=layers)
    beside = await slow.enqueue()
    await until(lambda: runtime.slots.busy == 1)
    runtime.threads._executor = pool = Thrifty(2)

    def refused(times: int) -> bool:
        return pool.refusals == 2 - times

    jobs = []
    for number in (1, 2):
        jobs.append(await (staged if way == "as a stage" else step).enqueue(number))
        await until(functools.partial(refused, number))
        await until(lambda: runtime.slots.busy == 1)
    assert not runs
    clock.advance(6)
    over = [await ended(local, job) for job in jobs]
    assert [(job.status, job.attempt) for job in over] == [(Status.COMPLETED, 1)] * 2
    assert sorted(runs) == [1, 2]  # none of them twice
    clock.advance(60)
    assert (await ended(local, beside)).status is Status.TIMEOUT


async def test_an_error_in_one_time_limit_does_not_switch_off_the_others(
    local: headrace.App, worker: Worker, clock: Clock, hook: Hook
) -> None:
    class Odd(type):
        def __instancecheck__(cls, instance: object) -> bool:
            raise LookupError("odd")

    class OddError(Exception, metaclass=Odd):
        pass

    @local.task(timeout=5, never_retry=[OddError])
    async def odd() -> None:
        await asyncio.Event().wait()

    @local.task(timeout=5, never_retry=[OddError])
    def odd_in_a_thread() -> None:
        hook.hang()

    @local.task(timeout=6, retries=0)
    async def plain() -> None:
        await asyncio.Event().wait()

    runtime = await started(worker, local, max_workers=4)
    jobs = [await task.enqueue() for task in (odd, odd_in_a_thread, plain)]
    await until(lambda: runtime.slots.busy == 3 and hook.inside)
    clock.advance(20)
    assert (await ended(local, jobs[2])).status is Status.TIMEOUT
    for job in jobs[:2]:
        waiting = await became(local, job, Status.SCHEDULED)
        assert "LookupError" in f"{waiting.error_type} {waiting.error}"


class Waiting:
    """A coroutine that waits, behind wrappers that do not look like one."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.saw: list[str] = []

    async def wait(self) -> None:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.saw.append("cancelled")
            raise

    def plain(self) -> Any:
        return self.wait()

    def wrapped(self) -> Callable[[], Any]:
        @functools.wraps(self.wait)
        def call() -> Any:
            return self.wait()

        return call

    async def __call__(self) -> None:
        await self.wait()


@pytest.mark.parametrize("layers", [(), (through,)], ids=["bare", "in layers"])
@pytest.mark.parametrize("wrapper", ["plain", "wrapped", "partial", "object"])
async def test_a_coroutine_behind_a_plain_wrapper_is_cancelled_at_once(
    local: headrace.App, worker: Worker, wrapper: str, layers: tuple[Any, ...]
) -> None:
    waiting = Waiting()
    functions: dict[str, Any] = {
        "plain": waiting.plain,
        "wrapped": waiting.wrapped(),
        "partial": functools.partial(waiting.wait),
        "object": waiting,
    }
    task = local.task("waits")(functions[wrapper])
    runtime = await started(worker, local, middleware=layers)
    job = await task.enqueue()
    await asyncio.wait_for(waiting.begun.wait(), LIMIT)
    began = time.monotonic()
    await local.cancel(job.id)
    assert (await ended(local, job)).status is Status.CANCELLED
    assert time.monotonic() - began < 10  # the grace is 30 s
    assert waiting.saw == ["cancelled"]
    assert (runtime.slots.busy, runtime.threads.abandoned) == (0, set())


@pytest.mark.parametrize("layers", [(), (through,)], ids=["bare", "in layers"])
async def test_a_coroutine_is_not_begun_if_the_job_was_cancelled_before_it_was_returned(
    local: headrace.App, worker: Worker, hook: Hook, layers: tuple[Any, ...]
) -> None:
    waiting = Waiting()

    @local.task
    def slow_to_return() -> Any:
        hook.hang()
        return waiting.wait()

    runtime = await started(worker, local, middleware=layers)
    job = await slow_to_return.enqueue()
    await until(lambda: hook.inside)
    await local.cancel(job.id)
    await until(lambda: any(each.reason for each in runtime.slots.attempts()))
    hook.release.set()
    assert (await ended(local, job)).status is Status.CANCELLED
    assert not waiting.begun.is_set()
