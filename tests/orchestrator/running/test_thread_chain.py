"""Threads that go from one job to the next by themselves."""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
import time

import pytest

import headrace
from headrace.clock import Clock
from headrace.model.status import Status
from headrace.orchestrator.worker_parts import WorkerRuntime
from tests.orchestrator.conftest import LIMIT, Worker, ended, until


class Gate:
    """Keeps handlers in their threads until it is opened, and counts who came through."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.through: list[int] = []
        self.enough = threading.Event()
        self.most = 1_000_000

    def pass_by(self, number: int) -> None:
        assert self.open.wait(LIMIT)
        self.through.append(number)
        if len(self.through) >= self.most:
            self.enough.set()


async def started(
    worker: Worker, app: headrace.App, slots: int
) -> tuple[headrace.JobOrchestrator, WorkerRuntime]:
    """A worker that takes its jobs for short ones, and so lays out many."""
    orchestrator = worker(app, max_workers=slots)
    await orchestrator.start()
    runtime = orchestrator._runtime
    assert runtime is not None
    runtime.dispatcher.prefetch.mean = 0.0005
    return orchestrator, runtime


async def gated(
    worker: Worker, app: headrace.App, *, slots: int, count: int
) -> tuple[Gate, list[headrace.Job], headrace.JobOrchestrator, WorkerRuntime]:
    """Jobs before a gate: as many as there are slots in threads, all others laid out."""
    gate = Gate()

    @app.task
    def step(number: int) -> None:
        gate.pass_by(number)

    orchestrator, runtime = await started(worker, app, slots)
    jobs = await app.enqueue_many(step.job(number=number) for number in range(count))
    await until(lambda: len(runtime.slots.thread_chain.offered) == count - slots)
    return gate, jobs, orchestrator, runtime


async def test_threads_go_on_while_the_event_loop_is_busy(
    local: headrace.App, worker: Worker
) -> None:
    gate, jobs, *_ = await gated(worker, local, slots=2, count=20)
    gate.most = 20
    gate.open.set()
    assert gate.enough.wait(LIMIT)  # this blocks the event loop, and nobody minds
    over = [await ended(local, job) for job in jobs]
    assert {(job.status, job.attempt) for job in over} == {(Status.COMPLETED, 1)}
    assert sorted(gate.through) == list(range(20))


async def test_a_job_that_is_cancelled_while_it_is_laid_out_does_not_begin(
    app: headrace.App, worker: Worker
) -> None:
    gate, jobs, _, runtime = await gated(worker, app, slots=1, count=5)
    await app.cancel(jobs[3].id)
    await until(lambda: jobs[3].id in runtime.executor.cancelled_before_start)
    gate.open.set()
    over = [(await ended(app, job)).status for job in jobs]
    assert over == [Status.COMPLETED] * 3 + [Status.CANCELLED, Status.COMPLETED]
    assert gate.through == [0, 1, 2, 4]


async def test_a_stop_gives_back_what_is_laid_out(app: headrace.App, worker: Worker) -> None:
    gate, jobs, orchestrator, runtime = await gated(worker, app, slots=1, count=5)
    stopping = asyncio.ensure_future(orchestrator.stop(grace=LIMIT))
    await until(lambda: not runtime.slots.thread_chain.offered)
    gate.open.set()
    await stopping
    found = [await app.get(job.id) for job in jobs]
    assert [job.status for job in found] == [Status.COMPLETED] + [Status.PENDING] * 4
    assert [job.attempt for job in found] == [1, 0, 0, 0, 0]
    assert gate.through == [0]


async def test_a_thread_that_was_left_alone_takes_no_further_job(
    local: headrace.App, worker: Worker, clock: Clock
) -> None:
    stuck_gate, gate = Gate(), Gate()
    inside: list[int] = []

    begun = threading.Event()

    @local.task(timeout=60, retries=0)
    def stuck() -> None:
        begun.set()
        stuck_gate.pass_by(0)

    @local.task
    def step(number: int) -> None:
        inside.append(number)
        gate.pass_by(number)

    orchestrator, runtime = await started(worker, local, slots=1)
    doomed, *jobs = await local.enqueue_many(
        [stuck.job(), *(step.job(number=number) for number in range(5))]
    )
    await until(lambda: len(runtime.slots.thread_chain.offered) == 5 and begun.is_set())
    clock.advance(61)
    assert (await ended(local, doomed)).status is Status.TIMEOUT
    await until(lambda: inside == [0])
    assert orchestrator.stuck_threads == 1
    stuck_gate.open.set()
    await until(lambda: orchestrator.stuck_threads == 0)
    assert inside == [0]  # one slot, one job
    gate.open.set()
    assert {(await ended(local, job)).status for job in jobs} == {Status.COMPLETED}
    assert inside == [0, 1, 2, 3, 4]


async def test_a_time_limit_counts_from_the_start(
    local: headrace.App, worker: Worker, clock: Clock
) -> None:
    gate = Gate()

    @local.task(timeout=None)
    def first() -> None:
        gate.pass_by(0)

    @local.task(timeout=2, retries=0)
    def second() -> None:
        gate.pass_by(1)

    _, runtime = await started(worker, local, slots=1)
    jobs = await local.enqueue_many([first.job(), second.job()])
    await until(lambda: len(runtime.slots.thread_chain.offered) == 1)
    clock.advance(5)
    gate.open.set()
    assert [(await ended(local, job)).status for job in jobs] == [Status.COMPLETED] * 2


async def test_what_is_laid_out_for_too_long_goes_to_somebody_else(
    app: headrace.App, worker: Worker
) -> None:
    gate = Gate()

    @app.task
    def step(number: int) -> None:
        gate.pass_by(number)

    @app.task
    def count(number: int) -> int:
        return number

    _, runtime = await started(worker, app, slots=1)
    jobs = await app.enqueue_many([step.job(number=0), count.job(number=1), count.job(number=2)])
    await until(lambda: len(runtime.slots.thread_chain.offered) == 2)
    other = worker(app, max_workers=1)
    await other.start()
    assert [(await ended(app, job)).status for job in jobs[1:]] == [Status.COMPLETED] * 2
    assert not gate.through
    gate.open.set()
    assert (await ended(app, jobs[0])).status is Status.COMPLETED


async def test_a_function_that_returns_something_to_await_keeps_its_slot(
    local: headrace.App, worker: Worker
) -> None:
    release, awaited, gate = asyncio.Event(), asyncio.Event(), Gate()
    begun: list[int] = []

    async def rest(number: int) -> int:
        awaited.set()
        await release.wait()
        return number

    @local.task
    def later(number: int) -> object:
        gate.pass_by(number)
        return rest(number)

    @local.task
    def step(number: int) -> None:
        begun.append(number)

    _, runtime = await started(worker, local, slots=1)
    jobs = await local.enqueue_many(
        [later.job(number=7), *(step.job(number=number) for number in range(3))]
    )
    await until(lambda: len(runtime.slots.thread_chain.offered) == 3)
    gate.open.set()
    await asyncio.wait_for(awaited.wait(), LIMIT)
    assert runtime.slots.busy == 1
    assert not begun
    release.set()
    assert [(await ended(local, job)).status for job in jobs] == [Status.COMPLETED] * 4
    assert (await local.get(jobs[0].id)).result == 7


async def test_threads_keep_the_order_when_jobs_for_the_event_loop_come_in_between(
    local: headrace.App, worker: Worker
) -> None:
    begun: list[int] = []

    @local.task
    def in_thread(number: int) -> None:
        begun.append(number)

    @local.task
    async def on_loop(number: int) -> None:
        begun.append(number)

    await started(worker, local, slots=1)
    jobs = await local.enqueue_many(
        (on_loop if number % 7 == 3 else in_thread).job(number=number) for number in range(60)
    )
    for job in jobs:
        await ended(local, job)
    assert begun == list(range(60))


async def test_under_attack_every_job_is_done_once_and_no_slot_twice(
    app: headrace.App, worker: Worker
) -> None:
    slots, count = 4, 400
    chance = random.Random(4)
    lock = threading.Lock()
    inside, most, done = 0, 0, [0] * count

    @app.task(retries=0, timeout=5)
    def step(number: int, seconds: float, fails: bool) -> int:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
            done[number] += 1
        time.sleep(seconds)
        with lock:
            inside -= 1
        if fails:
            raise ValueError(number)
        return number

    orchestrator, runtime = await started(worker, app, slots=slots)
    wanted = [(chance.random() * 0.003, chance.random() < 0.1) for _ in range(count)]
    jobs = await app.enqueue_many(
        step.job(number=number, seconds=seconds, fails=fails)
        for number, (seconds, fails) in enumerate(wanted)
    )
    for job in chance.sample(jobs, 20):
        with contextlib.suppress(headrace.JobConflict):  # it was quicker
            await app.cancel(job.id)
    for number, job in enumerate(jobs):
        over = await ended(app, job)
        if over.status is Status.CANCELLED:
            assert done[number] <= 1
            continue
        assert done[number] == 1
        assert over.attempt == 1
        assert over.status is (Status.FAILED if wanted[number][1] else Status.COMPLETED)
    assert most <= slots
    await until(lambda: runtime.dispatcher.idle)
    assert (runtime.slots.busy, runtime.slots.thread_chain.running) == (0, 0)
    assert orchestrator.stuck_threads == 0


@pytest.mark.parametrize("error", [SystemExit(3), StopIteration("x"), KeyboardInterrupt()])
async def test_whatever_a_function_raises_is_its_jobs_failure(
    local: headrace.App, worker: Worker, error: BaseException
) -> None:
    @local.task(retries=0)
    def step() -> None:
        raise error

    await started(worker, local, slots=1)
    job = await ended(local, await step.enqueue())
    assert (job.status, job.error_type) == (Status.FAILED, type(error).__name__)
