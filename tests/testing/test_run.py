"""Running jobs in a test, with time that is moved instead of waited for."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator

import pytest

from headrace import App, NotRetryable, Status
from headrace.testing import enqueued, override, run
from tests.testing import shop


@pytest.fixture
async def app() -> AsyncIterator[App]:
    shop.ran.clear()
    async with override(shop.app) as app:
        yield app


async def test_what_may_run_now_runs_in_order(app: App) -> None:
    for name in ("ada", "bob", "cy"):
        await shop.greet.enqueue(name=name)
    jobs = await run(app, max_workers=1)
    assert shop.ran == ["ada", "bob", "cy"]
    assert [job.args["name"] for job in jobs] == ["ada", "bob", "cy"]
    assert await run(app) == []


async def test_what_is_due_later_waits(app: App) -> None:
    job = await shop.greet.options(delay=3600).enqueue(name="ada")
    assert await run(app) == []
    assert (await app.get(job.id)).status is Status.SCHEDULED
    assert await run(app, advance=3599) == []
    assert [each.id for each in await run(app, advance=2)] == [job.id]


async def test_retries_run_when_their_time_comes(app: App) -> None:
    job = await shop.flaky.enqueue(fails=3)
    [tried] = await run(app)
    assert (tried.status, shop.ran) == (Status.SCHEDULED, [1])
    began = time.monotonic()
    # 100 and 200 seconds: the third retry, 400 seconds later, has to wait.
    await run(app, advance=310)
    assert shop.ran == [1, 2, 3]
    [done] = await run(app, advance=400)
    assert (done.id, done.status, done.result) == (job.id, Status.COMPLETED, 4)
    assert time.monotonic() - began < 30


async def test_jobs_that_enqueue_others_run_each_at_its_time(app: App) -> None:
    await shop.chain.enqueue(left=5)
    start = app.clock.now()
    assert len(await run(app, advance=200)) == 4
    assert shop.ran == [5, 4, 3, 2]
    assert 200 <= app.clock.now() - start < 230, "the clock ends where it was told to"


async def test_a_job_that_uses_up_its_attempts_fails(app: App) -> None:
    await shop.flaky.enqueue(fails=9)
    [job] = await run(app, advance=86_400)
    assert (job.status, job.attempt, job.error) == (Status.FAILED, 4, "attempt 4")


async def test_errors_are_raised_where_that_is_wanted(app: App) -> None:
    await shop.broken.enqueue()
    [job] = await run(app)
    assert job.status is Status.FAILED
    await shop.broken.enqueue()
    with pytest.raises(NotRetryable, match="for good"):
        await run(app, raise_errors=True)


async def test_isolated_handlers_run_here_unless_processes_are_wanted(app: App) -> None:
    await shop.where.enqueue()
    [job] = await run(app)
    assert (job.result, shop.ran) == (os.getpid(), ["here"])
    assert shop.where.kind == "process"
    await shop.where.enqueue()
    [job] = await run(app, isolate=True)
    assert job.result != os.getpid()


async def test_only_the_queues_that_are_named(app: App) -> None:
    await shop.greet.options(queue="elsewhere").enqueue(name="ada")
    assert await run(app, queues=["default"]) == []
    assert len(await run(app, queues=["elsewhere"])) == 1


async def test_what_was_enqueued_is_listed_oldest_first(app: App) -> None:
    await shop.greet.enqueue(name="ada")
    await shop.greet.enqueue(name="bob")
    await shop.broken.enqueue()
    assert [job.task for job in await enqueued(app)] == ["greet", "greet", "broken"]
    assert [job.args["name"] for job in await enqueued(app, shop.greet)] == ["ada", "bob"]
    assert len(await enqueued(app, "greet", name="bob")) == 1
    assert await enqueued(app, shop.greet, name="eve") == []
    assert await enqueued(app, shop.greet, other=1) == []


async def test_many_are_listed_whole(app: App) -> None:
    await app.enqueue_many(shop.greet.job(name=str(number)) for number in range(1_100))
    assert [job.args["name"] for job in await enqueued(app, shop.greet)] == [
        str(number) for number in range(1_100)
    ]


async def test_chunks_do_not_wait_for_more(app: App) -> None:
    began = time.monotonic()
    await app.enqueue_many(shop.store.job(number=number) for number in range(25))
    jobs = await run(app, max_workers=1)
    assert shop.ran == [list(range(10)), list(range(10, 20)), list(range(20, 25))]
    assert len(jobs) == 25
    assert sum(job.status is Status.COMPLETED for job in jobs) == 24
    assert time.monotonic() - began < 30
    await shop.store.enqueue(number=13)
    with pytest.raises(ValueError, match="thirteen"):
        await run(app, raise_errors=True)
