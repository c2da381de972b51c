"""The public verbs of an App, on every engine."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import pytest

import headrace
from headrace.errors import (
    InvalidArguments,
    InvalidInput,
    InvalidSetting,
    JobConflict,
    JobFailed,
    JobNotFound,
    ResultTimeout,
    UnknownTask,
)
from headrace.model.ids import new_id
from headrace.model.job import Inserted, NewJob
from tests.app.conftest import make_app


async def work_off(app: headrace.App) -> None:
    """Run everything that is pending."""
    await headrace.JobOrchestrator(app).run_until_idle()


async def test_enqueue_run_and_read_the_result(app: headrace.App) -> None:
    job = await app.find_task("add").enqueue(a=1, b=2)
    assert job.status is headrace.Status.PENDING
    await work_off(app)
    assert await app.result(job.id, timeout=5) == 3
    done = await app.get(job.id)
    assert (done.status, done.result, done.progress, done.attempt) == (
        headrace.Status.COMPLETED,
        3,
        100.0,
        1,
    )


async def test_enqueue_by_name_checks_like_the_task(app: headrace.App) -> None:
    job = await app.enqueue("add", {"a": 1, "b": 2}, priority=5, key="k")
    assert ((await app.get(job.id)).priority, job.key) == (5, "k")
    with pytest.raises(UnknownTask, match='Registered: "add"'):
        await app.enqueue("ad", {})
    with pytest.raises(InvalidArguments, match="`b`"):
        await app.enqueue("add", {"a": 1})
    with pytest.raises(InvalidSetting, match="priority"):
        await app.enqueue("add", {"a": 1, "b": 2}, priority=10**9)
    assert len((await app.list()).jobs) == 1


async def test_the_same_key_returns_the_job_that_exists(app: headrace.App) -> None:
    add = app.find_task("add")
    first = await add.options(key="k").enqueue(a=1, b=2)
    await work_off(app)
    again = await add.options(key="k").enqueue(a=5, b=5)
    assert again.id == first.id
    assert (again.status, again.result) == (headrace.Status.COMPLETED, 3)


async def test_a_hundred_thousand_jobs_stream_in_bounded_batches(
    app: headrace.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    insert = app.engine.insert

    async def counting(jobs: Sequence[NewJob]) -> list[Inserted]:
        sizes.append(len(jobs))
        return await insert(jobs)

    monkeypatch.setattr(app.engine, "insert", counting)
    add = app.find_task("add")
    told: list[int] = []

    async def many() -> AsyncIterator[NewJob]:
        for n in range(100_000):
            yield add.job(a=n, b=0)

    jobs = await app.enqueue_many(many(), on_progress=told.append)
    assert len(jobs) == 100_000
    assert max(sizes) <= 1_000
    assert told[-1] == 100_000
    [queue] = await app.engine.queues()
    assert queue.ready == 100_000


async def test_no_batch_is_stored_after_one_that_failed(
    app: headrace.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next batch is made while one is stored, and waits for what becomes of it."""
    calls, insert = 0, app.engine.insert

    async def failing(jobs: Sequence[NewJob]) -> list[Inserted]:
        nonlocal calls
        calls += 1
        if calls != 3:
            return await insert(jobs)
        await asyncio.sleep(0)  # like one that has to wait for its server
        raise InvalidInput("no")

    monkeypatch.setattr(app.engine, "insert", failing)
    made, told, add = list[int](), list[tuple[int, int]](), app.find_task("add")

    def many() -> Iterator[NewJob]:
        for n in range(6_000):
            made.append(n)
            yield add.job(a=n, b=0)

    with pytest.raises(InvalidInput) as raised:
        await app.enqueue_many(many(), on_progress=lambda count: told.append((count, len(made))))
    assert raised.value.__notes__ == ["2000 jobs of this call were stored before the error"]
    # Told when the batch after that is made, and not yet sent.
    assert told == [(1_000, 2_001), (2_000, 3_001)]
    [queue] = await app.engine.queues()
    assert (queue.ready, calls) == (2_000, 3)


