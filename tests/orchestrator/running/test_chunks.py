"""One call of a handler for many jobs, each of which ends for itself."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

import headrace
from headrace.clock import Clock
from headrace.model.ids import new_id
from headrace.model.job import NewJob
from headrace.model.status import Status
from tests.orchestrator.chunk_support import Calls, Row, fill, statuses
from tests.orchestrator.conftest import Worker, ended, until

FAST = headrace.RetryPolicy(retries=1, base=0)


# --- outcomes


WAYS: dict[str, Callable[[headrace.App], Any]] = {}


def a_way(register: Callable[[headrace.App], Any]) -> Callable[[headrace.App], Any]:
    WAYS[register.__name__] = register
    return register


@a_way
def inside_of_with(app: headrace.App) -> Any:
    @app.task(chunk=50, retries=0)
    async def store(chunk: headrace.Chunk[Row]) -> None:
        for job in chunk:
            with job:
                if job.args.number == 7:
                    raise ValueError("seven is bad")
                await asyncio.sleep(0)

    return store


@a_way
def in_the_list(app: headrace.App) -> Any:
    @app.task(chunk=50, retries=0)
    async def store(chunk: headrace.Chunk[Row]) -> list[int | BaseException]:
        return [
            ValueError("seven is bad") if job.args.number == 7 else job.args.number for job in chunk
        ]

    return store


@a_way
def by_fail(app: headrace.App) -> Any:
    @app.task(chunk=50, retries=0)
    async def store(chunk: headrace.Chunk[Row]) -> None:
        chunk[7].fail(ValueError("seven is bad"))

    return store


@a_way
def in_a_thread(app: headrace.App) -> Any:
    @app.task(chunk=50, retries=0)
    def store(chunk: headrace.Chunk[Row]) -> None:
        for job in chunk:
            with job:
                if job.args.number == 7:
                    raise ValueError("seven is bad")

    return store


@pytest.mark.parametrize("way", WAYS)
async def test_one_bad_job_of_fifty_fails_alone(
    app: headrace.App, worker: Worker, way: str
) -> None:
    store = WAYS[way](app)
    jobs = await fill(app, store, 50)
    await worker(app).run_until_idle()
    found = [await app.get(job.id) for job in jobs]
    assert [job.status for job in found if job.args["number"] != 7] == [Status.COMPLETED] * 49
    bad = found[7]
    assert (bad.status, bad.error_type, bad.error) == (Status.FAILED, "ValueError", "seven is bad")
    assert bad.attempts[0].failure is not None
    if way == "inside_of_with":
        assert "in store" in str(bad.attempts[0].failure.traceback)
    if way == "in_the_list":
        assert [job.result for job in found if job is not bad] == [
            number for number in range(50) if number != 7
        ]


async def test_an_error_of_the_call_counts_for_each_job_without_an_outcome(
    app: headrace.App, worker: Worker
) -> None:
    @app.task(chunk=10, retry=FAST)
    async def store(chunk: headrace.Chunk[Row]) -> None:
        if chunk[0].attempt == 2:
            return
        chunk[0].complete("early")
        chunk[1].fail(headrace.NotRetryable("never"))
        raise ConnectionError("the database is away")

    jobs = await fill(app, store, 4)
    await worker(app).run_until_idle()
    found = [await app.get(job.id) for job in jobs]
    assert [(job.status, job.attempt) for job in found] == [
        (Status.COMPLETED, 1),
        (Status.FAILED, 1),
        (Status.COMPLETED, 2),
        (Status.COMPLETED, 2),
    ]
    assert found[0].result == "early"
    [entry] = found[2].attempts
    assert (entry.outcome, entry.failure and entry.failure.type) == ("retry", "ConnectionError")


async def test_an_outcome_is_recorded_before_the_call_has_ended(
    app: headrace.App, worker: Worker, calls: Calls
) -> None:
    @app.task(chunk=3)
    async def store(chunk: headrace.Chunk[Row]) -> None:
        chunk[1].complete(1)
        assert chunk[1].ended
        await calls.hold(chunk)

    jobs = await fill(app, store, 3)
    await worker(app).start()
    assert (await ended(app, jobs[1])).result == 1
    assert (await app.get(jobs[0].id)).status is Status.RUNNING
    calls.release.set()
    for job in jobs:
        assert (await ended(app, job)).status is Status.COMPLETED


async def test_a_job_has_one_outcome(app: headrace.App, worker: Worker) -> None:
    seen: list[str] = []

    @app.task(chunk=2)
    async def store(chunk: headrace.Chunk[Row]) -> list[str]:
        chunk[0].complete("first")
        with pytest.raises(headrace.JobConflict, match="has an outcome already"):
            chunk[0].complete()
        with pytest.raises(headrace.JobConflict):
            chunk[0].fail(ValueError("too late"))
        seen.append("refused")
        return ["second", "other"]

    jobs = await fill(app, store, 2)
    await worker(app).run_until_idle()
    assert [(await app.get(job.id)).result for job in jobs] == ["first", "other"]
    assert seen == ["refused"]


async def test_what_a_handler_may_raise_it_may_say_of_one_job(
    app: headrace.App, worker: Worker, clock: Clock
) -> None:
    attempts: list[list[int]] = []

    @app.task(chunk=4, retries=5, never_retry=[KeyError])
    async def store(chunk: headrace.Chunk[Row]) -> None:
        attempts.append([job.attempt for job in chunk])
        if len(attempts) > 1:
            return
        chunk[0].fail(headrace.RetryLater(delay=100))
        chunk[1].fail(headrace.Snooze(100))
        chunk[2].fail(KeyError("x"))

    jobs = await fill(app, store, 4)
    await worker(app).run_until_idle()
    assert await statuses(app, jobs) == [
        Status.SCHEDULED,
        Status.SCHEDULED,
        Status.FAILED,
        Status.COMPLETED,
    ]
    clock.advance(101)
    await worker(app).run_until_idle()
    # The first has spent an attempt, the second has not.
    assert sorted(attempts[1]) == [1, 2]


async def test_results_that_do_not_fit_the_chunk_fail_it(app: headrace.App, worker: Worker) -> None:
    @app.task(chunk=3)
    async def store(chunk: headrace.Chunk[Row]) -> list[int]:
        chunk[0].complete()
        return [1, 2]

    @app.task(chunk=3)
    async def text(chunk: headrace.Chunk[Row]) -> Any:
        return "abc"

    jobs, others = await fill(app, store, 3), await fill(app, text, 3)
    await worker(app).run_until_idle()
    assert await statuses(app, jobs) == [Status.COMPLETED, Status.FAILED, Status.FAILED]
    assert "returned 2 results for a chunk of 3 jobs" in str((await app.get(jobs[1].id)).error)
    assert "returned str for a chunk" in str((await app.get(others[0].id)).error)


async def test_a_result_that_cannot_be_kept_fails_its_job(
    app: headrace.App, worker: Worker
) -> None:
    @app.task(chunk=3)
    async def store(chunk: headrace.Chunk[Row]) -> list[Any]:
        chunk[2].complete(object())
        return [1, float("nan"), None]

    jobs = await fill(app, store, 3)
    await worker(app).run_until_idle()
    assert await statuses(app, jobs) == [Status.COMPLETED, Status.FAILED, Status.FAILED]


async def test_arguments_that_no_longer_fit_fail_their_job(
    app: headrace.App, worker: Worker, calls: Calls
) -> None:
    @app.task(chunk=3)
    async def store(chunk: headrace.Chunk[Row]) -> None:
        calls.note(chunk)

    jobs = await fill(app, store, 2)
    old = NewJob(id=new_id(), task="store", args=b'{"colour":"red"}')
    await app.engine.insert([old])
    await worker(app).run_until_idle()
    assert (await app.get(old.id)).error_type == "InvalidArguments"
    assert await statuses(app, jobs) == [Status.COMPLETED] * 2
    assert calls.seen == [[0, 1]]


async def test_a_job_can_be_followed_and_publishes(app: headrace.App, worker: Worker) -> None:
    ran: list[int] = []

    @app.task
    async def index(number: int) -> None:
        ran.append(number)

    @app.task(chunk=3, retries=0)
    async def store(chunk: headrace.Chunk[Row]) -> None:
        for job in chunk:
            job.then(index.job(job.args.number))
        chunk[1].fail(ValueError("bad"))

    await fill(app, store, 3)
    await worker(app).run_until_idle()
    assert sorted(ran) == [0, 2]


# --- what a job of a chunk is told and tells


async def test_each_job_has_its_own_token_attempt_and_progress(
    app: headrace.App, worker: Worker, clock: Clock, calls: Calls
) -> None:
    told: dict[str, tuple[int, int, str]] = {}

    @app.task(chunk=2, retry=headrace.RetryPolicy(base=10))
    async def store(chunk: headrace.Chunk[Row]) -> None:
        if len(chunk) == 1:
            raise OSError("alone")
        for job in chunk:
            told[job.job_id] = (job.token, job.attempt, job.key)
            job.progress(10 * job.args.number, f"row {job.args.number}")
        await calls.hold(chunk)

    first = await store.enqueue(number=1)
    await worker(app).run_until_idle()
    second = await store.options(key="mine").enqueue(number=2)
    clock.advance(11)
    await worker(app).start()
    await calls.started()

    async def shown() -> bool:
        found = [await app.get(job.id) for job in (first, second)]
        return [(job.progress, job.message) for job in found] == [(10, "row 1"), (20, "row 2")]

    await until(shown)
    calls.release.set()
    done = [await ended(app, job) for job in (first, second)]
    assert [(job.status, job.attempt) for job in done] == [
        (Status.COMPLETED, 2),
        (Status.COMPLETED, 1),
    ]
    assert told == {
        first.id: (done[0].token, 2, first.id),
        second.id: (done[1].token, 1, "mine"),
    }


async def test_a_thread_settles_and_tells_each_job(app: headrace.App, worker: Worker) -> None:
    go_on = threading.Event()
    seen: list[str] = []

    @app.task(chunk=3, retries=0)
    def store(chunk: headrace.Chunk[Row]) -> list[str]:
        seen.append(threading.current_thread().name)
        chunk[0].progress(50)
        chunk[0].complete("early")
        chunk[1].fail(ValueError("bad"))
        go_on.wait(20)
        return ["late"] * 3

    jobs = await fill(app, store, 3)
    await worker(app).start()
    assert (await ended(app, jobs[0])).result == "early"
    assert (await ended(app, jobs[1])).status is Status.FAILED
    assert (await app.get(jobs[2].id)).status is Status.RUNNING
    go_on.set()
    assert (await ended(app, jobs[2])).result == "late"
    assert seen[0].startswith("headrace-job")
