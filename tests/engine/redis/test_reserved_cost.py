"""Reserved jobs that a worker does not know cost its claims nothing."""

from __future__ import annotations

from headrace.engine.redis.engine import RedisEngine
from headrace.model.job import ClaimedJob
from headrace.model.outcome import Completed, Reserved, Settlement
from tests.engine.redis.conftest import commands_of
from tests.support.verbs import a_job, a_worker, claim


async def exchanged(engine: RedisEngine, worker: str, jobs: list[ClaimedJob]) -> list[list[str]]:
    """What an exchange that settles jobs and claims others asks of the server, without values."""
    completed = [Settlement(job.id, job.token, Completed(b"null")) for job in jobs]
    seen = await commands_of(engine, engine.exchange(completed, worker_id=worker, limit=len(jobs)))
    return [words[:2] for by_script, words in seen if by_script]


async def test_a_claim_asks_the_same_of_the_server_with_reserved_jobs_and_without(
    redis_engine: RedisEngine,
) -> None:
    known = tuple(f"task.{n}" for n in range(500))
    worker = await a_worker(redis_engine, tasks=("mine", *known))
    await redis_engine.insert([a_job(task="mine") for _ in range(20)])
    without = await exchanged(redis_engine, worker, await claim(redis_engine, worker, 5))
    again = await claim(redis_engine, worker, 5)
    await redis_engine.insert([a_job(task=f"theirs.{n}", priority=1) for n in range(20)])
    theirs = await claim(redis_engine, worker, 20)
    await redis_engine.exchange([Settlement(job.id, job.token, Reserved()) for job in theirs])
    [queue] = await redis_engine.queues()
    assert len(queue.reserved) == 20
    # The first claim finds out that none of them is for this worker.
    first, *others = again
    await exchanged(redis_engine, worker, [first])
    assert len(others) == 4
    assert await exchanged(redis_engine, worker, others) == without


async def test_a_worker_whose_reserved_jobs_are_gone_stops_looking_for_them(
    redis_engine: RedisEngine,
) -> None:
    stranger = await a_worker(redis_engine, "stranger", tasks=())
    worker = await a_worker(redis_engine, "knows")
    await redis_engine.insert([a_job(task="mine") for _ in range(20)])
    without = await exchanged(redis_engine, worker, await claim(redis_engine, worker, 2))
    await redis_engine.insert([a_job(task=f"theirs.{n}", priority=1) for n in range(5)])
    theirs = await claim(redis_engine, stranger, 5)
    await redis_engine.exchange([Settlement(job.id, job.token, Reserved()) for job in theirs])
    assert [job.task for job in await claim(redis_engine, worker, 5)] == [
        f"theirs.{n}" for n in range(5)
    ]
    jobs = await claim(redis_engine, worker, 2)
    assert await exchanged(redis_engine, worker, jobs) == without