async def test_big_jobs_make_smaller_batches(
    app: headrace.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.task
    async def big(text: str) -> None: ...

    sizes: list[int] = []
    insert = app.engine.insert

    async def counting(jobs: Sequence[NewJob]) -> list[Inserted]:
        sizes.append(sum(len(job.args) for job in jobs))
        return await insert(jobs)

    monkeypatch.setattr(app.engine, "insert", counting)
    await app.enqueue_many(big.job("x" * 900_000) for _ in range(12))
    assert max(sizes) <= 4 * 1_048_576
    assert len(sizes) == 3


async def test_concurrent_enqueues_share_round_trips(
    app: headrace.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0
    insert = app.engine.insert

    async def counting(jobs: Sequence[NewJob]) -> list[Inserted]:
        nonlocal calls
        calls += 1
        return await insert(jobs)

    monkeypatch.setattr(app.engine, "insert", counting)
    add = app.find_task("add")
    jobs = await asyncio.gather(*(add.enqueue(a=n, b=n) for n in range(500)))
    assert len({job.id for job in jobs}) == 500
    assert calls <= 5


async def test_one_bad_job_does_not_poison_those_it_travels_with(app: headrace.App) -> None:
    good = [app.find_task("add").job(a=n, b=n) for n in range(5)]
    bad = app.find_task("add").job(a=9, b=9)
    bad.priority = 10**30  # no engine can hold it; only a bug could let it through
    answers: list[Any] = await asyncio.gather(
        *(app.enqueue_job(job) for job in [*good[:3], bad, *good[3:]]), return_exceptions=True
    )
    assert [isinstance(answer, Exception) for answer in answers] == [
        False,
        False,
        False,
        True,
        False,
        False,
    ]
    assert len((await app.list()).jobs) == 5


async def test_a_cancelled_caller_does_not_take_the_others_with_it(app: headrace.App) -> None:
    add = app.find_task("add")
    tasks = [asyncio.create_task(add.enqueue(a=n, b=0)) for n in range(10)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(results[0], asyncio.CancelledError)
    assert all(isinstance(result, headrace.Job) for result in results[1:])


async def test_a_failed_job_has_no_result(app: headrace.App) -> None:
    job = await app.find_task("broken").enqueue()
    await work_off(app)
    with pytest.raises(JobFailed, match="it broke"):
        await app.result(job.id, timeout=5)


async def test_waiting_for_a_result_has_a_limit(app: headrace.App) -> None:
    job = await app.find_task("add").enqueue(a=1, b=1)
    with pytest.raises(ResultTimeout, match="it goes on"):
        await app.result(job.id, timeout=0.05)
    with pytest.raises(JobNotFound):
        await app.result(new_id(), timeout=5)


async def test_many_wait_for_results_at_once(app: headrace.App) -> None:
    add = app.find_task("add")
    jobs = await app.enqueue_many(add.job(a=n, b=1) for n in range(50))
    waiting = asyncio.gather(*(app.result(job.id, timeout=20) for job in jobs))
    await work_off(app)
    assert await waiting == [n + 1 for n in range(50)]


async def test_cancel_and_retry_by_hand(app: headrace.App) -> None:
    job = await app.find_task("add").enqueue(a=1, b=1)
    assert (await app.cancel(job.id)).status is headrace.Status.CANCELLED
    with pytest.raises(JobConflict, match="cancelled already"):
        await app.cancel(job.id)
    assert (await app.retry(job.id)).status is headrace.Status.PENDING
    with pytest.raises(JobConflict, match="needs no retry"):
        await app.retry(job.id)
    await work_off(app)
    assert await app.result(job.id, timeout=5) == 2


async def test_unknown_jobs_are_named(app: headrace.App) -> None:
    missing = new_id()
    for verb in (app.get, app.cancel, app.retry, app.why):
        with pytest.raises(JobNotFound, match=rf"{missing}; .*\(kept for 7 d\)"):
            await verb(missing)
        with pytest.raises(InvalidInput, match="not a UUID"):
            await verb("nonsense")


async def test_why_tells_the_reason(app: headrace.App) -> None:
    add = app.find_task("add")
    later = await add.options(delay=600).enqueue(a=1, b=1)
    assert "It is due at" in (await app.why(later.id))[0]
    lonely = await add.options(queue="lonely").enqueue(a=1, b=1)
    assert "No worker serves queue 'lonely'" in (await app.why(lonely.id))[0]
    await app.engine.pause("lonely", True)
    assert "is paused" in (await app.why(lonely.id))[0]
    first = await add.options(lane="x").enqueue(a=1, b=1)
    second = await add.options(lane="x").enqueue(a=1, b=1)
    assert any(
        reason.endswith(f"is held by {first.id}; 1 job waits for it.")
        for reason in await app.why(second.id)
    )
    await app.cancel(first.id)
    assert "It is finished: cancelled" in (await app.why(first.id))[0]


async def test_an_app_is_closed_and_used_again(url: str) -> None:
    app = make_app(url)
    async with app:
        job = await app.find_task("add").enqueue(a=1, b=1)
    assert (await app.get(job.id)).id == job.id
    await app.close()
    await app.close()


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_app_may_be_used_by_one_loop_after_the_other(url: str) -> None:
    """Nobody closes the App before its loop ends: Python warns of its sockets, rightly."""
    app = make_app(url)

    async def enqueue() -> str:
        return (await app.find_task("add").enqueue(a=1, b=1)).id

    first, second = asyncio.run(enqueue()), asyncio.run(enqueue())

    async def count() -> int:
        found = len((await app.list()).jobs)
        await app.close()
        return found

    assert asyncio.run(count()) == 2
    assert first != second
    gc.collect()  # the warnings belong here, not to the next test
