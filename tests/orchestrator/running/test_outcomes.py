"""How attempts end, and what is written down about it."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from datetime import timedelta
from typing import Any

import msgspec

import headrace
from headrace.clock import Clock
from headrace.model.ids import new_id
from headrace.model.job import NewJob
from headrace.model.status import Status
from tests.orchestrator.conftest import Worker, ended


async def test_results_are_kept(app: headrace.App, worker: Worker) -> None:
    @app.task
    async def plain() -> dict[str, Any]:
        return {"price": 12.5, "이름": ["가", None]}

    @app.task()
    def in_a_thread(a: int, b: int = 2) -> int:
        return a * b

    jobs = [await plain.enqueue(), await in_a_thread.enqueue(21)]
    await worker(app).run_until_idle()
    assert (await app.get(jobs[0].id)).result == {"price": 12.5, "이름": ["가", None]}
    assert (await app.get(jobs[1].id)).result == 42


async def test_a_result_that_is_no_json_fails_at_once(local: headrace.App, worker: Worker) -> None:
    @local.task
    async def odd() -> object:
        return object()

    job = await odd.enqueue()
    await worker(local).run_until_idle()
    over = await local.get(job.id)
    assert (over.status, over.attempt, over.error_type) == (Status.FAILED, 1, "TypeError")
    assert 'task "odd" returned what cannot be kept as its result' in (over.error or "")


async def test_an_oversized_result_fails_at_once(here: str, worker: Worker) -> None:
    async with headrace.App(here, payload_limit=1_000) as app:

        @app.task
        async def chatty() -> str:
            return "x" * 2_000

        job = await chatty.enqueue()
        await worker(app).run_until_idle()
        over = await app.get(job.id)
    assert (over.status, over.attempt, over.error_type) == (Status.FAILED, 1, "PayloadTooLarge")
    assert "2,002 bytes, the limit is 1,000" in (over.error or "")


async def test_a_handler_chooses_when_to_be_tried_again(
    app: headrace.App, worker: Worker, clock: Clock
) -> None:
    @app.task(retries=1)
    async def later(at: bool) -> None:
        if at:
            raise headrace.RetryLater("rate limit", at=clock.utcnow() + timedelta(seconds=100))
        raise headrace.RetryLater("rate limit", delay=100)

    orchestrator = worker(app)
    jobs = [await later.enqueue(at=True), await later.enqueue(at=False)]
    await orchestrator.run_until_idle()
    for job in jobs:
        waiting = await app.get(job.id)
        assert waiting.status is Status.SCHEDULED
        assert 95 < waiting.run_at.timestamp() - clock.now() <= 100
    clock.advance(100)
    await orchestrator.run_until_idle()
    for job in jobs:
        over = await app.get(job.id)
        assert (over.status, over.attempt, over.error) == (Status.FAILED, 2, "rate limit")


async def test_a_snoozed_job_spends_no_attempt(
    app: headrace.App, worker: Worker, clock: Clock
) -> None:
    rounds: list[int] = []

    @app.task(retries=0)
    async def patient(ctx: headrace.Context) -> str:
        rounds.append(ctx.attempt)
        if len(rounds) < 4:
            raise headrace.Snooze(60)
        return "done"

    orchestrator = worker(app)
    job = await patient.enqueue()
    for _ in range(4):
        await orchestrator.run_until_idle()
        clock.advance(60)
    over = await app.get(job.id)
    assert (over.status, over.result, rounds) == (Status.COMPLETED, "done", [1, 1, 1, 1])


async def test_never_retry_names_classes(local: headrace.App, worker: Worker) -> None:
    class Refused(LookupError):
        pass

    @local.task(never_retry=[KeyError, "Refused"])
    async def fussy(named: bool) -> None:
        raise Refused("no") if named else KeyError("nothing")

    jobs = [await fussy.enqueue(named=True), await fussy.enqueue(named=False)]
    await worker(local).run_until_idle()
    assert [(await local.get(job.id)).status for job in jobs] == [Status.FAILED, Status.FAILED]


async def test_arguments_that_no_longer_fit_fail_at_once(
    local: headrace.App, worker: Worker
) -> None:
    @local.task
    async def add(a: int, b: int) -> int:
        return a + b

    job_id = new_id()
    await local.engine.insert([NewJob(id=job_id, task="add", args=b'{"a":1,"b":"two"}')])
    await worker(local).run_until_idle()
    over = await local.get(job_id)
    assert (over.status, over.attempt, over.error_type) == (Status.FAILED, 1, "InvalidArguments")
    assert 'got {"a":1,"b":"two"}' in (over.error or "")


async def test_whatever_a_handler_raises_is_the_failure_of_its_job_alone(
    local: headrace.App, worker: Worker
) -> None:
    kinds = {kind.__name__: kind for kind in (SystemExit, KeyboardInterrupt, StopIteration)}

    @local.task(retries=0)
    async def rude(kind: str) -> None:
        raise kinds[kind]

    @local.task(retries=0)
    def rude_in_a_thread(kind: str) -> None:
        raise kinds[kind]

    @local.task(retries=0)
    async def cancels_itself() -> None:
        raise asyncio.CancelledError

    @local.task
    async def polite() -> str:
        return "fine"

    jobs = [await task.enqueue(kind) for kind in kinds for task in (rude, rude_in_a_thread)]
    jobs.append(await cancels_itself.enqueue())
    last = await polite.enqueue()
    orchestrator = worker(local)
    await orchestrator.start()
    assert await local.result(last.id, timeout=20) == "fine"
    assert [(await ended(local, job)).status for job in jobs] == [Status.FAILED] * 7
    assert (await local.get(jobs[-1].id)).error_type == "CancelledError"
    assert len(orchestrator.workers) == 10
    assert not any(task.done() for task in orchestrator.workers)


async def test_context_variables_do_not_leak_between_jobs(
    local: headrace.App, worker: Worker
) -> None:
    user: contextvars.ContextVar[str] = contextvars.ContextVar("user", default="nobody")

    @local.task
    async def enter(name: str) -> str:
        before = user.get()
        user.set(name)
        return before

    @local.task()
    def enter_in_a_thread(name: str) -> str:
        before = user.get()
        user.set(name)
        return before

    jobs = [await task.enqueue("x") for task in (enter, enter_in_a_thread) for _ in range(5)]
    await worker(local, max_workers=1).run_until_idle()
    assert {(await local.get(job.id)).result for job in jobs} == {"nobody"}


async def test_plain_functions_run_in_threads(local: headrace.App, worker: Worker) -> None:
    together = threading.Barrier(5)

    @local.task()
    def meet() -> bool:
        together.wait(10)
        return threading.current_thread() is not threading.main_thread()

    jobs = [await meet.enqueue() for _ in range(5)]
    await worker(local).run_until_idle()
    assert [(await local.get(job.id)).result for job in jobs] == [True] * 5


async def test_a_long_message_is_kept_short(local: headrace.App, worker: Worker) -> None:
    @local.task(retries=0)
    async def chatty() -> None:
        raise ValueError("x" * 100_000 + "\x00\ud800")

    job = await chatty.enqueue()
    await worker(local).run_until_idle()
    over = await local.get(job.id)
    assert over.error is not None
    assert len(over.error) <= 4_000
    assert over.error.endswith("(100,002 characters)")
    [entry] = over.attempts
    assert entry.failure is not None
    assert len(entry.failure.traceback or "") <= 8_000
    assert entry.started_at is not None
    assert entry.started_at <= entry.ended_at


async def test_middleware_wraps_the_handler_in_order(local: headrace.App, worker: Worker) -> None:
    seen: list[str] = []

    async def outer(call_next: Any, job: Any, ctx: headrace.Context) -> Any:
        seen.append(f"outer {job.task} {ctx.attempt}")
        return {"wrapped": await call_next()}

    async def inner(call_next: Any, job: Any, ctx: headrace.Context) -> Any:
        seen.append("inner")
        return await call_next()

    @local.task
    async def plain(a: int) -> int:
        seen.append("handler")
        return a

    @local.task()
    def threaded(a: int) -> int:
        seen.append("handler")
        return a

    for task in (plain, threaded):
        seen.clear()
        job = await task.enqueue(7)
        await worker(local, middleware=[outer, inner]).run_until_idle()
        assert (await local.get(job.id)).result == {"wrapped": 7}
        assert seen == [f"outer {task.name} 1", "inner", "handler"]


async def test_typed_arguments_arrive_typed(local: headrace.App, worker: Worker) -> None:
    class Point(msgspec.Struct):
        x: int
        y: int = 0

    kinds: list[type] = []

    async def move(point: Point) -> Point:
        kinds.append(type(point))
        return Point(point.x + 1, point.y)

    move.__annotations__ = {"point": Point, "return": Point}
    task = local.task(move)
    job = await task.enqueue(Point(1))
    await worker(local).run_until_idle()
    assert (await local.get(job.id)).result == {"x": 2, "y": 0}
    assert kinds == [Point]
