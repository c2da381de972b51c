"""No attempt is begun twice, whatever changes while the engine is being asked."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

import headrace
from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.errors import EngineUnavailable
from headrace.loops import loop
from headrace.model.durable.writes import Note
from headrace.model.ids import new_id
from headrace.model.job import ClaimedJob
from headrace.model.outcome import Failure, Retry, Settlement
from headrace.model.status import Status
from headrace.model.views import Exchange
from headrace.model.worker import Renewal
from headrace.orchestrator.claiming import dispatcher
from headrace.orchestrator.running.attempt import Reason
from headrace.orchestrator.settling.family_updates import FamilyUpdates
from headrace.orchestrator.worker_parts import WorkerRuntime
from tests.orchestrator.conftest import Worker, ended, until

EXCHANGE_BATCH = 20


@pytest.fixture
async def app(url: str, clock: Clock, tmp_path: Path) -> AsyncIterator[headrace.App]:
    """An App with a short lease."""
    async with headrace.App(url, clock=clock, lease_seconds=2, grace_seconds=0.2) as app:
        yield app
        assert await app.engine.audit() == []


class Between:
    """A real engine; a test does something between an answer and its arrival, or before a call."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.after_held: Callable[[], Awaitable[None]] | None = None
        self.before_exchange: Callable[[dict[str, Any]], Awaitable[None]] | None = None
        self.before_note: Callable[[], Awaitable[None]] | None = None
        self.notes: list[Sequence[Note]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    async def claimed_by(self, worker_id: str) -> list[ClaimedJob]:
        answer = await self._engine.claimed_by(worker_id)
        if self.after_held is not None:
            await self.after_held()
        return answer

    async def exchange(self, settlements: Sequence[Settlement], **options: Any) -> Exchange:
        if self.before_exchange is not None:
            await self.before_exchange(options)
        return await self._engine.exchange(settlements, **options)

    async def write_progress(self, notes: Sequence[Note]) -> tuple[str, ...]:
        if self.before_note is not None:
            await self.before_note()
        self.notes.append(notes)
        return await self._engine.write_progress(notes)


@pytest.fixture
def between(app: headrace.App) -> Between:
    between = Between(app.engine)
    app._engine = between
    return between


def runtime_of(orchestrator: headrace.JobOrchestrator) -> WorkerRuntime:
    assert orchestrator._runtime is not None
    return orchestrator._runtime


def twice(runs: list[tuple[str, int]]) -> list[tuple[str, int]]:
    return [run for run, count in Counter(runs).items() if count > 1]


async def test_a_lease_that_is_lost_while_the_worker_asks_for_its_jobs_starts_none_of_them_again(
    app: headrace.App, between: Between, worker: Worker, clock: Clock
) -> None:
    runs: list[tuple[str, int]] = []

    @app.task
    async def once(ctx: headrace.Context) -> int:
        runs.append((ctx.job_id, ctx.token))
        if ctx.token == 1 and len(runs) == 1:
            await asyncio.Event().wait()
        return ctx.token

    orchestrator = worker(app)
    await orchestrator.start()
    job = await once.enqueue()
    await until(lambda: runs)
    asked, lost = asyncio.Event(), asyncio.Event()

    async def slow_line() -> None:
        asked.set()
        await lost.wait()

    between.after_held = slow_line
    runtime_of(orchestrator).dispatcher.on_jobs_pushed("", [])  # a reply may have been lost
    await asyncio.wait_for(asked.wait(), 20)
    clock.advance(3)  # longer than the lease
    await until(lambda: orchestrator.telemetry.leases_lost)
    between.after_held = None
    lost.set()
    assert (await ended(app, job)).result == 2
    assert twice(runs) == []
    assert orchestrator.telemetry.adopted == 0


async def test_a_job_that_was_found_under_a_lease_that_is_lost_by_then_is_not_taken_on(
    app: headrace.App, between: Between, worker: Worker
) -> None:
    runs: list[str] = []

    @app.task(queue="elsewhere")
    async def unseen(ctx: headrace.Context) -> None:
        runs.append(ctx.job_id)

    orchestrator = worker(app, queues=["default"])
    await orchestrator.start()
    runtime, first_id = runtime_of(orchestrator), str(orchestrator.worker_id)
    await unseen.enqueue()
    reply = await app.engine.exchange([], worker_id=first_id, queues=["elsewhere"], limit=1)
    assert len(reply.jobs) == 1

    async def lose_the_lease() -> None:
        between.after_held = None
        runtime._renewed(first_id, Renewal(False))

    between.after_held = lose_the_lease
    runtime.dispatcher.on_jobs_pushed("", [])
    await until(lambda: orchestrator.worker_id not in (None, first_id))
    await runtime.dispatcher.next_round(20)
    assert (runs, orchestrator.telemetry.adopted) == ([], 0)


async def test_outcomes_that_are_taken_while_the_worker_asks_for_its_jobs_are_not_run_again(
    app: headrace.App, between: Between, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trip fails while a batch of outcomes travels beside it."""
    monkeypatch.setattr(dispatcher, "EXCHANGE_BATCH", EXCHANGE_BATCH)
    monkeypatch.setattr(loop, "backoff", lambda failures: 0.01)
    runs: list[tuple[str, int]] = []

    away = asyncio.Event()

    @app.task
    async def once(ctx: headrace.Context, number: int) -> None:
        runs.append((ctx.job_id, ctx.token))
        if number:
            await away.wait()

    jobs = await app.enqueue_many(once.job(number) for number in range(40))
    orchestrator = worker(app, max_workers=30)
    beside_left, beside_may_go = asyncio.Event(), asyncio.Event()
    trips = 0

    async def line(options: dict[str, Any]) -> None:
        nonlocal trips
        if "limit" not in options:  # no trip, but a batch beside one
            if not beside_may_go.is_set():
                beside_left.set()
                await beside_may_go.wait()
        elif not beside_left.is_set():
            trips += 1
            if trips > 1:
                away.set()  # the others end while the trip for the first is under way
                await beside_left.wait()
                raise EngineUnavailable("the line broke before the request arrived")

    async def beside_comes_first() -> None:
        if beside_left.is_set():
            beside_may_go.set()
            await until(lambda: not runtime_of(orchestrator).dispatcher.extra_settler.in_flight)

    between.before_exchange = line
    between.after_held = beside_comes_first
    await orchestrator.start()
    over = [await ended(app, job) for job in jobs]
    assert beside_may_go.is_set()
    assert {(job.status, job.attempt) for job in over} == {(Status.COMPLETED, 1)}
    assert twice(runs) == []
    assert orchestrator.telemetry.adopted == 0


async def test_a_reply_that_is_lost_during_a_look_makes_the_worker_look_again(
    app: headrace.App, between: Between, worker: Worker
) -> None:
    @app.task(queue="elsewhere")
    async def unseen() -> int:
        return 1

    orchestrator = worker(app, queues=["default"])
    await orchestrator.start()
    runtime = runtime_of(orchestrator)
    job = await unseen.enqueue()

    async def lose_one_more() -> None:
        between.after_held = None
        await app.engine.exchange(
            [], worker_id=orchestrator.worker_id, queues=["elsewhere"], limit=1
        )
        runtime.dispatcher.on_jobs_pushed("", [])

    between.after_held = lose_one_more
    runtime.dispatcher.reconciler.lease_seconds = 3600
    runtime.dispatcher.on_jobs_pushed("", [])
    assert (await ended(app, job)).result == 1


async def test_no_job_begins_in_a_slot_that_the_lost_lease_has_freed(
    local: headrace.App, worker: Worker
) -> None:
    go_on, began = threading.Event(), threading.Event()

    @local.task
    def held() -> None:
        began.set()
        go_on.wait(20)

    orchestrator = worker(local, max_workers=1)
    await orchestrator.start()
    runtime = runtime_of(orchestrator)
    runtime.dispatcher.prefetch.mean = 0.001  # so that it claims ahead
    await local.enqueue_many(held.job() for _ in range(5))
    await until(lambda: began.is_set() and runtime.dispatcher.unstarted.ages.count)
    try:
        runtime._renewed(str(orchestrator.worker_id), Renewal(False))
        assert [each.job.id for each in runtime.slots.running() if each.reason is None] == []
    finally:
        go_on.set()


async def test_an_attempt_that_ended_without_an_outcome_costs_one_and_is_not_begun_again(
    app: headrace.App, worker: Worker
) -> None:
    runs: list[tuple[str, int]] = []

    @app.task(retries=1)
    async def once(ctx: headrace.Context) -> int:
        runs.append((ctx.job_id, ctx.token))
        if ctx.token == 1:
            await asyncio.Event().wait()
        return ctx.attempt

    orchestrator = worker(app)
    await orchestrator.start()
    runtime = runtime_of(orchestrator)
    job = await once.enqueue()
    await until(lambda: runs)
    # The worker takes it for lost, while the engine counts on an outcome.
    runtime.lose_lease_of(job.id, 1)
    await until(lambda: not runtime.dispatcher.held)
    runtime.dispatcher.on_jobs_pushed("", [])
    over = await ended(app, job)
    assert (over.status, over.result) == (Status.COMPLETED, 2)
    assert [entry.failure.type for entry in over.attempts if entry.failure] == ["WorkerLost"]
    assert twice(runs) == []


async def test_what_has_begun_is_not_given_back_as_unstarted_when_a_worker_without_lease_leaves(
    app: headrace.App, worker: Worker
) -> None:
    began = asyncio.Event()

    @app.task(retries=1)
    async def begun(ctx: headrace.Context) -> int:
        began.set()
        if ctx.attempt == 1:
            await asyncio.Event().wait()
        return ctx.attempt

    leaving = worker(app)
    await leaving.start()
    runtime = runtime_of(leaving)
    job = await begun.enqueue()
    await asyncio.wait_for(began.wait(), 20)
    runtime.dispatcher.draining = True  # it stops, and does not register again
    runtime._renewed(str(leaving.worker_id), Renewal(False))
    await leaving.stop()
    assert (await app.get(job.id)).attempt == 1
    await worker(app).start()
    assert (await ended(app, job)).result == 2


# --- what attempts tell


async def test_a_thread_that_was_left_behind_does_no_harm_to_the_next_attempt(
    app: headrace.App, between: Between, worker: Worker
) -> None:
    runs: list[tuple[str, int]] = []
    talk, talked, keep = threading.Event(), threading.Event(), threading.Event()

    @app.task(retries=1)
    def staged(ctx: headrace.Context) -> str:
        runs.append((ctx.job_id, ctx.token))
        if ctx.token == 1:
            talk.wait(20)
            ctx.progress(99, "still here")
            talked.set()
            return "too late"
        keep.wait(20)
        return asyncio.run(second(ctx))

    async def second(ctx: headrace.Context) -> str:
        kept: str = await ctx.stage("one", one)
        return kept

    async def one() -> str:
        talk.set()
        talked.wait(20)
        return f"kept after {len(runs)} runs"

    orchestrator = worker(app, max_workers=2)
    await orchestrator.start()
    runtime = runtime_of(orchestrator)
    job = await staged.enqueue()
    await until(lambda: runs)
    [left] = runtime.slots.running()
    runtime.slots.deadlines.interrupt(left, Reason.STOPPED)
    await until(lambda: len(runs) == 2)
    [attempt] = runtime.slots.running()
    # Both tell something while the engine is busy with another note: they go in one call.
    first_note, go_on = asyncio.Event(), asyncio.Event()

    async def busy() -> None:
        first_note.set()
        await go_on.wait()

    between.before_note = busy
    runtime.writer.progress(attempt.job, progress=1.0)
    await asyncio.wait_for(first_note.wait(), 20)
    keep.set()
    await until(lambda: runtime.writer._writes and runtime.writer._due)
    between.before_note = None
    go_on.set()
    over = await ended(app, job)
    assert (over.status, over.result) == (Status.COMPLETED, "kept after 2 runs")
    assert over.progress != 99
    assert twice(runs) == []
    assert len(runs) == 2
    for notes in between.notes:
        assert len({note.token for note in notes}) == 1


async def test_the_late_answer_to_an_earlier_outcome_uses_up_nothing_of_the_next(
    local: headrace.App,
) -> None:
    updates = FamilyUpdates(engine=local.engine)
    parent = new_id()
    first = ClaimedJob(
        id=new_id(),
        token=1,
        attempt=1,
        task="child",
        queue="default",
        args=b"{}",
        max_attempts=4,
        timeout=None,
        parent=parent,
    )
    second = msgspec.structs.replace(first, token=2, attempt=2)
    outcome = Retry(Failure("Broken", "it broke"), 0.0)
    for job in (first, second):
        updates.after_settling(job, outcome)
    updates.settled([Settlement(first.id, 1, outcome)])
    await updates.flush()
    updates.settled([Settlement(first.id, 2, outcome)])
    assert list(updates._waking) == [parent]
