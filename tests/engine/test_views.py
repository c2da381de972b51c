"""What people see: jobs by filter and page, queues with their depth."""

from __future__ import annotations

from datetime import timedelta

import pytest

from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.model.ids import new_id
from headrace.model.job import JobFilter
from headrace.model.outcome import Completed, Failed, Settlement
from headrace.model.status import Status
from tests.support.verbs import A_FAILURE, a_job, a_worker, claim, complete, enqueue, retry


async def test_get_keeps_the_order_asked_for(engine: Engine) -> None:
    ids = [each.id for each in await engine.insert([a_job() for _ in range(3)])]
    asked = [ids[2], new_id(), ids[0]]
    assert [job.id for job in await engine.get(asked)] == [ids[2], ids[0]]
    assert await engine.get([]) == []


async def test_jobs_are_listed_newest_first_in_pages(engine: Engine) -> None:
    worker = await a_worker(engine)
    ids = [each.id for each in await engine.insert([a_job() for _ in range(25)])]
    jobs = await claim(engine, worker, 12)
    await engine.exchange([Settlement(job.id, job.token, Completed()) for job in jobs[::2]])
    seen: list[str] = []
    cursor = None
    while True:
        page = await engine.list_jobs(JobFilter(), cursor=cursor, limit=10)
        assert len(page.jobs) <= 10
        seen += [job.id for job in page.jobs]
        cursor = page.cursor
        if cursor is None:
            break
    assert seen == sorted(ids, reverse=True)


async def test_an_empty_store_lists_nothing(engine: Engine) -> None:
    page = await engine.list_jobs(JobFilter())
    assert (page.jobs, page.cursor) == ([], None)
    assert await engine.queues() == []
    assert await engine.lanes() == []
    assert await engine.workers() == []


async def test_filters(engine: Engine) -> None:
    worker = await a_worker(engine)
    failed = await enqueue(engine, task="a", queue="one")
    running = await enqueue(engine, task="b", queue="two")
    jobs = await claim(engine, worker, 2)
    await engine.exchange([Settlement(jobs[0].id, jobs[0].token, Failed(A_FAILURE))])
    later = await enqueue(engine, task="a", queue="two", delay=60)
    waiting = await enqueue(engine, task="c", queue="one", lane="l", key="k", source="api")

    async def ids(**fields: object) -> set[str]:
        page = await engine.list_jobs(JobFilter(**fields))  # type: ignore[arg-type]
        return {job.id for job in page.jobs}

    assert await ids(statuses=(Status.FAILED,)) == {failed}
    assert await ids(statuses=(Status.RUNNING,)) == {running}
    assert await ids(statuses=(Status.SCHEDULED, Status.PENDING)) == {later, waiting}
    assert await ids(statuses=(Status.FAILED, Status.RUNNING)) == {failed, running}
    assert await ids(queues=("one",)) == {failed, waiting}
    assert await ids(tasks=("a",)) == {failed, later}
    assert await ids(tasks=("a", "b"), queues=("two",)) == {running, later}
    assert await ids(lane="l") == {waiting}
    assert await ids(key="k") == {waiting}
    assert await ids(source="api") == {waiting}
    assert await ids(queues=("nowhere",)) == set()


async def test_filter_by_creation_time(engine: Engine, clock: Clock) -> None:
    old = await enqueue(engine)
    clock.advance(100)
    middle = clock.utcnow() - timedelta(seconds=50)
    new = await enqueue(engine)
    page = await engine.list_jobs(JobFilter(created_before=middle))
    assert [job.id for job in page.jobs] == [old]
    page = await engine.list_jobs(JobFilter(created_after=middle))
    assert [job.id for job in page.jobs] == [new]


async def test_a_rare_status_is_found_among_many(engine: Engine) -> None:
    worker = await a_worker(engine)
    needle = await enqueue(engine)
    await engine.insert([a_job() for _ in range(500)])
    jobs = await claim(engine, worker, 501)
    await engine.exchange(
        [
            Settlement(
                job.id, job.token, Failed(A_FAILURE) if job.id == needle else Completed(b"1")
            )
            for job in jobs
        ]
    )
    page = await engine.list_jobs(JobFilter(statuses=(Status.FAILED,)), limit=5)
    assert [job.id for job in page.jobs] == [needle]
    assert page.cursor is None


