"""Claims over several queues: read in pieces, merged into one order, never beyond the limit."""

from __future__ import annotations

import random

import pytest

from headrace.engine.redis.engine import RedisEngine
from tests.support.verbs import a_job, a_worker, claim


@pytest.mark.parametrize("seed", range(4))
async def test_any_claim_takes_the_best_of_its_queues(redis_engine: RedisEngine, seed: int) -> None:
    chance = random.Random(seed)
    worker = await a_worker(redis_engine)
    names = [f"q{n}" for n in range(6)]
    # One queue has most of the jobs, so that its line is read in several pieces.
    jobs = [
        a_job(
            queue="q0" if chance.random() < 0.6 else chance.choice(names),
            priority=chance.choice([0, 0, 0, 7, -7]),
        )
        for _ in range(400)
    ]
    await redis_engine.insert(jobs)
    waiting = sorted(range(len(jobs)), key=lambda number: (-jobs[number].priority, number))
    for _ in range(60):
        queues = chance.choice([None, ["q0"], ["q1", "q0"], names, ["q5", "none"], names[2:4]])
        limit = chance.choice([1, 2, 7, 30])
        expected = [n for n in waiting if queues is None or jobs[n].queue in queues][:limit]
        claimed = await claim(redis_engine, worker, limit, queues)
        assert [job.id for job in claimed] == [jobs[n].id for n in expected]
        waiting = [n for n in waiting if n not in expected]
    seen = {queue.name: (queue.ready, queue.running) for queue in await redis_engine.queues()}
    for name in names:
        total = sum(job.queue == name for job in jobs)
        ready = sum(jobs[n].queue == name for n in waiting)
        assert seen[name] == (ready, total - ready)


async def test_paused_queues_are_left_out_wherever_they_are(redis_engine: RedisEngine) -> None:
    worker = await a_worker(redis_engine)
    await redis_engine.insert([a_job(queue=f"q{n % 3}") for n in range(30)])
    await redis_engine.pause("q1", True)
    for queues in (None, ["q1"], ["q0", "q1", "q2"]):
        assert "q1" not in {job.queue for job in await claim(redis_engine, worker, 4, queues)}
