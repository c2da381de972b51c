"""Gives a store a past, through the engine's own verbs, and hands in jobs one by one.

`build`: jobs come in by rounds, each into a lane of its own; workers register, work some of them
off, and are gone: one half takes leave, the other half is never heard of again. After each round
the worker's own upkeep runs, a minute later by the App's clock, until it has nothing left to do.
`later`: the same upkeep, as it would find the store some time later.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass

import headrace
from bench.program import WARM_UP
from bench.recorder import Recorder
from bench.scenarios.program import BATCH, app, wait
from headrace.engine.base import Engine
from headrace.model.ids import new_id
from headrace.model.job import NewJob
from headrace.model.outcome import Completed, Settlement
from headrace.model.worker import WorkerInfo
from headrace.upkeep import Prune, Sweep
from headrace.upkeep.job_loops import STEP_PAUSE

ROUND_SECONDS = 60.0
RETENTION_SECONDS = 30.0
LEASE_SECONDS = 30.0
# As many workers are there at once.
TOGETHER = 10
PAUSE_SECONDS = 0.02
LIMIT_SECONDS = 30.0


@dataclass
class Past:
    """How many of each there were, each used once or in turn; one job for each lane."""

    lanes: int
    queues: int
    tasks: int
    workers: int
    rounds: int

    def queue(self, number: int) -> str:
        """Neighbours share a queue, so that a queue has all its jobs in one round."""
        return f"queue:{number * self.queues // self.lanes}"

    def task(self, number: int) -> str:
        return f"task:{number % self.tasks}"

    def jobs(self, round_: int) -> range:
        return _part(self.lanes, round_, self.rounds)

    def crews(self, round_: int) -> Iterator[tuple[int, range]]:
        """The workers of a round, each with the numbers of the jobs that it finds."""
        jobs, workers = self.jobs(round_), _part(self.workers, round_, self.rounds)
        for position, worker in enumerate(workers):
            part = _part(len(jobs), position, len(workers))
            yield worker, range(jobs.start + part.start, jobs.start + part.stop)


def _part(count: int, number: int, parts: int) -> range:
    return range(count * number // parts, count * (number + 1) // parts)


class Upkeep:
    """What a worker does besides jobs, without its pauses; counts the time that it takes."""

    def __init__(self, app: headrace.App) -> None:
        engine = app.engine
        self.prune = Prune(engine=engine, history_seconds=RETENTION_SECONDS, history_count=None)
        self.sweep = Sweep(engine=engine, clock=app.clock, lease_seconds=LEASE_SECONDS)
        self.seconds = 0.0

    async def run(self) -> None:
        """Until it would rest."""
        begin = time.perf_counter()
        while await self.sweep.tick() == 0.0:
            pass
        while await self.prune.tick() <= STEP_PAUSE:
            pass
        self.seconds += time.perf_counter() - begin


async def build(app: headrace.App, past: Past) -> dict[str, float]:
    """Give the store its past, and tell how long that took."""
    app.clock.offset = -past.rounds * ROUND_SECONDS
    async with app:
        begin, upkeep = time.perf_counter(), Upkeep(app)
        for round_ in range(past.rounds):
            jobs = past.jobs(round_)
            for first in range(jobs.start, jobs.stop, BATCH):
                await app.engine.insert(
                    [_job(past, n) for n in range(first, min(first + BATCH, jobs.stop))]
                )
            crews = list(past.crews(round_))
            done = 0
            for first in range(0, len(crews), TOGETHER):
                turns = [
                    _come_and_go(app.engine, past, worker, numbers)
                    for worker, numbers in crews[first : first + TOGETHER]
                ]
                done += sum(await asyncio.gather(*turns))
            if done != len(jobs):
                raise RuntimeError(f"{done} of {len(jobs)} jobs were done in round {round_}")
            app.clock.advance(ROUND_SECONDS)
            await upkeep.run()
        return {"seconds": time.perf_counter() - begin, "upkeep": upkeep.seconds}


def _job(past: Past, number: int) -> NewJob:
    return NewJob(
        id=new_id(), task=past.task(number), queue=past.queue(number), lane=f"lane:{number}"
    )


async def _come_and_go(engine: Engine, past: Past, number: int, jobs: range) -> int:
    """The life of one worker. Answers how many jobs it has done."""
    queues = tuple(dict.fromkeys(past.queue(n) for n in jobs))
    worker = WorkerInfo(
        id=new_id(),
        name=f"worker:{number}",
        host="bench",
        pid=os.getpid(),
        version=headrace.__version__,
        queues=queues,
        tasks=tuple(dict.fromkeys(past.task(n) for n in jobs)),
    )
    await engine.register(worker, LEASE_SECONDS)
    done, settlements = 0, list[Settlement]()
    while True:
        answer = await engine.exchange(
            settlements, worker_id=worker.id, queues=queues, limit=len(jobs) - done
        )
        if not answer.jobs:
            break
        done += len(answer.jobs)
        settlements = [Settlement(job.id, job.token, Completed()) for job in answer.jobs]
    if number % 2:
        await engine.retire(worker.id)
    return done


async def later(app: headrace.App, seconds: float) -> dict[str, float]:
    """Let upkeep run as it would so many seconds from now."""
    app.clock.advance(seconds)
    async with app:
        upkeep = Upkeep(app)
        await upkeep.run()
        return {"seconds": upkeep.seconds}


class Client:
    """Hands jobs in to one store, whose worker writes down when they start."""

    def __init__(self, url: str, record: str) -> None:
        self.app = headrace.App(url)
        self.task = self.app.task(wait.name)(wait.function)
        self.record = Recorder(record)

    async def hand_in(self, number: int) -> None:
        """Enqueue a job when the worker is idle again, and wait until it has started."""
        await asyncio.sleep(PAUSE_SECONDS)
        self.record.hand_in(number)
        await self.task.enqueue(number, 0.0)
        end = time.monotonic() + LIMIT_SECONDS
        while not self.record.started(number):
            if time.monotonic() > end:
                raise TimeoutError(f"job {number} did not start")
            await asyncio.sleep(0.0005)


async def latency(count: int) -> dict[str, list[float]]:
    """Enqueue jobs one by one, in turns here and in the store beside, so that whatever else the
    machine does falls on both alike. Answers milliseconds, sorted.
    """
    given = os.environ
    aged = Client(given["BENCH_URL"], given["BENCH_RECORD"])
    empty = Client(given["BENCH_BESIDE_URL"], given["BENCH_BESIDE_RECORD"])
    async with aged.app, empty.app:
        for number in range(count):
            for client in (aged, empty) if number % 2 else (empty, aged):
                await client.hand_in(number)
    return {
        "aged": aged.record.latencies(skip=WARM_UP),
        "empty": empty.record.latencies(skip=WARM_UP),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=["build", "later", "latency"])
    for name in ("lanes", "queues", "tasks", "workers", "rounds", "count"):
        parser.add_argument(f"--{name}", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.0)
    given = parser.parse_args()
    answer: object
    match given.command:
        case "build":
            past = Past(given.lanes, given.queues, given.tasks, given.workers, given.rounds)
            answer = asyncio.run(build(app, past))
        case "later":
            answer = asyncio.run(later(app, given.seconds))
        case _:
            answer = asyncio.run(latency(given.count))
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