async def test_queues_tell_depth_and_age(engine: Engine, clock: Clock) -> None:
    worker = await a_worker(engine)
    await engine.insert([a_job(queue="b", lane="l") for _ in range(3)])
    clock.advance(10)
    await engine.insert([a_job(queue="a"), a_job(queue="a", delay=60), a_job(queue="a")])
    await engine.pause("c", True)
    await claim(engine, worker, 1, ["a"])
    a, b, c = await engine.queues()
    assert (a.name, a.scheduled, a.waiting, a.ready, a.running, a.paused) == (
        "a",
        1,
        0,
        1,
        1,
        False,
    )
    assert (b.name, b.scheduled, b.waiting, b.ready, b.running) == ("b", 0, 2, 1, 0)
    assert (c.name, c.paused, c.oldest_age) == ("c", True, None)
    assert b.oldest_age is not None
    assert a.oldest_age is not None
    assert 9 < b.oldest_age < 70
    assert a.oldest_age < 9


async def test_a_queue_that_had_jobs_stays_listed(engine: Engine, clock: Clock) -> None:
    worker = await a_worker(engine)
    await enqueue(engine, queue="once", lane="l")
    await enqueue(engine, queue="never", delay=60)
    [job] = await claim(engine, worker)
    await complete(engine, job)
    await engine.cancel([each.id for each in (await engine.list_jobs(JobFilter())).jobs])
    clock.advance(10)
    assert await engine.prune(older_than=1) == 2
    never, once = await engine.queues()
    for queue, name in ((never, "never"), (once, "once")):
        assert (queue.name, queue.paused, queue.oldest_age) == (name, False, None)
        assert (queue.scheduled, queue.waiting, queue.ready, queue.running) == (0, 0, 0, 0)


@pytest.mark.parametrize("lane", [None, "l"])
async def test_the_oldest_pending_job_is_the_one_that_is_due_for_longest(
    engine: Engine, clock: Clock, lane: str | None
) -> None:
    """Neither its number nor its priority nor its id tells which one that is."""
    worker = await a_worker(engine)
    start = clock.now()
    retried = await enqueue(engine, lane=lane, hold=False)
    await engine.insert([a_job(lane=lane, delay=500, priority=3) for _ in range(15)])
    [job] = await claim(engine, worker)
    clock.advance(400)
    await engine.insert([a_job(lane=lane, run_at=clock.now() - each) for each in (1, 7, 300, 3)])
    await engine.insert([a_job(lane=lane) for _ in range(15)])
    await retry(engine, job, 0)
    clock.advance(200)
    await engine.promote_due(100)
    [queue] = await engine.queues()
    assert queue.oldest_age is not None
    assert 499 < queue.oldest_age < 560
    assert clock.now() - start < 660
    if lane is not None:
        [seen] = await engine.lanes()
        assert seen.oldest_age is not None
        assert 499 < seen.oldest_age < 560
    assert retried == job.id


async def test_a_queue_with_nothing_pending_has_no_age(engine: Engine, clock: Clock) -> None:
    worker = await a_worker(engine)
    await enqueue(engine)
    await enqueue(engine, delay=600)
    await claim(engine, worker)
    clock.advance(10)
    [queue] = await engine.queues()
    assert (queue.running, queue.scheduled, queue.oldest_age) == (1, 1, None)


async def test_due_moves_in_bounded_steps_earliest_first(engine: Engine, clock: Clock) -> None:
    worker = await a_worker(engine)
    ids = [await enqueue(engine, delay=100 - n) for n in range(10)]
    clock.advance(200)
    assert (await engine.promote_due(4)).moved == 4
    assert {job.id for job in await claim(engine, worker, 20)} == set(ids[6:])
    due = await engine.promote_due(100)
    assert (due.moved, due.next_in) == (6, None)
