"""Leasing jobs: never twice, by priority, only where allowed."""

from __future__ import annotations

import asyncio

from headrace.engine.base import Engine
from headrace.model.ids import new_id
from headrace.model.outcome import Completed, Settlement
from headrace.model.status import Status
from tests.engine.conftest import Opener
from tests.support.verbs import a_job, a_worker, claim, complete, enqueue, status, the_job


async def test_a_claim_tells_all_that_a_worker_needs(engine: Engine) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(
        engine,
        task="t",
        queue="q",
        args=b'{"a":1}',
        priority=3,
        lane="l",
        key="k",
        max_attempts=2,
        timeout=5.0,
        on_crash="fail",
        meta=b'{"m":1}',
    )
    [job] = await claim(engine, worker)
    assert (job.id, job.task, job.queue, bytes(job.args)) == (job_id, "t", "q", b'{"a":1}')
    assert (job.priority, job.lane, job.key, job.max_attempts) == (3, "l", "k", 2)
    assert (job.timeout, job.on_crash, job.attempt, job.token) == (5.0, "fail", 1, 1)
    assert job.meta is not None
    assert bytes(job.meta) == b'{"m":1}'
    assert not job.cancel_requested
    seen = await the_job(engine, job_id)
    assert seen.status is Status.RUNNING
    assert seen.worker == "worker"
    assert seen.started_at is not None
    assert (seen.attempt, seen.token) == (1, 1)


async def test_wait_is_the_time_since_the_job_was_due(engine: Engine) -> None:
    engine.clock.advance(0)
    worker = await a_worker(engine)
    await enqueue(engine)
    engine.clock.advance(7)
    [job] = await claim(engine, worker)
    assert 6.9 < job.wait < 60


async def test_higher_priority_comes_first(engine: Engine) -> None:
    worker = await a_worker(engine)
    ids = [await enqueue(engine, priority=priority) for priority in (0, 5, -5, 5, 1000, -1000)]
    claimed = await claim(engine, worker, 10)
    assert [job.id for job in claimed] == [ids[i] for i in (4, 1, 3, 0, 2, 5)]


async def test_a_claim_takes_no_more_than_its_limit(engine: Engine) -> None:
    worker = await a_worker(engine)
    await engine.insert([a_job() for _ in range(10)])
    assert len(await claim(engine, worker, 4)) == 4
    assert len(await claim(engine, worker, 0)) == 0
    assert len(await claim(engine, worker, 100)) == 6
    assert await claim(engine, worker, 100) == []


async def test_only_the_named_queues_are_served(engine: Engine) -> None:
    worker = await a_worker(engine)
    a = await enqueue(engine, queue="a")
    b = await enqueue(engine, queue="b")
    c = await enqueue(engine, queue="c")
    assert await claim(engine, worker, 10, ["nothing"]) == []
    assert await claim(engine, worker, 10, []) == []
    assert [job.id for job in await claim(engine, worker, 10, ["b"])] == [b]
    assert [job.id for job in await claim(engine, worker, 10, ["c", "a", "a"])] == [a, c]


async def test_all_queues_are_served_by_priority_then_arrival(engine: Engine) -> None:
    worker = await a_worker(engine)
    ids = [
        await enqueue(engine, queue=queue, priority=priority)
        for queue, priority in (("a", 0), ("b", 1), ("c", 0), ("a", 1), ("b", 0))
    ]
    first = await claim(engine, worker, 3)
    rest = await claim(engine, worker, 9)
    assert [job.id for job in [*first, *rest]] == [ids[i] for i in (1, 3, 0, 2, 4)]


async def test_a_paused_queue_hands_out_nothing(engine: Engine) -> None:
    worker = await a_worker(engine)
    held = await enqueue(engine, queue="a")
    free = await enqueue(engine, queue="b")
    await engine.pause("a", True)
    assert [job.id for job in await claim(engine, worker, 10)] == [free]
    assert await claim(engine, worker, 10, ["a"]) == []
    await engine.pause("a", False)
    assert [job.id for job in await claim(engine, worker, 10, ["a", "b"])] == [held]


async def test_a_queue_can_be_paused_before_its_first_job(engine: Engine) -> None:
    worker = await a_worker(engine)
    await engine.pause("later", True)
    await enqueue(engine, queue="later")
    assert await claim(engine, worker, 10) == []
    await engine.pause("later", False)
    assert len(await claim(engine, worker, 10)) == 1


async def test_an_unknown_worker_is_given_nothing(engine: Engine) -> None:
    await enqueue(engine)
    assert await claim(engine, new_id()) == []
    worker = await a_worker(engine)
    assert len(await claim(engine, worker)) == 1


async def test_settling_and_claiming_share_a_trip(engine: Engine) -> None:
    worker = await a_worker(engine)
    await engine.insert([a_job() for _ in range(4)])
    first = await claim(engine, worker, 2)
    answer = await engine.exchange(
        [Settlement(job.id, job.token, Completed(b"1")) for job in first],
        worker_id=worker,
        limit=10,
    )
    assert answer.refused == ()
    assert len(answer.jobs) == 2
    for job in first:
        assert await status(engine, job.id) is Status.COMPLETED


async def test_racing_workers_never_share_a_job(engine: Engine, open_another: Opener) -> None:
    engines = [engine, *[await open_another() for _ in range(3)]]
    workers = [await a_worker(each, f"w{n}") for n, each in enumerate(engines)]
    await engine.insert([a_job(queue=f"q{n % 3}") for n in range(600)])
    seen: list[str] = []

    async def drain(each: Engine, worker: str) -> None:
        while jobs := await claim(each, worker, 7):
            seen.extend(job.id for job in jobs)
            for job in jobs:
                assert await complete(each, job)

    await asyncio.gather(*(drain(e, w) for e, w in zip(engines, workers, strict=True)))
    assert len(seen) == 600
    assert len(set(seen)) == 600
