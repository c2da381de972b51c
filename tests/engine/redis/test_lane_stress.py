"""Lanes under attack: several processes' seats do everything at random; judged from outside."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict

from headrace.engine.redis.engine import RedisEngine
from headrace.model.job import ClaimedJob, NewJob
from headrace.model.outcome import (
    Cancelled,
    Completed,
    Failed,
    Outcome,
    Released,
    Retry,
    Settlement,
    Snoozed,
)
from tests.engine.conftest import Opener
from tests.support.verbs import A_FAILURE, a_job, a_worker, claim

SECONDS = 3.0
WIDTHS = [1, 1, 1, 2, 3]
OUTCOMES: list[tuple[int, Outcome]] = [
    (60, Completed(b"1")),
    (10, Released()),
    (8, Retry(A_FAILURE, 0)),
    (8, Retry(A_FAILURE, 0.005)),
    (4, Snoozed(0.002)),
    (5, Failed(A_FAILURE)),
    (5, Cancelled()),
]


class Judge:
    """Keeps a log of its own. Lanes of width 1 have one producer, so their order is known."""

    def __init__(self) -> None:
        self.made: dict[str, NewJob] = {}
        self.number: dict[str, int] = {}
        self.running: dict[str, set[str]] = defaultdict(set)
        self.latest: dict[str, int] = defaultdict(lambda: -1)
        self.starts = 0

    def insert(self, jobs: list[NewJob]) -> None:
        for job in jobs:
            self.number[job.id] = len(self.made)
            self.made[job.id] = job

    def start(self, job: ClaimedJob) -> None:
        lane, width = job.lane or "", self.made[job.id].width
        self.starts += 1
        self.running[lane].add(job.id)
        assert len(self.running[lane]) <= width, f"{lane} has {self.running[lane]}"
        if width == 1:
            number = self.number[job.id]
            assert number >= self.latest[lane], f"{lane} started {job.id} after a later one"
            self.latest[lane] = number

    def end(self, job: ClaimedJob) -> None:
        self.running[job.lane or ""].discard(job.id)


class Seat:
    """One process: produces into lanes of its own, works on all."""

    def __init__(self, number: int, engine: RedisEngine, judge: Judge) -> None:
        self.number = number
        self.engine = engine
        self.judge = judge
        self.chance = random.Random(number)

    async def produce(self, until: float) -> None:
        while asyncio.get_running_loop().time() < until:
            jobs = []
            for _ in range(self.chance.randint(1, 6)):
                lane = self.chance.randrange(len(WIDTHS))
                width = WIDTHS[lane]
                urgent = width > 1 and self.chance.random() < 0.2
                jobs.append(
                    a_job(
                        lane=f"{self.number}-{lane}",
                        width=width,
                        hold=width == 1,
                        priority=5 if urgent else 0,
                        queue=f"q{lane % 2}",
                    )
                )
            self.judge.insert(jobs)
            await self.engine.insert(jobs)
            if self.chance.random() < 0.3:
                await self.engine.cancel([self.chance.choice(list(self.judge.made))])
            await asyncio.sleep(0.01)

    async def work(self, until: float) -> None:
        worker = await a_worker(self.engine, f"w{self.number}")
        outcomes = [outcome for _, outcome in OUTCOMES]
        weights = [weight for weight, _ in OUTCOMES]
        while asyncio.get_running_loop().time() < until:
            jobs = await claim(self.engine, worker, self.chance.randint(1, 20))
            for job in jobs:
                self.judge.start(job)
            await asyncio.sleep(0)
            for job in jobs:
                self.judge.end(job)
            if jobs and self.chance.random() < 0.05:
                # Dies with its jobs; whoever sweeps first gives them to others.
                await self.engine.retire(worker)
                worker = await a_worker(self.engine, f"w{self.number}")
                continue
            chosen = self.chance.choices(outcomes, weights, k=len(jobs))
            answer = await self.engine.exchange(
                [Settlement(j.id, j.token, o) for j, o in zip(jobs, chosen, strict=True)]
            )
            assert answer.refused == ()

    async def tend(self, until: float) -> None:
        while asyncio.get_running_loop().time() < until:
            await self.engine.promote_due(50)
            lost = await self.engine.take_lost(50)
            await self.engine.exchange(
                [Settlement(each.job.id, each.job.token, Retry(A_FAILURE, 0)) for each in lost]
            )
            await asyncio.sleep(0.005)


async def test_lanes_hold_while_everything_happens_at_once(
    redis_engine: RedisEngine, open_another: Opener
) -> None:
    judge = Judge()
    engines = [redis_engine, *[await open_another() for _ in range(3)]]
    seats = [
        Seat(number, engine, judge)
        for number, engine in enumerate(engines)
        if isinstance(engine, RedisEngine)
    ]
    loop = asyncio.get_running_loop()
    producing, working = loop.time() + SECONDS, loop.time() + SECONDS + 3

    async def audit() -> None:
        while loop.time() < working:
            assert await redis_engine.audit() == []
            await asyncio.sleep(0.1)

    await asyncio.gather(
        *(seat.produce(producing) for seat in seats),
        *(seat.work(working) for seat in seats),
        *(seat.tend(working) for seat in seats),
        audit(),
    )
    assert judge.starts > 200

    # Nothing is stuck: one more worker brings every job to its end.
    worker = await a_worker(redis_engine, "last")
    for _ in range(len(judge.made) + 50):
        redis_engine.clock.advance(0.1)
        await redis_engine.promote_due(1_000)
        jobs = await claim(redis_engine, worker, 1_000)
        lost = [each.job for each in await redis_engine.take_lost(1_000)]
        await redis_engine.exchange(
            [Settlement(job.id, job.token, Completed()) for job in (*jobs, *lost)]
        )
        if not jobs and not lost and not any(q.scheduled for q in await redis_engine.queues()):
            break
    unfinished = [
        job.id for job in await redis_engine.get(list(judge.made)) if not job.status.final
    ]
    assert unfinished == []
