"""Rates under many claimers, over many keys: judged from outside the engine."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict

from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.model.outcome import Completed, Retry, Settlement
from tests.engine.conftest import Opener
from tests.engine.rate_words import insert, rated
from tests.support.verbs import A_FAILURE, a_job, a_worker

JOBS, KEYS, CLAIMERS = 10_000, 100, 3
INTERVAL, BURST = 60.0, 3
RETRY = Retry(A_FAILURE, 0.0)


class Judge:
    """Notes between which two times of the engine a job has started, key by key."""

    def __init__(self) -> None:
        self.starts: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)

    def most_in(self, key: str, window: float) -> int:
        """The most starts that were certainly in one window of this length."""
        starts = sorted(self.starts[key])
        most = 0
        for first, (begin, _) in enumerate(starts):
            inside = [each for each in starts[first:] if each[1] < begin + window]
            most = max(most, len(inside))
        return most


async def test_no_window_has_more_starts_than_the_rate(
    engine: Engine, open_another: Opener, clock: Clock
) -> None:
    """10,000 jobs of 100 keys, three claimers, one of which dies now and then with what it holds:
    no window of n intervals has more than n + burst - 1 starts, and 95% of the rate is used.
    """
    chance = random.Random(1)
    jobs = [
        rated("1/m", BURST, lane=f"k{n % KEYS}", width=1 + n % KEYS % 7, max_attempts=100)
        for n in range(JOBS)
    ]
    for at in range(0, JOBS, 2_000):
        await insert(engine, *jobs[at : at + 2_000])
    doors = [engine, *[await open_another() for _ in range(CLAIMERS - 1)]]
    workers = [await a_worker(door, f"w{n}") for n, door in enumerate(doors)]
    judge = Judge()
    began = await engine.now()

    async def turn(number: int) -> int:
        door = doors[number]
        before = await door.now()
        answer = await door.exchange([], worker_id=workers[number], limit=40)
        after = await door.now()
        for job in answer.jobs:
            judge.starts[job.lane or ""].append((before, after))
        if chance.random() < 0.02:
            # It dies, and a successor takes over what it held.
            workers[number] = await a_worker(door, f"w{number}")
            lost = await door.take_lost(1_000)
            await door.exchange([Settlement(each.job.id, each.job.token, RETRY) for each in lost])
        else:
            await door.exchange(
                [Settlement(job.id, job.token, Completed(b"1")) for job in answer.jobs]
            )
        return len(answer.jobs)

    intervals = 20
    for _ in range(2 * intervals):
        while sum(await asyncio.gather(*(turn(number) for number in range(CLAIMERS)))):
            pass
        clock.advance(INTERVAL / 2)
    for key in judge.starts:
        for length in (1, 2, 5, intervals):
            assert judge.most_in(key, length * INTERVAL) <= length + BURST - 1
    passed = (await engine.now() - began) / INTERVAL
    total = sum(map(len, judge.starts.values()))
    assert total >= 0.95 * KEYS * (passed - 1)


async def test_a_key_with_many_throttled_jobs_is_in_nobodys_way(
    engine: Engine, clock: Clock
) -> None:
    """It is met a few times, and then no more: claims of others find theirs at once."""
    await insert(engine, *(rated("1/h", width=300, priority=9) for _ in range(2_000)))
    worker = await a_worker(engine)
    others = await insert(engine, *(a_job(lane=f"o{n}") for n in range(50)))
    found: list[str] = []
    for _ in range(5):
        answer = await engine.exchange([], worker_id=worker, limit=50)
        found += [job.id for job in answer.jobs if job.lane != "h"]
    assert found == others
